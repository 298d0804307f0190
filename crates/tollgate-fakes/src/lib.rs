//! Fake providers for tests. Each rejects the requests that the real provider rejects, sends responses in its formats, and can simulate every kind of
//! failure. Written from the providers' documentation alone, so that they check the gateway and do not mirror it.
//!
//! A provider is a file in `providers/`: schemas, rules, errors, endpoints, responses, streams and task records, which the engine in `tables` reads.
//! Only what is the same for all providers is code: HTTP, scenarios, tasks, files, and the model that generates chat responses.
//!
//! That model responds with `echo: …` and the last user text. A text with `call tool NAME` makes it call that tool (two calls if the text also
//! contains `twice`; with text before the calls if it contains `aloud`; with these arguments if it contains `call tool NAME with {…}`), and `think`
//! makes it think if the request allows that. Usage follows [`tokens()`], and [`ReceivedRequest::billed`] is what the provider bills, which the usage
//! APIs of OpenAI and Anthropic report. Media are images of one colour, videos of one grey and silent audio, of the size and length requested. A task
//! has succeeded at its first poll, unless [`Options`] or the request specify otherwise. Links to results lead to the fake.
//!
//! `[[fake:NAME]]` in a prompt selects a [`Scenario`]; so does the header `x-fake: NAME`. A text may contain several. `NAME@poll`, `NAME@cancel` and
//! `NAME@file` apply at that [`Stage`] of the work; `NAME*2` and `NAME@poll*2` apply to the first two requests only.
//!
//! To add a provider, add a file in `providers/`, a line in `provider.rs`, and requests in `tests/cases`.

mod bench;
mod bill;
mod body;
mod chat_output;
mod clock;
mod directive;
mod encoding;
mod event_stream;
mod exchange;
mod fake;
mod form;
mod image_input;
mod instructions;
mod lock;
mod media_context;
mod media_files;
mod media_response;
mod options;
mod pixels;
mod provider;
mod rejection;
mod request;
mod response;
mod result_files;
mod rng;
mod sample;
mod scenario;
mod shared;
mod signed_token;
mod socket;
mod tables;
mod tasks;
mod tokens;
mod usage_report;
mod work_plan;

pub use directive::Stage;
pub use fake::{Fake, start};
pub use form::Part;
pub use options::{Bench, Options};
pub use provider::Provider;
pub use request::ReceivedRequest;
pub use scenario::Scenario;
pub use tasks::{Distribution, PollReport};
pub use tokens::{Tokens, tokens};
