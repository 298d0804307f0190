//! The kinds of picture there are, one per file.

mod hills;
mod orbits;
mod paper;
mod sea;
mod tiles;
mod waves;

use super::brush::Canvas;
use super::palette::Palette;
use super::seed::Dice;

/// Fills the whole canvas with opaque pixels.
type Scene = fn(&mut Canvas, &Palette, &mut Dice);

const SCENES: [Scene; 5] = [
    hills::draw,
    sea::draw,
    paper::draw,
    orbits::draw,
    tiles::draw,
];

/// Fills `canvas` with a scene that the dice choose.
pub(super) fn draw(canvas: &mut Canvas, palette: &Palette, dice: &mut Dice) {
    SCENES[dice.below(SCENES.len())](canvas, palette, dice);
}
