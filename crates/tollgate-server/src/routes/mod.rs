//! The handlers, thin: parse, call, shape. `router.rs` is their table of contents.

pub mod balance;
pub mod callbacks;
pub mod chat;
pub mod files;
pub mod health;
pub mod images;
pub mod models;
pub mod pages;
pub mod speech;
pub mod tasks;
pub mod uploads;
pub mod videos;
