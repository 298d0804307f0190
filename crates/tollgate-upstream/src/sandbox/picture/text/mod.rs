//! Sets text: breaks it into lines, finds the largest size that fits a box, draws the outlines.

mod fonts;
mod layout;
mod shape;

pub(super) use fonts::Face;
pub(super) use layout::{Block, Frame, set};
