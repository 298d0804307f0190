//! Tests of the fakes: the engine, and rows of requests with what becomes of them.

mod cases;
mod client;
mod control;
mod exchanges;
mod work;
