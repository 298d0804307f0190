//! The fakes through their sockets: what they refuse, how they answer, how they break.

mod answers;
mod anthropic;
mod behaviours;
mod client;
mod control;
mod gemini;
mod openai_chat;
mod openai_responses;
mod said;
