//! Ranges of hills behind one another in the mist, a sun above them, pines on the nearest.

use tiny_skia::PathBuilder;

use super::waves::Line;
use crate::sandbox::picture::brush::{Canvas, flat, push_rounded, veil};
use crate::sandbox::picture::colour::Colour;
use crate::sandbox::picture::palette::Palette;
use crate::sandbox::picture::seed::Dice;
use crate::sandbox::picture::wash::Ramp;

const RANGES: usize = 6;

pub(super) fn draw(canvas: &mut Canvas, palette: &Palette, dice: &mut Dice) {
    let (width, height, unit) = (canvas.width, canvas.height, canvas.unit);
    let horizon = height * dice.between(0.46, 0.56);
    canvas.sky(palette.sky, horizon * 1.15);
    let sun = (
        width * dice.between(0.22, 0.78),
        horizon * dice.between(0.45, 0.85),
    );
    let radius = unit * dice.between(0.065, 0.13);
    canvas.glow(sun.0, sun.1, radius * 5.5, palette.accent, 0.6);
    canvas.disc(sun.0, sun.1, radius, flat(palette.accent));
    clouds(canvas, palette, dice, horizon);
    let peaks = dice.between(0.55, 1.0);
    for range in 0..RANGES {
        let depth = range as f32 / (RANGES - 1) as f32;
        let line = Line::new(
            dice,
            unit,
            0.55 + 0.35 * (1.0 - depth),
            if range < 3 { 6 } else { 4 },
            peaks * (1.0 - depth).powf(0.7),
        );
        let base = horizon + (height - horizon) * (0.04 + 0.76 * depth.powf(1.15));
        let swing = unit * (0.11 - 0.05 * depth);
        let ridge = |x: f32| base - swing * line.at(x);
        let colour = palette.layer(depth);
        if range == RANGES - 1 {
            pines(canvas, &ridge, colour, dice);
        }
        // Mist gathers at the foot of each range, less of it nearby.
        let mist = colour.mix(palette.sky[2], 0.55 * (1.0 - depth).powf(1.3));
        let foot = base + (height - horizon) * 0.30;
        canvas.land(
            ridge,
            &Ramp::between(base - swing, foot, colour, mist),
            None,
        );
    }
}

/// A few thin long clouds.
fn clouds(canvas: &mut Canvas, palette: &Palette, dice: &mut Dice, horizon: f32) {
    for _ in 0..2 + dice.below(4) {
        let x = canvas.width * dice.between(-0.1, 0.9);
        let y = horizon * dice.between(0.12, 0.7);
        let length = canvas.unit * dice.between(0.25, 0.7);
        let thick = canvas.unit * dice.between(0.010, 0.022);
        // One path, so that strips do not show where they overlap.
        let mut path = PathBuilder::new();
        for strip in 0..3 {
            let left = x + length * dice.between(-0.2, 0.25);
            let top = y + thick * 1.25 * strip as f32;
            push_rounded(
                &mut path,
                left,
                top,
                length * dice.between(0.45, 1.0),
                thick,
                thick,
            );
        }
        if let Some(path) = path.finish() {
            canvas.fill(&path, veil(palette.ink, 0.24));
        }
    }
}

/// Pines in groups along `ridge`.
fn pines(canvas: &mut Canvas, ridge: &dyn Fn(f32) -> f32, colour: Colour, dice: &mut Dice) {
    let unit = canvas.unit;
    let mut path = PathBuilder::new();
    let mut x = -unit * 0.05;
    while x < canvas.width + unit * 0.05 {
        let tall = unit * dice.between(0.05, 0.13);
        pine(&mut path, x, ridge(x) + tall * 0.12, tall);
        x += if dice.chance(0.82) {
            unit * dice.between(0.018, 0.05)
        } else {
            unit * dice.between(0.15, 0.45)
        };
    }
    if let Some(path) = path.finish() {
        canvas.fill(&path, flat(colour));
    }
}

/// One pine of `tall` pixels that stands at (`x`, `foot`): four tiers, wider towards the ground.
fn pine(path: &mut PathBuilder, x: f32, foot: f32, tall: f32) {
    const TIERS: usize = 4;
    let top = foot - tall;
    for tier in 0..TIERS {
        let from = top + tall * 0.2 * tier as f32;
        let to = top + tall * (0.34 + 0.2 * tier as f32);
        let half = tall * (0.07 + 0.055 * tier as f32);
        path.move_to(x, from);
        path.line_to(x + half, to);
        path.line_to(x - half, to);
        path.close();
    }
}
