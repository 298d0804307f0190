//! Models whose input fields are configured: a mapping from the job's fields to those of the model's input (fal, Replicate).
//!
//! Every model of such a provider has its own input fields. The options of a channel's model entry name them, or a preset of
//! this build for well-known models (docs/providers/mapping.md):
//!
//! ```toml
//! { name = "seedance-1.0-pro", upstream = "bytedance/seedance-1-pro", options = {
//!     input = { prompt = "prompt", seconds = { to = "duration", between = [2, 12] }, size = "aspect_ratio", first_frame = "image" },
//!     constants = { fps = 24 } } }
//! ```
//!
//! A [`MappedQueue`] implements what differs between such providers; this module implements everything else.

mod adjustments;
mod config;
mod fan_out;
mod job_fields;
mod mapping;
mod provider;
mod result_paths;
mod rule;

pub(crate) use config::{Preset, check};
pub(crate) use mapping::Request;
pub(crate) use provider::{JobState, MappedQueue, open};
