//! Types that every other crate uses: money, ids, task states, errors, secrets, the clock.
//!
//! Depends neither on tokio nor on HTTP or SQL crates, which `cargo xtask tidy` checks.

pub mod clock;
pub mod crash;
pub mod error;
pub mod id;
pub mod money;
pub mod secret;
pub mod task;

pub use clock::{Clock, Millis, SteadyClock, SystemClock};
pub use error::{ApiError, ErrorKind};
pub use money::Amount;
pub use secret::Secret;
pub use task::{Adjustment, TaskKind, TaskState};
