//! The gateway: routes, workers, configuration and the command line.

pub mod access;
pub mod app;
pub mod blobs;
pub mod cli;
pub mod config;
pub mod data_dir;
pub mod delivery;
pub mod errors;
pub mod http;
pub mod idempotency;
pub mod inputs;
pub mod limits;
pub mod listen;
pub mod log;
pub mod metrics;
pub mod openapi;
pub mod pricing;
pub mod records;
pub mod router;
pub mod routes;
pub mod routing;
pub mod run;
pub mod safety;
pub mod submit;
pub mod task_view;
pub mod workers;
