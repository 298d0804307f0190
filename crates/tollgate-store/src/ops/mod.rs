//! The operations: one file each for users, keys, submissions, leases, attempts, ends, callbacks, chat requests.

pub(crate) mod access;
pub(crate) mod attempt;
pub(crate) mod callback;
pub(crate) mod chat;
pub(crate) mod end;
pub(crate) mod lease;
pub(crate) mod purge;
pub(crate) mod read;
pub(crate) mod submit;

#[cfg(test)]
mod plans;
