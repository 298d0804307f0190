//! The running gateway: HTTP server, routes of the client API, chat, tasks and their workers, webhooks.

pub mod alerts;
pub mod auth;
pub mod background;
pub mod channel_test;
pub mod chat;
pub mod cluster;
pub mod fair_permits;
pub mod http;
pub mod image_upload;
pub mod list_blocks;
pub mod listener_role;
pub mod listeners;
pub mod logging;
pub mod metrics;
pub mod oidc;
pub mod otel;
pub mod pricing;
pub mod provider_keys;
pub mod quote;
pub mod redis;
pub mod reloadable;
pub mod router;
pub mod routes;
pub mod routing;
pub mod spawn;
pub mod state;
pub mod stored_channel;
pub mod supervise;
pub mod tail_hub;
pub mod tasks;
pub mod usage;
pub mod webhooks;

/// Declared here and not in the binary, so that code which runs for every allocation is optimised like the rest of this crate.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;
