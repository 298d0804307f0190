//! The fakes through their sockets: what they refuse, how they answer, how they break.

mod answers;
mod anthropic;
mod ark;
mod behaviours;
mod client;
mod control;
mod dashscope;
mod fal;
mod gemini;
mod gemini_media;
mod kling;
mod matrix;
mod media;
mod openai_chat;
mod openai_media;
mod openai_responses;
mod replicate;
mod said;
mod work;
mod xai;
