//! Alerts: one of the nodes checks every few seconds the conditions that operators want to be notified of. If a condition begins to hold, that is
//! recorded together with the message to send, in one transaction; once it no longer holds, the alert can fire for it again.

mod alert;
pub(crate) mod check;
pub(crate) mod deliveries;

pub use alert::{Alert, AlertKind};
