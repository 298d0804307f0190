//! Webhooks: the signed POST that notifies a client of the end of its task, its retries and its secret.

pub mod deliver;
mod receivers;
mod retry;
pub mod signature;
