//! Fake providers of chat. Each refuses what the real one refuses, answers in the real shapes, and
//! can break in every way. Written from the descriptions of the wire formats alone, so that it is a
//! check on the gateway and not a mirror of it.
//!
//! What the fake models do: they answer `echo: …` with the last user text. A text that holds
//! `call tool NAME` calls that tool (two calls when it also says `twice`; with text before the calls
//! when it says `aloud`), `think` thinks where the request lets them, `[[fake:NAME]]` is a
//! [`Behaviour`]; the header `x-fake: NAME` is one too. Usage follows [`tokens`].
//!
//! To add a provider: a folder with its implementation of `provider::Api`, and a line in
//! `provider::PROVIDERS`.

mod anthropic;
mod behaviour;
mod bench;
mod delivery;
mod directive;
mod exchange;
mod fake;
mod gemini;
mod incoming;
mod media;
mod openai;
mod place;
mod plan;
mod provider;
mod refusal;
mod rng;
mod sample;
mod script;
mod shape;
mod socket;
mod tokens;

pub use behaviour::Behaviour;
pub use bench::Bench;
pub use fake::{Fake, Options, start};
pub use incoming::Seen;
pub use provider::Provider;
pub use tokens::{Tokens, tokens};
