//! Responses, OpenAI's newer format, and SPEC.md's own spelling of it.

mod emit;
mod error;
mod forward;
mod forward_stream;
mod frame;
mod glance;
mod item;
mod opaque;
mod output;
mod reply;
mod request;
mod steps;
mod stream_read;
mod stream_write;
#[cfg(test)]
mod tests;
mod usage;
mod wire;

use bytes::Bytes;

use crate::error::{Bad, ErrorWords, Garbled, WireError};
use crate::format::{
    Answer, Format, Glance, Rendering, StreamForward, StreamReader, StreamWriter, Target, Written,
};
use crate::hub;

/// Responses, OpenAI's newer format.
pub struct Responses;

impl Format for Responses {
    fn name(&self) -> &'static str {
        wire::NAME
    }

    fn glance(&self, body: &[u8]) -> Result<Glance, Bad> {
        glance::glance(body)
    }

    fn read_request(&self, body: &[u8]) -> Result<hub::Request, Bad> {
        request::read_request(body)
    }

    fn write_request(&self, request: &hub::Request, target: &Target<'_>) -> Result<Written, Bad> {
        request::write_request(request, target)
    }

    fn forward_request(&self, body: &Bytes, _: &Glance, target: &Target<'_>) -> Result<Bytes, Bad> {
        forward::forward_request(body, target)
    }

    fn read_reply(&self, body: &[u8]) -> Result<hub::Reply, Garbled> {
        reply::read_reply(body)
    }

    fn write_reply(&self, reply: &hub::Reply, rendering: &Rendering<'_>) -> Vec<u8> {
        reply::write_reply(reply, rendering)
    }

    fn spec_reply(&self, bare: Vec<u8>) -> Vec<u8> {
        reply::spec_reply(bare)
    }

    fn forward_reply(&self, body: &Bytes, model: &str) -> Result<Answer, Garbled> {
        forward::forward_reply(body, model)
    }

    fn stream_reader(&self) -> Box<dyn StreamReader> {
        Box::new(stream_read::Reader::default())
    }

    fn stream_writer(&self, rendering: &Rendering<'_>) -> Box<dyn StreamWriter> {
        Box::new(stream_write::Writer::new(rendering))
    }

    fn forward_stream(&self, rendering: &Rendering<'_>) -> Box<dyn StreamForward> {
        Box::new(forward_stream::Forward::new(rendering))
    }

    fn write_error(&self, error: &WireError) -> Vec<u8> {
        error::write_error(error)
    }

    fn read_error(&self, status: u16, body: &[u8]) -> ErrorWords {
        error::read_error(status, body)
    }
}
