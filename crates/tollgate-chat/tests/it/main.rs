//! Tests of the chat formats through the crate's public face.

mod golden;
