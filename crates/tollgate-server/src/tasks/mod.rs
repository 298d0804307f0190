//! Image, video and speech tasks: their submission, the workers that run them, and the records that clients receive.

pub mod attempt;
pub mod backlog;
pub mod cancel;
pub mod cleanup;
pub mod context;
pub mod finish;
pub mod idempotency;
pub mod inputs;
pub mod moderation;
pub mod poll;
pub mod pool;
mod progress;
pub mod record_cache;
pub mod results;
pub mod submit;
mod turn;
pub mod view;
pub mod work_permit;
pub mod worker;
