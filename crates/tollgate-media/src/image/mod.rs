//! Image models.

pub mod job;

pub use job::{Background, ImageFormat, ImageJob, InputImage, Moderation, PixelSize, Size, Source};
