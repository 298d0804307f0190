//! The words that every other crate speaks: money, ids, task states, errors, secrets, the clock.
//!
//! Nothing here knows tokio, HTTP or SQL (`cargo xtask tidy` checks that), so all of it can be
//! tested and reasoned about alone.

pub mod clock;
pub mod crash;
pub mod error;
pub mod id;
pub mod money;
pub mod secret;
pub mod task;

pub use clock::{Clock, Millis, SystemClock};
pub use error::{ApiError, ErrorKind};
pub use money::Amount;
pub use secret::Secret;
pub use task::{Adjustment, TaskKind, TaskState};
