//! Decodes, scales and encodes images: reference images and masks for uploads, and the sandbox's results.
//!
//! A crate of its own because of how it is compiled: the scaling is 30 copies of vector code, which take as long to compile as all
//! providers do, and are wanted optimised in tests too (`[profile]` in Cargo.toml).

mod decode;
mod encode;
mod raster;
mod scale;

pub use decode::decode;
pub use encode::encode;
pub use raster::{Raster, RasterError};
pub use scale::{Filter, Fit, scale};
