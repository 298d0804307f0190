//! Reference images and inpainting masks: how requests name them, and the limits of their files.

pub(crate) mod data_uri;
pub mod input_image;
pub mod limits;
pub(crate) mod url;

pub use input_image::{ImageSource, Input, InputImage, InputRole, InputSource};
pub use limits::InputLimits;
