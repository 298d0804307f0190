//! What each model takes: families, the catalogue of model ids, and the normalised job that providers get.
//!
//! Knows no tokio, no HTTP server and no SQL: JSON in, a job or a clear error out.
//!
//! Each kind of model has a module with its families and its job; this root is the one layer over them, in which
//! [`AnyFamily`], [`Job`], [`read`] and the records ([`receipt`], [`record`]) are the same for every kind.

pub mod catalogue;
mod endpoint;
mod family;
pub mod form;
pub mod image;
pub mod input;
mod job;
pub mod shape;
pub mod speech;
mod submission;
mod text;
pub mod video;

pub use catalogue::{Catalogue, ExtraModel, TaskModel};
pub use endpoint::{Endpoint, RequestShape};
pub use family::{AnyFamily, LinkLife};
pub use job::{Job, MediaJob, Units, choices};
pub use shape::{
    ReceiptFacts, ResultFile, TaskFacts, bare_record, generation_record, receipt, record,
    video_resource,
};
pub use submission::{PriceFacts, Submission, read};
