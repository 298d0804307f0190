//! Pictures as pixels: read from files within limits, brought to size, written as files again.

mod encode;
mod fit;
mod load;

pub(crate) use encode::{Raster, encode};
pub(crate) use fit::{Upload, covering, mask, readable};
pub(crate) use load::{Fit, load, load_mask};
