//! Webhooks: the signed POST that tells a client that its task has ended, its retries and its secret.

pub mod deliver;
mod receivers;
mod retry;
pub mod signature;
