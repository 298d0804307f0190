//! Chats over real HTTP: the four formats against the sandbox and against fakes of the three vendors, which reject the same requests as the real
//! ones.

mod format;
mod join;
mod providers;
mod request;

mod allowed;
mod bills;
mod channels;
mod charges;
mod delivered;
mod endless;
mod failures;
mod forced_tools;
mod interrupted;
mod many_nodes;
mod reconcile;
mod rejected;
mod sandbox;
mod search;
mod spenders;
mod thoughts;
mod threads;
mod translation;
mod upstream;
