//! The JSON of receipts (responses to submissions) and task records: one file per format.

pub mod data;
pub mod format;
mod gpt_image_async;
mod schema;
pub mod speech;
mod standard;
pub mod video;
mod wan;

pub use data::{ReceiptData, RecordData, ResultFile};
pub use format::ResponseFormat;
pub use gpt_image_async::GPT_IMAGE_ASYNC;
pub use standard::STANDARD;
pub use video::video_resource_schema;
pub use wan::WAN;
