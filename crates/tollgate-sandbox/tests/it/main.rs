//! Tests of the sandbox's providers, called through the public traits as the server calls them.

mod chat;
mod harness;
mod images;
mod references;
mod speech_files;
mod video_files;
