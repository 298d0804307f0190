//! Draws the prompt at the bottom of an image, with model and size below it, and the watermark.

use super::canvas::{Canvas, opaque, rounded, translucent};
use super::fill::VerticalGradient;
use super::palette::Palette;
use super::text::{self, Face, TextBlock, TextBox};

/// The texts of an image.
pub(super) struct Caption {
    /// The prompt without directives.
    pub(super) title: String,
    /// Model, size, number.
    pub(super) note: String,
    /// Whether a badge at the bottom right marks the image as generated.
    pub(super) watermark: bool,
    /// Whether the caption is drawn over a reference image, which may be bright, instead of a generated landscape.
    pub(super) over_reference: bool,
}

/// Images with a shorter side below this many pixels get no caption: it would not be legible.
const MIN_CAPTION_UNIT: f32 = 96.0;

/// Draws `caption`, `inset` pixels away from the sides.
pub(super) fn draw(canvas: &mut Canvas, palette: &Palette, caption: &Caption, inset: f32) {
    let mark = caption
        .watermark
        .then(|| WatermarkBadge::new(canvas, inset))
        .flatten();
    if canvas.unit >= MIN_CAPTION_UNIT {
        let mark_width = mark.as_ref().map_or(0.0, |mark| mark.width);
        draw_texts(canvas, palette, caption, inset, mark_width);
    }
    // The badge is drawn last, so that the dark gradient behind the caption does not cover it.
    if let Some(mark) = mark {
        mark.draw(canvas, palette);
    }
}

/// Draws title and note, the note beside a badge of `mark_width` pixels.
fn draw_texts(
    canvas: &mut Canvas,
    palette: &Palette,
    caption: &Caption,
    inset: f32,
    mark_width: f32,
) {
    let (width, height) = (canvas.width - 2.0 * inset, canvas.height);
    // Limits the line length on panoramas.
    let column = width.min(canvas.height * 2.2);
    let title_share = if canvas.width > 1.6 * canvas.height {
        0.62
    } else {
        0.46
    };
    let small = (canvas.unit * 0.020).max(9.0);
    let title = text::fit_text(
        &caption.title,
        Face::Title,
        TextBox {
            width: column,
            height: height * title_share,
            max_size: (canvas.width * canvas.height).sqrt().min(canvas.unit * 1.6) * 0.082,
            min_size: small * 1.25,
        },
    );
    let beside_mark = width - mark_width - small;
    let note = (beside_mark > small * 8.0)
        .then(|| {
            text::fit_text(
                &caption.note,
                Face::Note,
                TextBox {
                    width: beside_mark,
                    height: small * 1.6,
                    max_size: small,
                    min_size: small * 0.8,
                },
            )
        })
        .flatten();
    let blocks = (title.as_ref(), note.as_ref());
    draw_blocks(canvas, palette, inset, blocks, caption.over_reference);
}

/// Draws both blocks from the bottom upwards, over a dark gradient for contrast.
fn draw_blocks(
    canvas: &mut Canvas,
    palette: &Palette,
    inset: f32,
    (title, note): (Option<&TextBlock>, Option<&TextBlock>),
    over_reference: bool,
) {
    let bottom = canvas.height - inset;
    let note_height = note.map_or(0.0, TextBlock::height);
    let title_height = title.map_or(0.0, TextBlock::height);
    let gap = note.map_or(0.0, |note| note.size * 0.7);
    let top = bottom - note_height - gap - title_height;
    let bar = (canvas.unit * 0.011).max(2.0);
    darken(canvas, palette, top - bar * 4.0, over_reference);
    let ink = palette.ink;
    if let Some(path) = note.and_then(|note| note.path(inset, bottom - note_height)) {
        canvas.fill(&path, translucent(ink, 0.78));
    }
    let Some(title) = title else { return };
    if let Some(path) = title.path(inset, top) {
        canvas.fill(&path, opaque(ink));
    }
    // A short accent bar above the title.
    let length = (title.size * 0.9).min(title.width);
    if let Some(path) = rounded(inset, top - bar * 1.6, length, bar, bar) {
        canvas.fill(
            &path,
            opaque(palette.accent.mix(palette.second, 0.35).at(0.82)),
        );
    }
}

/// Darkens the canvas from `top` to its bottom, gradually at first.
fn darken(canvas: &mut Canvas, palette: &Palette, top: f32, over_reference: bool) {
    let height = canvas.height;
    let start = (top - (height - top) * 0.5).max(0.0);
    let full = ((top - start) / (height - start)).clamp(0.05, 0.9);
    // Reference images may be bright or contain text here.
    let dark = if over_reference {
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
    canvas.fill_gradient(&VerticalGradient::new(start, height, &stops));
}

/// The badge "AI generated" at the bottom right.
struct WatermarkBadge {
    block: TextBlock,
    x: f32,
    y: f32,
    width: f32,
    height: f32,
    pad: f32,
}

impl WatermarkBadge {
    /// The badge for `canvas`. `None` if its text does not fit.
    fn new(canvas: &Canvas, inset: f32) -> Option<Self> {
        let size = (canvas.unit * 0.022).max(8.0);
        let text_box = TextBox {
            width: canvas.width * 0.8,
            height: size * 2.0,
            max_size: size,
            min_size: size * 0.5,
        };
        let block = text::fit_text("AI generated", Face::Note, text_box)?;
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
            canvas.fill(&pill, translucent(palette.shade, 0.55));
        }
        if let Some(path) = self.block.path(x + self.pad, y + self.pad * 0.35) {
            canvas.fill(&path, translucent(palette.ink, 0.92));
        }
    }
}
