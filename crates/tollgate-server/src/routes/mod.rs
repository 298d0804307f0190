//! The handlers of the API's paths: each reads its request and calls the module that handles it. `erased_handler` is shared by all routes.

pub mod balance;
pub mod chat;
pub mod erased_handler;
mod extract;
pub mod fallback;
pub mod files;
pub mod health;
pub mod images;
pub mod models;
pub mod quote;
pub mod speech;
pub mod tasks;
pub mod uploads;
pub mod videos;
pub mod webhooks;
