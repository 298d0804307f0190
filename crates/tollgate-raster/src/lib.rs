//! Decodes, scales and encodes images: reference images and masks for uploads, and the sandbox's results.
//!
//! A separate crate because of how it is compiled: the scaling is vector code, which takes long to compile and must be optimised in tests too
//! (`[profile]` in Cargo.toml).

mod decode;
mod encode;
mod raster;
mod scale;

pub use decode::decode;
pub use encode::encode;
pub use raster::{Raster, RasterError};
pub use scale::{Filter, Fit, scale};
