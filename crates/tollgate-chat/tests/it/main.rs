//! Tests of the chat formats through the crate's public interface.
//!
//! `golden` translates every case of every format into every format; `cases` runs the tables in `tests/cases`; `properties` checks what
//! holds for any input in all formats; `error_docs` compares docs/errors.md. Expected outcomes are data:
//! `TOLLGATE_BLESS=1 cargo test -p tollgate-chat` rewrites them; read the diff before committing it.

mod cases;
mod dropped_fields;
mod error_docs;
mod generators;
mod golden;
mod harness;
mod properties;
mod stream_order;
