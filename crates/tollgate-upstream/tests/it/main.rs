//! Tests the adapters and the HTTP client through their public interfaces.

mod adapter;
mod cases;
mod chat;
mod contract;
mod credentials;
mod egress;
mod fakes;
mod field_support;
mod fixture_server;
mod jobs;
mod outcome;
mod pool;
mod sent_request;
mod tls;
