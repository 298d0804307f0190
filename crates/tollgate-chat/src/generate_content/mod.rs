//! Generate content, Google's format.
//!
//! Model and method stand in the path ([`path`]), so [`Glance::model`] is none and [`Glance::stream`] false. Names are
//! lowerCamelCase on the wire; requests may spell them in snake_case. The wire's odd sides and where they are dealt with:
//!
//! | | |
//! |---|---|
//! | two dialects of schemas | [`schema`] |
//! | function responses: one content, one per call, same order, always objects | `write/turns.rs` |
//! | signatures on parts | `sign.rs` |
//! | calls without ids | `ids.rs` |
//! | a tool call ends with STOP; a blocked prompt has no candidates | `finish.rs` |
//! | citations counted in bytes | `grounding.rs` |
//! | streams that SDKs parse line by line, without any filler but an empty line | `stream_write.rs` |
//! | the end is known only when the body ends | `stream_read.rs`, `forward.rs` |

mod count;
mod error;
mod fields;
mod finish;
mod forward;
mod glance;
mod grounding;
mod ids;
mod logprobs;
pub mod path;
mod read;
mod reply;
pub mod schema;
mod sign;
mod stream_read;
mod stream_write;
mod usage;
mod wire;
mod write;

use bytes::Bytes;

use crate::error::{Bad, ErrorWords, Garbled, WireError};
use crate::format::{
    Answer, Format, Glance, Rendering, StreamForward, StreamReader, StreamWriter, Target, Written,
};
use crate::hub;

pub use count::{count_reply, count_request};

/// Generate content, Google's format.
pub struct GenerateContent;

/// The format's name.
const NAME: &str = "generate-content";
/// The vendor whose signatures this format's own upstreams understand.
const VENDOR: &str = "gemini";

impl Format for GenerateContent {
    fn name(&self) -> &'static str {
        NAME
    }

    fn glance(&self, body: &[u8]) -> Result<Glance, Bad> {
        glance::glance(body)
    }

    fn read_request(&self, body: &[u8]) -> Result<hub::Request, Bad> {
        read::read_request(body)
    }

    fn write_request(&self, request: &hub::Request, target: &Target<'_>) -> Result<Written, Bad> {
        write::write_request(request, target)
    }

    fn takes_url(&self, part: &hub::Kind, traits: &hub::ModelTraits) -> bool {
        write::takes_url(part, traits)
    }

    fn forward_request(
        &self,
        body: &Bytes,
        glance: &Glance,
        target: &Target<'_>,
    ) -> Result<Bytes, Bad> {
        forward::request(body, glance, target)
    }

    fn read_reply(&self, body: &[u8]) -> Result<hub::Reply, Garbled> {
        reply::read(body)
    }

    fn write_reply(&self, reply: &hub::Reply, rendering: &Rendering<'_>) -> Vec<u8> {
        reply::write(reply, rendering)
    }

    fn forward_reply(&self, body: &Bytes, model: &str) -> Result<Answer, Garbled> {
        forward::reply(body, model)
    }

    fn stream_reader(&self) -> Box<dyn StreamReader> {
        Box::<stream_read::Reader>::default()
    }

    fn stream_writer(&self, rendering: &Rendering<'_>) -> Box<dyn StreamWriter> {
        Box::new(stream_write::Writer::new(rendering))
    }

    fn forward_stream(&self, rendering: &Rendering<'_>) -> Box<dyn StreamForward> {
        Box::new(forward::Stream::new(rendering))
    }

    fn write_error(&self, error: &WireError) -> Vec<u8> {
        error::write(error)
    }

    fn read_error(&self, status: u16, body: &[u8]) -> ErrorWords {
        error::read(status, body)
    }
}
