//! Responses, OpenAI's newer format.

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
        "responses"
    }
    fn glance(&self, _: &[u8]) -> Result<Glance, Bad> {
        unreachable!()
    }
    fn read_request(&self, _: &[u8]) -> Result<hub::Request, Bad> {
        unreachable!()
    }
    fn write_request(&self, _: &hub::Request, _: &Target<'_>) -> Result<Written, Bad> {
        unreachable!()
    }
    fn forward_request(&self, _: &Bytes, _: &Glance, _: &Target<'_>) -> Result<Bytes, Bad> {
        unreachable!()
    }
    fn read_reply(&self, _: &[u8]) -> Result<hub::Reply, Garbled> {
        unreachable!()
    }
    fn write_reply(&self, _: &hub::Reply, _: &Rendering<'_>) -> Vec<u8> {
        unreachable!()
    }
    fn forward_reply(&self, _: &Bytes, _: &str) -> Result<Answer, Garbled> {
        unreachable!()
    }
    fn stream_reader(&self) -> Box<dyn StreamReader> {
        unreachable!()
    }
    fn stream_writer(&self, _: &Rendering<'_>) -> Box<dyn StreamWriter> {
        unreachable!()
    }
    fn forward_stream(&self, _: &Rendering<'_>) -> Box<dyn StreamForward> {
        unreachable!()
    }
    fn write_error(&self, _: &WireError) -> Vec<u8> {
        unreachable!()
    }
    fn read_error(&self, _: u16, _: &[u8]) -> ErrorWords {
        unreachable!()
    }
}
