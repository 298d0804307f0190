//! The image, video and speech models: the request fields that each accepts, the validation of requests, and the jobs that providers receive.
//!
//! The crate converts JSON to a [`Job`] or an error for the client. It uses no tokio, no HTTP server and no SQL.
//!
//! Layers, lowest first: [`input`] (reference images), [`fields`] (declarations of request fields), [`response`]
//! (receipts and records), then [`image`], [`video`] and [`speech`] with one file per model family, then [`AnyFamily`],
//! [`Job`], [`parse_request`] and the [`Catalogue`] of model ids. docs/models/ is generated from the declarations.

pub mod catalogue;
mod endpoint;
mod family;
pub mod fields;
pub mod image;
pub mod input;
mod job;
mod link_ttl;
mod media_job;
mod non_default_fields;
mod parse;
pub mod response;
pub mod speech;
mod submission;
mod text;
pub mod video;

pub use catalogue::{Catalogue, ExtraModel, ModelName, TaskModel};
pub use endpoint::{Endpoint, RequestLayout};
pub use family::AnyFamily;
pub use job::Job;
pub use link_ttl::LinkTtl;
pub use media_job::{MediaJob, Units};
pub use non_default_fields::non_default_fields;
pub use parse::parse_request;
pub use response::data::{ReceiptData, RecordData, ResultFile};
pub use response::video::video_resource;
pub use submission::{PriceFactors, Submission};
