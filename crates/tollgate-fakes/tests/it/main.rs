//! Tests of the fakes: the engine, and tables of requests with their expected outcome.

mod cases;
mod client;
mod control;
mod exchanges;
mod work;
