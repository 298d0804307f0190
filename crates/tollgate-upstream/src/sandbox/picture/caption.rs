//! The prompt's words at the foot of a picture, the small print under them, and the watermark.

use tiny_skia::Color;

use super::brush::{Canvas, flat, rounded, veil, vertical};
use super::palette::Palette;
use super::text::{self, Block, Face, Frame};

/// What stands in a picture.
pub(super) struct Caption {
    /// The prompt's words.
    pub(super) title: String,
    /// Model, size, number.
    pub(super) note: String,
    /// Whether there is a mark at the bottom right.
    pub(super) watermark: bool,
}

/// Pictures with a side below this many pixels have no room for legible words.
const TOO_SMALL: f32 = 96.0;

/// Sets `caption` into the canvas, `inset` pixels away from its sides.
pub(super) fn draw(canvas: &mut Canvas, palette: &Palette, caption: &Caption, inset: f32) {
    let mark = caption
        .watermark
        .then(|| watermark(canvas, palette, inset))
        .flatten();
    if canvas.unit < TOO_SMALL {
        return;
    }
    let (width, height) = (canvas.width - 2.0 * inset, canvas.height);
    // An eye that crosses a whole panorama loses the line.
    let column = width.min(canvas.height * 2.2);
    let room = if canvas.width > 1.6 * canvas.height {
        0.62
    } else {
        0.46
    };
    let small = (canvas.unit * 0.020).max(9.0);
    let title = text::set(
        &caption.title,
        Face::Title,
        Frame {
            width: column,
            height: height * room,
            largest: (canvas.width * canvas.height).sqrt().min(canvas.unit * 1.6) * 0.082,
            smallest: small * 1.25,
        },
    );
    let beside_mark = width - mark.map_or(0.0, |mark_width| mark_width + small);
    let note = (beside_mark > small * 8.0)
        .then(|| {
            text::set(
                &caption.note,
                Face::Note,
                Frame {
                    width: beside_mark,
                    height: small * 1.6,
                    largest: small,
                    smallest: small * 0.8,
                },
            )
        })
        .flatten();
    place(canvas, palette, inset, title.as_ref(), note.as_ref());
}

/// Draws the blocks from the foot upwards, over a veil that makes any picture dark enough.
fn place(
    canvas: &mut Canvas,
    palette: &Palette,
    inset: f32,
    title: Option<&Block>,
    note: Option<&Block>,
) {
    let foot = canvas.height - inset;
    let note_height = note.map_or(0.0, Block::height);
    let title_height = title.map_or(0.0, Block::height);
    let gap = note.map_or(0.0, |note| note.size * 0.7);
    let top = foot - note_height - gap - title_height;
    let bar = (canvas.unit * 0.011).max(2.0);
    shade(canvas, palette, top - bar * 4.0);
    let ink = palette.ink;
    if let Some(path) = note.and_then(|note| note.path(inset, foot - note_height)) {
        canvas.fill(&path, veil(ink, 0.78));
    }
    let Some(title) = title else { return };
    if let Some(path) = title.path(inset, top) {
        canvas.fill(&path, flat(ink));
    }
    // A short bar over the words, as magazines have it.
    let length = (title.size * 0.9).min(title.width);
    if let Some(path) = rounded(inset, top - bar * 1.6, length, bar, bar) {
        canvas.fill(
            &path,
            flat(palette.accent.mix(palette.second, 0.35).at(0.82)),
        );
    }
}

/// Darkens the canvas from `top` down to its foot, softly at first.
fn shade(canvas: &mut Canvas, palette: &Palette, top: f32) {
    let (width, height) = (canvas.width, canvas.height);
    let start = (top - (height - top) * 0.5).max(0.0);
    let full = ((top - start) / (height - start)).clamp(0.05, 0.9);
    let stops: Vec<(f32, Color)> = [(0.0, 0.0), (full * 0.5, 0.14), (full, 0.46), (1.0, 0.74)]
        .map(|(at, alpha)| (at, palette.shade.alpha(alpha)))
        .to_vec();
    let shader = vertical(start, height, &stops);
    canvas.rect(0.0, start, width, height - start, shader);
}

/// The mark at the bottom right; its width in pixels, or none where there is no room.
fn watermark(canvas: &mut Canvas, palette: &Palette, inset: f32) -> Option<f32> {
    let size = (canvas.unit * 0.022).max(8.0);
    let block = text::set(
        "AI generated",
        Face::Note,
        Frame {
            width: canvas.width * 0.8,
            height: size * 2.0,
            largest: size,
            smallest: size * 0.5,
        },
    )?;
    let pad = size * 0.7;
    let (width, height) = (block.width + 2.0 * pad, block.height() + pad * 0.7);
    let (x, y) = (
        canvas.width - inset - width,
        canvas.height - inset - height + pad * 0.35,
    );
    let pill = rounded(x, y, width, height, height / 2.0)?;
    canvas.fill(&pill, veil(palette.shade, 0.55));
    let path = block.path(x + pad, y + pad * 0.35)?;
    canvas.fill(&path, veil(palette.ink, 0.92));
    Some(width)
}
