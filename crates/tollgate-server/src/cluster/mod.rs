//! What nodes that share a database know about each other: which are alive and which leads, whether their clocks, programs and settings agree, and
//! which configuration of the database each applies (docs/nodes.md).

pub mod clock_sync;
pub mod config_sync;
pub mod heartbeat;
pub mod live_nodes;
pub mod node_inbox;
pub mod peers;
pub mod permit_sync;
pub mod readiness;
pub mod replica;
