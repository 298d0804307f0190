//! Planets, their rings and their orbits, on a field of stars.

use tiny_skia::{PathBuilder, Rect, Transform};

use crate::sandbox::picture::brush::{Canvas, linear, radial, veil};
use crate::sandbox::picture::colour::Colour;
use crate::sandbox::picture::palette::Palette;
use crate::sandbox::picture::seed::Dice;
use crate::sandbox::picture::wash::Ramp;

pub(super) fn draw(canvas: &mut Canvas, palette: &Palette, dice: &mut Dice) {
    let (width, height, unit) = (canvas.width, canvas.height, canvas.unit);
    let deep = palette.sky[0].at(palette.sky[0].l.min(0.24));
    let far = palette.sky[1].at(palette.sky[1].l.min(0.36));
    let stops = [
        (0.0, palette.shade, 1.0),
        (0.55, deep, 1.0),
        (1.0, far, 1.0),
    ];
    canvas.wash(&Ramp::new(0.0, height, &stops));
    for _ in 0..3 {
        let (x, y) = (
            width * dice.between(0.0, 1.0),
            height * dice.between(0.0, 0.8),
        );
        let colour = palette.second.mix(palette.sky[1], dice.between(0.0, 1.0));
        canvas.glow(x, y, unit * dice.between(0.4, 0.75), colour, 0.20);
    }
    stars(canvas, palette, dice);
    let centre = (
        width * dice.between(0.36, 0.64),
        height * dice.between(0.34, 0.44),
    );
    let radius = unit * dice.between(0.20, 0.27);
    let tilt = dice.between(-32.0, 32.0);
    for orbit in 0..4 {
        let reach = radius * (1.9 + 0.62 * orbit as f32);
        ellipse(
            canvas,
            centre,
            (reach, reach * 0.34),
            tilt,
            |canvas, path| {
                canvas.stroke(&path, unit * 0.0016, palette.ink.alpha(0.30));
            },
        );
        moon(canvas, palette, dice, centre, reach, tilt);
    }
    let ringed = dice.chance(0.6);
    canvas.glow(centre.0, centre.1, radius * 2.6, palette.accent, 0.35);
    if ringed {
        ring(canvas, palette, centre, radius, (tilt, Half::Back));
    }
    planet(canvas, palette, dice, centre, radius);
    if ringed {
        ring(canvas, palette, centre, radius, (tilt, Half::Front));
    }
}

fn stars(canvas: &mut Canvas, palette: &Palette, dice: &mut Dice) {
    let area = canvas.width * canvas.height / (canvas.unit * canvas.unit);
    let count = (130.0 * area.min(4.0)) as usize;
    for _ in 0..count {
        let (x, y) = (
            canvas.width * dice.between(0.0, 1.0),
            canvas.height * dice.between(0.0, 1.0),
        );
        // Many faint, few bright.
        let size = dice.between(0.0, 1.0).powi(4);
        let radius = canvas.unit * (0.0007 + 0.0026 * size);
        canvas.disc(x, y, radius.max(0.5), veil(palette.ink, 0.3 + 0.6 * size));
    }
}

/// A moon somewhere on an orbit.
fn moon(
    canvas: &mut Canvas,
    palette: &Palette,
    dice: &mut Dice,
    centre: (f32, f32),
    reach: f32,
    tilt: f32,
) {
    let (sin, cos) = dice.between(0.0, std::f32::consts::TAU).sin_cos();
    let (turn_sin, turn_cos) = tilt.to_radians().sin_cos();
    let (along, across) = (reach * cos, reach * 0.34 * sin);
    let x = centre.0 + along * turn_cos - across * turn_sin;
    let y = centre.1 + along * turn_sin + across * turn_cos;
    let radius = canvas.unit * dice.between(0.010, 0.030);
    let colour = palette
        .layer(0.1)
        .mix(palette.second, dice.between(0.0, 0.9));
    ball(canvas, (x, y), radius, colour, palette);
}

/// A ball lit from the upper left.
fn ball(canvas: &mut Canvas, at: (f32, f32), radius: f32, colour: Colour, palette: &Palette) {
    let stops = [
        (0.0, colour.mix(palette.ink, 0.55).solid()),
        (0.35, colour.solid()),
        (1.0, colour.mix(palette.shade, 0.80).solid()),
    ];
    let (x, y) = (at.0 - radius * 0.38, at.1 - radius * 0.42);
    canvas.disc(at.0, at.1, radius, radial(x, y, radius * 1.55, &stops));
}

fn planet(
    canvas: &mut Canvas,
    palette: &Palette,
    dice: &mut Dice,
    centre: (f32, f32),
    radius: f32,
) {
    let (x, y) = centre;
    let colour = palette.accent.mix(palette.second, dice.between(0.35, 0.75));
    ball(canvas, centre, radius, colour, palette);
    // Bands are chords across the disc, shaded like it by their own gradient.
    for _ in 0..5 {
        let from = dice.between(-0.85, 0.8);
        let to = (from + dice.between(0.05, 0.16)).min(0.95);
        let half = |at: f32| radius * (1.0 - at * at).sqrt();
        let mut path = PathBuilder::new();
        path.move_to(x - half(from), y + radius * from);
        let bulge = radius * 0.07;
        path.quad_to(
            x,
            y + radius * from + bulge,
            x + half(from),
            y + radius * from,
        );
        path.quad_to(
            x + half(f32::midpoint(from, to)) * 1.004,
            y + radius * f32::midpoint(from, to),
            x + half(to),
            y + radius * to,
        );
        path.quad_to(x, y + radius * to + bulge, x - half(to), y + radius * to);
        path.close();
        if let Some(path) = path.finish() {
            let tone = if dice.chance(0.5) {
                palette.ink
            } else {
                palette.shade
            };
            let stops = [(0.0, tone.alpha(0.20)), (1.0, tone.alpha(0.05))];
            let shader = linear((x - radius, 0.0), (x + radius, 0.0), &stops);
            canvas.fill(&path, shader);
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Half {
    Back,
    Front,
}

/// One half of the rings: the back half is drawn before the planet, the front half after it.
fn ring(
    canvas: &mut Canvas,
    palette: &Palette,
    centre: (f32, f32),
    radius: f32,
    (tilt, half): (f32, Half),
) {
    /// Handle length of a quarter circle of radius 1.
    const ARC: f32 = 0.552_3;
    for (reach, share, alpha) in [(1.45, 0.10, 0.85), (1.63, 0.06, 0.6), (1.76, 0.02, 0.4)] {
        let wide = radius * reach;
        let narrow = wide * if half == Half::Front { 0.26 } else { -0.26 };
        let thick = radius * share;
        // A band between two half ellipses that meet at the ends: as thin there as it would look.
        let (inner_wide, inner_narrow) = (wide - thick, narrow * (wide - thick * 1.6) / wide);
        let mut path = PathBuilder::new();
        path.move_to(wide, 0.0);
        path.cubic_to(wide, narrow * ARC, wide * ARC, narrow, 0.0, narrow);
        path.cubic_to(-wide * ARC, narrow, -wide, narrow * ARC, -wide, 0.0);
        path.line_to(-inner_wide, 0.0);
        let (w, n) = (inner_wide, inner_narrow);
        path.cubic_to(-w, n * ARC, -w * ARC, n, 0.0, n);
        path.cubic_to(w * ARC, n, w, n * ARC, w, 0.0);
        path.close();
        let place = Transform::from_rotate(tilt).post_translate(centre.0, centre.1);
        if let Some(path) = path.finish().and_then(|path| path.transform(place)) {
            canvas.fill(&path, veil(palette.ink.mix(palette.accent, 0.5), alpha));
        }
    }
}

/// Hands a turned ellipse to `with`.
fn ellipse(
    canvas: &mut Canvas,
    centre: (f32, f32),
    radii: (f32, f32),
    tilt: f32,
    with: impl Fn(&mut Canvas, tiny_skia::Path),
) {
    let place = Transform::from_rotate(tilt).post_translate(centre.0, centre.1);
    let oval = Rect::from_xywh(-radii.0, -radii.1, 2.0 * radii.0, 2.0 * radii.1)
        .and_then(PathBuilder::from_oval)
        .and_then(|path| path.transform(place));
    if let Some(path) = oval {
        with(canvas, path);
    }
}
