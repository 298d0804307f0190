//! Gateways on one database and one Redis, which is killed, frozen, emptied and cut off.

mod cut_off;
mod limits;
mod messages;
mod permits;
