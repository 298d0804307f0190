//! Tests of the format as a whole: what it reads, writes and passes on.

mod forward;
mod garbage;
mod glance;
mod order;
mod replies;
mod requests;
mod streams;

use serde_json::Value;

use super::Responses;
use crate::format::{Format, Rendering, Target, Written};
use crate::hub::{ModelTraits, Request};

fn rendering() -> Rendering<'static> {
    Rendering {
        model: "client-model",
        created: 1_700_000_000,
        seed: "seed",
        include_usage: false,
        prompt_estimate: 0,
        request: None,
        json_array: false,
    }
}

fn target(traits: &ModelTraits) -> Target<'_> {
    Target {
        model: "upstream-model",
        stream: false,
        traits,
        default_max_tokens: 4096,
    }
}

fn read(body: &Value) -> Request {
    let body = body.to_string();
    Responses
        .read_request(body.as_bytes())
        .unwrap_or_else(|bad| panic!("{bad}: {body}"))
}

/// What `request` is for an upstream that takes everything.
fn written(request: &Request) -> (Value, Written) {
    written_for(request, &ModelTraits::default())
}

fn written_for(request: &Request, traits: &ModelTraits) -> (Value, Written) {
    let written = Responses.write_request(request, &target(traits)).unwrap();
    (serde_json::from_slice(&written.body).unwrap(), written)
}
