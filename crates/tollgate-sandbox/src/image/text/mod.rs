//! Text layout: shapes text, breaks it into lines, finds the largest size that fits a box, returns the outlines.

mod fonts;
mod layout;
mod shape;

pub(super) use fonts::Face;
pub(super) use layout::{TextBlock, TextBox, fit_text};
