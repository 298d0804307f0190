//! A low sun over the sea, its light on the water, waves towards the front.

use tiny_skia::PathBuilder;

use super::waves::Line;
use crate::sandbox::picture::brush::{Canvas, push_rounded, rounded, veil, vertical};
use crate::sandbox::picture::palette::Palette;
use crate::sandbox::picture::seed::Dice;
use crate::sandbox::picture::wash::Ramp;

const WAVES: usize = 6;

pub(super) fn draw(canvas: &mut Canvas, palette: &Palette, dice: &mut Dice) {
    let (width, height, unit) = (canvas.width, canvas.height, canvas.unit);
    let horizon = height * dice.between(0.47, 0.56);
    canvas.sky(palette.sky, horizon);
    let x = width * dice.between(0.25, 0.75);
    let radius = unit * dice.between(0.14, 0.21);
    let y = horizon - radius * dice.between(0.05, 0.75);
    canvas.glow(x, y, radius * 4.2, palette.accent, 0.65);
    let rim = palette.accent.mix(palette.second, 0.45);
    let stops = [(0.0, palette.accent.solid()), (1.0, rim.solid())];
    canvas.disc(x, y, radius, vertical(y - radius, y + radius, &stops));
    banks(canvas, palette, dice, horizon);
    water(canvas, palette, horizon);
    glitter(canvas, palette, dice, (x, horizon, radius));
    for wave in 0..WAVES {
        let depth = wave as f32 / (WAVES - 1) as f32;
        let line = Line::new(dice, unit, 1.5 - 0.7 * depth, 2, 0.0);
        let base = horizon + (height - horizon) * (0.30 + 0.58 * depth.powf(1.1));
        let swing = unit * (0.010 + 0.022 * depth);
        let crest = palette.layer(0.35 + 0.65 * depth);
        let crest = crest.mix(palette.sky[2], 0.20 * (1.0 - depth));
        let trough = palette.layer(0.5 + 0.5 * depth);
        let stops = [(0.0, crest, 0.94), (1.0, trough, 0.94)];
        let ramp = Ramp::new(base - swing, base + unit * 0.16, &stops);
        canvas.land(|x| base - swing * line.at(x), &ramp, None);
    }
}

/// Banks of clouds: round strips stacked into heaps.
fn banks(canvas: &mut Canvas, palette: &Palette, dice: &mut Dice, horizon: f32) {
    let unit = canvas.unit;
    for _ in 0..2 + dice.below(3) {
        let x = canvas.width * dice.between(-0.05, 0.95);
        let y = horizon * dice.between(0.14, 0.72);
        let thick = unit * dice.between(0.022, 0.034);
        let mut length = unit * dice.between(0.30, 0.55);
        // One path, so that strips do not show where they overlap.
        let mut path = PathBuilder::new();
        for strip in 0..3 {
            let left = x + unit * dice.between(-0.09, 0.09) - length / 2.0;
            let top = y - thick * strip as f32;
            push_rounded(&mut path, left, top, length, thick * 1.3, thick);
            length *= dice.between(0.5, 0.75);
        }
        if let Some(path) = path.finish() {
            canvas.fill(&path, veil(palette.ink, 0.34));
        }
    }
}

fn water(canvas: &mut Canvas, palette: &Palette, horizon: f32) {
    let far = palette.layer(0.2).mix(palette.sky[2], 0.45);
    let stops = [
        (0.0, far, 1.0),
        (0.35, palette.layer(0.4), 1.0),
        (1.0, palette.layer(0.9), 1.0),
    ];
    let ramp = Ramp::new(horizon, canvas.height, &stops);
    canvas.land(|_| horizon, &ramp, None);
}

/// The sun's path over the water: short strips, sparser towards the front.
fn glitter(canvas: &mut Canvas, palette: &Palette, dice: &mut Dice, sun: (f32, f32, f32)) {
    let (x, horizon, radius) = sun;
    let reach = (canvas.height - horizon) * 0.85;
    let thick = canvas.unit * 0.0065;
    let mut y = horizon + thick;
    while y < horizon + reach {
        let down = (y - horizon) / reach;
        let length = radius * (1.7 - 0.9 * down) * dice.between(0.25, 1.0);
        let middle = x + radius * dice.between(-0.4, 0.4) * (0.4 + down);
        if let Some(path) = rounded(middle - length / 2.0, y, length, thick, thick) {
            canvas.fill(&path, veil(palette.accent, 0.85 * (1.0 - down)));
        }
        y += thick * (1.5 + 4.0 * down) * dice.between(0.8, 1.3);
    }
}
