//! Image-to-image: the first reference is the ground, the others lie on it as cards.

use tiny_skia::{
    ColorU8, FilterQuality, IntSize, Paint, Pattern, Pixmap, Rect, Shader, SpreadMode, Transform,
};

use super::brush::{Canvas, push_rounded, veil};
use super::palette::Palette;
use super::seed::Dice;
use super::wash::Ramp;
use crate::raster::Raster;

/// A reference as tiny-skia wants it: alpha multiplied in.
pub(super) fn pixmap(raster: Raster) -> Option<Pixmap> {
    let size = IntSize::from_wh(raster.size.width, raster.size.height)?;
    let mut rgba = raster.rgba;
    for pixel in rgba.chunks_exact_mut(4) {
        if let [red, green, blue, alpha @ ..=254] = *pixel {
            let colour = ColorU8::from_rgba(red, green, blue, alpha).premultiply();
            pixel[..3].copy_from_slice(&[colour.red(), colour.green(), colour.blue()]);
        }
    }
    Pixmap::from_vec(rgba, size)
}

/// Grades the reference that fills `canvas` into the palette's colours and lays a ring over it, so
/// that the result is seen to be made from it and to differ from picture to picture.
pub(super) fn grade(canvas: &mut Canvas, palette: &Palette, dice: &mut Dice) {
    let (width, height, unit) = (canvas.width, canvas.height, canvas.unit);
    let light = palette.accent.mix(palette.second, dice.between(0.0, 1.0));
    let stops = [
        (0.0, light, 0.30),
        (0.5, palette.sky[1], 0.10),
        (1.0, palette.layers[4], 0.34),
    ];
    canvas.wash(&Ramp::new(0.0, height, &stops));
    let (x, y) = (
        width * dice.between(0.25, 0.75),
        height * dice.between(0.2, 0.5),
    );
    let radius = unit * dice.between(0.16, 0.30);
    canvas.glow(x, y, radius * 2.4, palette.accent, 0.28);
    if let Some(ring) = tiny_skia::PathBuilder::from_circle(x, y, radius) {
        canvas.stroke(&ring, unit * 0.008, palette.ink.alpha(0.75));
    }
    canvas.disc(x, y, radius * 0.93, veil(palette.second, 0.16));
}

/// Width and height of the field a card may take, in pixels, when `count` cards lie on a canvas of
/// this size.
pub(super) fn card_room(width: f32, height: f32, count: usize) -> f32 {
    let (columns, rows) = grid(width, height, count);
    (width * 0.92 / columns as f32)
        .min(height * 0.46 / rows as f32)
        .min(width.min(height) * 0.30)
}

/// Lays `cards` on the upper part of the canvas, like photographs on a table.
pub(super) fn lay(canvas: &mut Canvas, cards: &[Pixmap], palette: &Palette, dice: &mut Dice) {
    let (width, height) = (canvas.width, canvas.height);
    let room = card_room(width, height, cards.len());
    let (columns, _) = grid(width, height, cards.len());
    for (number, card) in cards.iter().enumerate() {
        let column = number % columns;
        let row = number / columns;
        let x = width - room * (columns - column) as f32 + room * 0.5 - width * 0.03;
        let y = height * 0.03 + room * (row as f32 + 0.5);
        place(canvas, card, palette, (x, y), dice.between(-5.0, 5.0));
    }
}

fn grid(width: f32, height: f32, count: usize) -> (usize, usize) {
    let ratio = (width / (height * 0.5)).max(0.1);
    let columns = ((count as f32 * ratio).sqrt().ceil() as usize).clamp(1, count.max(1));
    (columns, count.div_ceil(columns).max(1))
}

/// One card with its white border and shadow, turned by `tilt` degrees around its middle.
fn place(canvas: &mut Canvas, card: &Pixmap, palette: &Palette, at: (f32, f32), tilt: f32) {
    let (width, height) = (card.width() as f32, card.height() as f32);
    let border = (width.max(height) * 0.045).max(1.0);
    let turn = Transform::from_translate(-width / 2.0, -height / 2.0)
        .post_concat(Transform::from_rotate(tilt))
        .post_translate(at.0, at.1);
    let mut frame = tiny_skia::PathBuilder::new();
    push_rounded(
        &mut frame,
        -border,
        -border,
        width + 2.0 * border,
        height + 2.0 * border,
        border * 0.6,
    );
    let Some(frame) = frame.finish().and_then(|path| path.transform(turn)) else {
        return;
    };
    for step in 1..=4 {
        let shift = Transform::from_translate(0.0, border * 0.3 * step as f32);
        if let Some(shadow) = frame.clone().transform(shift) {
            canvas.fill(&shadow, veil(palette.shade, 0.10));
        }
    }
    canvas.fill(&frame, veil(palette.ink.at(0.985), 1.0));
    let Some(area) = Rect::from_xywh(0.0, 0.0, width, height) else {
        return;
    };
    let paint = Paint {
        shader: picture(card),
        anti_alias: true,
        ..Paint::default()
    };
    canvas.pixmap.fill_rect(area, &paint, turn, None);
}

fn picture(card: &Pixmap) -> Shader<'_> {
    Pattern::new(
        card.as_ref(),
        SpreadMode::Pad,
        FilterQuality::Bilinear,
        1.0,
        Transform::identity(),
    )
}
