//! Image-to-image: tints the first reference image, and draws the others on it as cards.

use tiny_skia::{
    ColorU8, FilterQuality, IntSize, Paint, Pattern, Pixmap, Rect, Shader, SpreadMode, Transform,
};

use super::canvas::{Canvas, push_rounded, translucent};
use super::fill::VerticalGradient;
use super::palette::Palette;
use super::rng::Rng;
use tollgate_upstream::raster::Raster;

/// A reference image as a tiny-skia pixmap (premultiplied alpha). `None` if a side is 0.
pub(super) fn to_pixmap(raster: Raster) -> Option<Pixmap> {
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

/// Tints the reference image that fills `canvas` in the palette's colours and draws a ring on it, so that results differ
/// from the reference and from one another.
pub(super) fn tint(canvas: &mut Canvas, palette: &Palette, rng: &mut Rng) {
    let (width, height, unit) = (canvas.width, canvas.height, canvas.unit);
    let light = palette.accent.mix(palette.second, rng.between(0.0, 1.0));
    let stops = [
        (0.0, light, 0.30),
        (0.5, palette.sky[1], 0.10),
        (1.0, palette.layers[4], 0.34),
    ];
    canvas.fill_gradient(&VerticalGradient::new(0.0, height, &stops));
    let (x, y) = (
        width * rng.between(0.25, 0.75),
        height * rng.between(0.2, 0.5),
    );
    let radius = unit * rng.between(0.16, 0.30);
    canvas.glow(x, y, radius * 2.4, palette.accent, 0.28);
    if let Some(ring) = tiny_skia::PathBuilder::from_circle(x, y, radius) {
        canvas.stroke(&ring, unit * 0.008, palette.ink.alpha(0.75));
    }
    canvas.disc(x, y, radius * 0.93, translucent(palette.second, 0.16));
}

/// The side of the square that each of `count` cards fits into on a canvas of this size, in pixels.
pub(super) fn max_card_side(width: f32, height: f32, count: usize) -> f32 {
    let (columns, rows) = grid(width, height, count);
    (width * 0.92 / columns as f32)
        .min(height * 0.46 / rows as f32)
        .min(width.min(height) * 0.30)
}

/// Draws `cards` in a grid at the top of the canvas, slightly rotated.
pub(super) fn draw(canvas: &mut Canvas, cards: &[Pixmap], palette: &Palette, rng: &mut Rng) {
    let (width, height) = (canvas.width, canvas.height);
    let side = max_card_side(width, height, cards.len());
    let (columns, _) = grid(width, height, cards.len());
    for (number, card) in cards.iter().enumerate() {
        let column = number % columns;
        let row = number / columns;
        let x = width - side * (columns - column) as f32 + side * 0.5 - width * 0.03;
        let y = height * 0.03 + side * (row as f32 + 0.5);
        draw_card(canvas, card, palette, (x, y), rng.between(-5.0, 5.0));
    }
}

/// The number of columns and of rows of `count` cards, for a grid in the upper half of the canvas.
fn grid(width: f32, height: f32, count: usize) -> (usize, usize) {
    let ratio = (width / (height * 0.5)).max(0.1);
    let columns = ((count as f32 * ratio).sqrt().ceil() as usize).clamp(1, count.max(1));
    (columns, count.div_ceil(columns).max(1))
}

/// Draws one card with white border and shadow, rotated by `tilt` degrees, its centre at `at`.
fn draw_card(canvas: &mut Canvas, card: &Pixmap, palette: &Palette, at: (f32, f32), tilt: f32) {
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
            canvas.fill(&shadow, translucent(palette.shade, 0.10));
        }
    }
    canvas.fill(&frame, translucent(palette.ink.at(0.985), 1.0));
    let Some(area) = Rect::from_xywh(0.0, 0.0, width, height) else {
        return;
    };
    let paint = Paint {
        shader: card_pattern(card),
        anti_alias: true,
        ..Paint::default()
    };
    canvas.pixmap.fill_rect(area, &paint, turn, None);
}

fn card_pattern(card: &Pixmap) -> Shader<'_> {
    Pattern::new(
        card.as_ref(),
        SpreadMode::Pad,
        FilterQuality::Bilinear,
        1.0,
        Transform::identity(),
    )
}
