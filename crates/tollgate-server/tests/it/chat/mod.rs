//! Chats over real HTTP: the four formats against the sandbox and against fakes of the three vendors, which refuse what the
//! real ones refuse.

mod site;
mod talk;
mod wire;

mod bad;
mod broken;
mod channels;
mod ends;
mod matrix;
mod money;
mod sandbox;
