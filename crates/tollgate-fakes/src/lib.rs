//! Fake providers of chat and media. Each refuses what the real one refuses, answers in the real
//! shapes, and can break in every way. Written from the descriptions of the wire formats alone, so
//! that it is a check on the gateway and not a mirror of it.
//!
//! What the fake models of chat do: they answer `echo: …` with the last user text. A text that holds
//! `call tool NAME` calls that tool (two calls when it also says `twice`; with text before the calls
//! when it says `aloud`), `think` thinks where the request lets them. Usage follows [`tokens`].
//!
//! What the fake models of media do: pictures of one colour, films of one grey, silence; files that
//! every reader takes, of the size and length asked for. A task is done at its first poll, unless
//! [`Options`] or the request say otherwise. Links to results lead to the fake itself.
//!
//! `[[fake:NAME]]` in a text is a [`Behaviour`]; the header `x-fake: NAME` is one too. A text may hold
//! several. `NAME@poll`, `NAME@cancel` and `NAME@file` wait for that [`Stage`] of the work that is
//! asked for; `NAME*2` and `NAME@poll*2` are for the first two requests only.
//!
//! To add a provider: a folder with its implementation of `provider::Api`, and a line in
//! `provider::PROVIDERS`.

mod anthropic;
mod ark;
mod behaviour;
mod bench;
mod clock;
mod course;
mod dashscope;
mod delivery;
mod desk;
mod directive;
mod exchange;
mod fake;
mod fal;
mod files;
mod gemini;
mod given;
mod hosted;
mod incoming;
mod kling;
mod made;
mod measure;
mod media;
mod openai;
mod orders;
mod parts;
mod pixels;
mod place;
mod plan;
mod provider;
mod refusal;
mod replicate;
mod reply;
mod rng;
mod sample;
mod script;
mod shape;
mod socket;
mod tasks;
mod tokens;
mod xai;

pub use behaviour::Behaviour;
pub use bench::Bench;
pub use directive::Stage;
pub use fake::{Fake, Options, start};
pub use incoming::Seen;
pub use parts::Part;
pub use provider::Provider;
pub use tasks::{Polls, Spread};
pub use tokens::{Tokens, tokens};
