//! The scene of every generated image: hill ranges in mist, a sun above them, pines on the nearest range.

use tiny_skia::PathBuilder;

use super::canvas::{Canvas, opaque, push_rounded, translucent};
use super::colour::Colour;
use super::fill::VerticalGradient;
use super::palette::Palette;
use super::ridge::Ridge;
use super::rng::Rng;

const RANGES: usize = 6;

/// Fills the whole canvas with opaque pixels.
pub(super) fn draw(canvas: &mut Canvas, palette: &Palette, rng: &mut Rng) {
    let (width, height, unit) = (canvas.width, canvas.height, canvas.unit);
    let horizon = height * rng.between(0.46, 0.56);
    canvas.fill_sky(palette.sky, horizon * 1.15);
    let sun = (
        width * rng.between(0.22, 0.78),
        horizon * rng.between(0.45, 0.85),
    );
    let radius = unit * rng.between(0.065, 0.13);
    canvas.glow(sun.0, sun.1, radius * 5.5, palette.accent, 0.6);
    canvas.disc(sun.0, sun.1, radius, opaque(palette.accent));
    draw_clouds(canvas, palette, rng, horizon);
    let sharpness = rng.between(0.55, 1.0);
    for range in 0..RANGES {
        let depth = range as f32 / (RANGES - 1) as f32;
        let line = Ridge::new(
            rng,
            unit,
            0.55 + 0.35 * (1.0 - depth),
            if range < 3 { 6 } else { 4 },
            sharpness * (1.0 - depth).powf(0.7),
        );
        let base = horizon + (height - horizon) * (0.04 + 0.76 * depth.powf(1.15));
        let swing = unit * (0.11 - 0.05 * depth);
        let ridge = |x: f32| base - swing * line.at(x);
        let colour = palette.layer(depth);
        if range == RANGES - 1 {
            draw_pines(canvas, &ridge, colour, rng);
        }
        // Mist at the bottom of each range, less of it on near ones.
        let mist = colour.mix(palette.sky[2], 0.55 * (1.0 - depth).powf(1.3));
        let foot = base + (height - horizon) * 0.30;
        canvas.fill_below(
            ridge,
            &VerticalGradient::between(base - swing, foot, colour, mist),
        );
    }
}

/// Draws a few thin, long clouds.
fn draw_clouds(canvas: &mut Canvas, palette: &Palette, rng: &mut Rng, horizon: f32) {
    for _ in 0..2 + rng.below(4) {
        let x = canvas.width * rng.between(-0.1, 0.9);
        let y = horizon * rng.between(0.12, 0.7);
        let length = canvas.unit * rng.between(0.25, 0.7);
        let thick = canvas.unit * rng.between(0.010, 0.022);
        // One path, so that overlapping strips are not blended twice.
        let mut path = PathBuilder::new();
        for strip in 0..3 {
            let left = x + length * rng.between(-0.2, 0.25);
            let top = y + thick * 1.25 * strip as f32;
            push_rounded(
                &mut path,
                left,
                top,
                length * rng.between(0.45, 1.0),
                thick,
                thick,
            );
        }
        if let Some(path) = path.finish() {
            canvas.fill(&path, translucent(palette.ink, 0.24));
        }
    }
}

/// Draws groups of pines along `ridge`.
fn draw_pines(canvas: &mut Canvas, ridge: &dyn Fn(f32) -> f32, colour: Colour, rng: &mut Rng) {
    let unit = canvas.unit;
    let mut path = PathBuilder::new();
    let mut x = -unit * 0.05;
    while x < canvas.width + unit * 0.05 {
        let tall = unit * rng.between(0.05, 0.13);
        push_pine(&mut path, x, ridge(x) + tall * 0.12, tall);
        x += if rng.chance(0.82) {
            unit * rng.between(0.018, 0.05)
        } else {
            unit * rng.between(0.15, 0.45)
        };
    }
    if let Some(path) = path.finish() {
        canvas.fill(&path, opaque(colour));
    }
}

/// Adds one pine of `tall` pixels whose base is at (`x`, `foot`): four tiers, wider towards the ground.
fn push_pine(path: &mut PathBuilder, x: f32, foot: f32, tall: f32) {
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
