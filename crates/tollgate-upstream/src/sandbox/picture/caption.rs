//! The prompt's words at the foot of a picture, the small print under them, and the watermark.

use super::brush::{Canvas, flat, rounded, veil};
use super::palette::Palette;
use super::text::{self, Block, Face, Frame};
use super::wash::Ramp;

/// What stands in a picture.
pub(super) struct Caption {
    /// The prompt's words.
    pub(super) title: String,
    /// Model, size, number.
    pub(super) note: String,
    /// Whether there is a mark at the bottom right.
    pub(super) watermark: bool,
    /// Whether it stands on a reference and not on a scene of ours.
    pub(super) over_picture: bool,
}

/// Pictures with a side below this many pixels have no room for legible words.
const TOO_SMALL: f32 = 96.0;

/// Sets `caption` into the canvas, `inset` pixels away from its sides.
pub(super) fn draw(canvas: &mut Canvas, palette: &Palette, caption: &Caption, inset: f32) {
    let mark = caption
        .watermark
        .then(|| Mark::new(canvas, inset))
        .flatten();
    if canvas.unit >= TOO_SMALL {
        let mark_width = mark.as_ref().map_or(0.0, |mark| mark.width);
        words(canvas, palette, caption, inset, mark_width);
    }
    // Last, so that no veil dims it.
    if let Some(mark) = mark {
        mark.draw(canvas, palette);
    }
}

/// Sets title and small print, the latter beside a mark `mark_width` pixels wide.
fn words(canvas: &mut Canvas, palette: &Palette, caption: &Caption, inset: f32, mark_width: f32) {
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
    let beside_mark = width - mark_width - small;
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
    let blocks = (title.as_ref(), note.as_ref());
    place(canvas, palette, inset, blocks, caption.over_picture);
}

/// Draws the blocks from the foot upwards, over a veil that makes any picture dark enough.
fn place(
    canvas: &mut Canvas,
    palette: &Palette,
    inset: f32,
    (title, note): (Option<&Block>, Option<&Block>),
    over_picture: bool,
) {
    let foot = canvas.height - inset;
    let note_height = note.map_or(0.0, Block::height);
    let title_height = title.map_or(0.0, Block::height);
    let gap = note.map_or(0.0, |note| note.size * 0.7);
    let top = foot - note_height - gap - title_height;
    let bar = (canvas.unit * 0.011).max(2.0);
    shade(canvas, palette, top - bar * 4.0, over_picture);
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
fn shade(canvas: &mut Canvas, palette: &Palette, top: f32, over_picture: bool) {
    let height = canvas.height;
    let start = (top - (height - top) * 0.5).max(0.0);
    let full = ((top - start) / (height - start)).clamp(0.05, 0.9);
    // Pictures of others may have words and faces where ours go.
    let dark = if over_picture {
        [0.30, 0.90, 0.95]
    } else {
        [0.14, 0.46, 0.74]
    };
    let stops = [
        (0.0, palette.shade, 0.0),
        (full * 0.5, palette.shade, dark[0]),
        (full, palette.shade, dark[1]),
        (1.0, palette.shade, dark[2]),
    ];
    canvas.wash(&Ramp::new(start, height, &stops));
}

/// The mark at the bottom right.
struct Mark {
    block: Block,
    x: f32,
    y: f32,
    width: f32,
    height: f32,
    pad: f32,
}

impl Mark {
    /// None where there is no room for it.
    fn new(canvas: &Canvas, inset: f32) -> Option<Self> {
        let size = (canvas.unit * 0.022).max(8.0);
        let frame = Frame {
            width: canvas.width * 0.8,
            height: size * 2.0,
            largest: size,
            smallest: size * 0.5,
        };
        let block = text::set("AI generated", Face::Note, frame)?;
        let pad = block.size * 0.7;
        let (width, height) = (block.width + 2.0 * pad, block.height() + pad * 0.7);
        Some(Self {
            x: canvas.width - inset - width,
            y: canvas.height - inset - height + pad * 0.35,
            width,
            height,
            pad,
            block,
        })
    }

    fn draw(&self, canvas: &mut Canvas, palette: &Palette) {
        let (x, y) = (self.x, self.y);
        if let Some(pill) = rounded(x, y, self.width, self.height, self.height / 2.0) {
            canvas.fill(&pill, veil(palette.shade, 0.55));
        }
        if let Some(path) = self.block.path(x + self.pad, y + self.pad * 0.35) {
            canvas.fill(&path, veil(palette.ink, 0.92));
        }
    }
}
