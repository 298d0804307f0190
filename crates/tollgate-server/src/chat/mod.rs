//! Text chat: what surrounds the relay. The story itself is `relay.rs`.

pub mod bill;
pub mod count;
pub mod live;
pub mod memory;
pub mod models;
pub mod mount;
pub mod pictures;
pub mod prepare;
pub mod refused;
pub mod whole;
