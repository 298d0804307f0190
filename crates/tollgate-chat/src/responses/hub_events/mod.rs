//! Converts an upstream's output items into hub events, emitting each piece of content once.

mod completion;
mod deltas;

pub(super) use deltas::{HubEventBuilder, PartList};
