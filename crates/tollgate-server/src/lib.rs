//! The gateway: HTTP server, routes, chat, tasks and their workers, webhooks, configuration and the command line.

pub mod admin;
pub mod auth;
pub mod chat;
pub mod cli;
pub mod clock_sync;
pub mod config;
pub mod config_sync;
pub mod fair_permits;
pub mod http;
pub mod logging;
pub mod metrics;
pub mod openapi;
pub mod pricing;
pub mod providers;
pub mod quote;
pub mod reloadable;
pub mod router;
pub mod routes;
pub mod routing;
pub mod state;
pub mod storage;
pub mod supervise;
pub mod tasks;
pub mod webhooks;
