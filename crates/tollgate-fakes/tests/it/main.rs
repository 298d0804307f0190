//! The fakes through their sockets: what they reject, how they answer, how they break.

mod answers;
mod cases;
mod client;
mod control;
mod matrix;
mod media;
mod said;
mod scenarios;
mod work;
