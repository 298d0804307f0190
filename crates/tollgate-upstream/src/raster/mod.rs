//! Decodes, scales and encodes images: reference images and masks for uploads, and the sandbox's results.

mod encode;
mod fit;
mod load;

pub use encode::{Raster, encode};
pub(crate) use fit::{Upload, covering, mask, readable};
pub use load::{Fit, load, load_mask};
