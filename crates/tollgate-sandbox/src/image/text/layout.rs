//! Breaks shaped text into lines at the largest size that fits its box, and converts the lines to a path.

use harfrust::font::glyph::outline::{DrawMemory, DrawOptions, PathSink};
use tiny_skia::{Path, PathBuilder};

use super::fonts::{Face, FontStack};
use super::shape::{Glyph, Piece, shape_pieces};

/// Distance of two baselines, in ems.
const LINE_HEIGHT: f32 = 1.2;
/// Distance from the top of a block to its first baseline, in ems: slightly more than the height of capitals.
const FIRST_BASELINE: f32 = 0.95;
/// Width of a space, in ems.
const SPACE_WIDTH: f32 = 0.26;
/// Blocks of at most this many lines get lines of about equal length.
const MAX_BALANCED_LINES: usize = 6;

/// The size limits of a text block, in pixels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TextBox {
    pub(crate) width: f32,
    pub(crate) height: f32,
    /// The largest em size.
    pub(crate) max_size: f32,
    /// The smallest em size. Text that does not fit at this size is truncated with an ellipsis.
    pub(crate) min_size: f32,
}

/// A text broken into lines.
pub(crate) struct TextBlock {
    fonts: FontStack,
    lines: Vec<Line>,
    /// The em size in pixels.
    pub(crate) size: f32,
    /// Width of the longest line in pixels.
    pub(crate) width: f32,
}

/// One line; positions from its start, in ems.
#[derive(Debug, Clone, Default)]
struct Line {
    glyphs: Vec<Glyph>,
    width: f32,
}

/// Lays out `text` as large as `text_box` allows. `None` if no font has any of its characters, or not one line fits.
pub(crate) fn fit_text(text: &str, face: Face, text_box: TextBox) -> Option<TextBlock> {
    let pieces = shape_pieces(text, face);
    if pieces.is_empty() || text_box.width <= 0.0 {
        return None;
    }
    let block = |lines: Vec<Line>, size: f32| TextBlock {
        fonts: face.stack(),
        width: lines.iter().map(|l| l.width).fold(0.0, f32::max) * size,
        lines,
        size,
    };
    let longest = pieces.iter().map(|p| p.width).fold(0.0, f32::max);
    let mut size = text_box.max_size.max(text_box.min_size);
    while size > text_box.min_size {
        let measure = text_box.width / size;
        // Words are broken only at the smallest size.
        if longest <= measure {
            let lines = wrap(&pieces, measure);
            if height(lines.len()) * size <= text_box.height {
                return Some(block(balance(&pieces, measure, lines), size));
            }
        }
        size *= 0.95;
    }
    let size = text_box.min_size;
    let measure = text_box.width / size;
    let mut lines = wrap(&pieces, measure);
    let fitting = (((text_box.height / size) - height(1)) / LINE_HEIGHT + 1.0).floor();
    if fitting < 1.0 {
        return None;
    }
    let fitting = fitting as usize;
    if lines.len() > fitting {
        lines.truncate(fitting);
        if let Some(last) = lines.last_mut() {
            truncate_with_ellipsis(last, face, measure);
        }
    }
    Some(block(lines, size))
}

/// The height of `lines` lines in ems, descenders included.
fn height(lines: usize) -> f32 {
    FIRST_BASELINE + LINE_HEIGHT * (lines.max(1) - 1) as f32 + 0.25
}

/// Breaks `pieces` into lines of at most `measure` ems. A wider piece is split between glyphs.
fn wrap(pieces: &[Piece], measure: f32) -> Vec<Line> {
    let mut lines = vec![Line::default()];
    for piece in pieces {
        let line = lines.last_mut().expect("there is always a line");
        let gap = if piece.space && line.width > 0.0 {
            SPACE_WIDTH
        } else {
            0.0
        };
        if line.width + gap + piece.width <= measure {
            line.width += gap;
            line.push(piece);
            continue;
        }
        if line.width > 0.0 {
            lines.push(Line::default());
        }
        if piece.width <= measure {
            lines.last_mut().expect("just pushed").push(piece);
        } else {
            split_wide_piece(piece, measure, &mut lines);
        }
    }
    lines
}

/// Splits a piece that is wider than `measure` over several lines, beginning on the last of `lines`.
fn split_wide_piece(piece: &Piece, measure: f32, lines: &mut Vec<Line>) {
    for glyph in &piece.glyphs {
        let line = lines.last().expect("there is always a line");
        if line.width > 0.0 && line.width + glyph.advance > measure {
            lines.push(Line::default());
        }
        let line = lines.last_mut().expect("there is always a line");
        line.glyphs.push(Glyph {
            x: line.width,
            ..*glyph
        });
        line.width += glyph.advance;
    }
}

/// Narrows the column as far as the number of lines allows, which evens out their lengths.
fn balance(pieces: &[Piece], measure: f32, lines: Vec<Line>) -> Vec<Line> {
    if !(2..=MAX_BALANCED_LINES).contains(&lines.len()) {
        return lines;
    }
    let longest = pieces.iter().map(|p| p.width).fold(0.0, f32::max);
    let (mut low, mut high) = (longest.max(measure * 0.4), measure);
    let mut best = lines;
    for _ in 0..10 {
        let middle = f32::midpoint(low, high);
        let tried = wrap(pieces, middle);
        if tried.len() <= best.len() {
            best = tried;
            high = middle;
        } else {
            low = middle;
        }
    }
    best
}

/// Removes glyphs from the end of `line` until an ellipsis fits, and appends it.
fn truncate_with_ellipsis(line: &mut Line, face: Face, measure: f32) {
    let Some(dots) = shape_pieces("…", face).pop() else {
        return;
    };
    while line.width + dots.width > measure {
        let Some(glyph) = line.glyphs.pop() else {
            break;
        };
        line.width = glyph.x;
    }
    line.push(&dots);
}

impl Line {
    fn push(&mut self, piece: &Piece) {
        let start = self.width;
        self.glyphs.extend(piece.glyphs.iter().map(|glyph| Glyph {
            x: start + glyph.x,
            ..*glyph
        }));
        self.width += piece.width;
    }
}

impl TextBlock {
    /// Its height in pixels.
    pub(crate) fn height(&self) -> f32 {
        height(self.lines.len()) * self.size
    }

    /// The outlines of all glyphs, with the upper left corner of the block at (`x`, `y`). `None` if there are none.
    pub(crate) fn path(&self, x: f32, y: f32) -> Option<Path> {
        let mut pen = Pen {
            path: PathBuilder::new(),
            x: 0.0,
            y: 0.0,
            scale: 1.0,
        };
        let outlines = self.fonts.map(|font| font.outline_glyphs());
        for (number, line) in self.lines.iter().enumerate() {
            let baseline = y + (FIRST_BASELINE + LINE_HEIGHT * number as f32) * self.size;
            for glyph in &line.glyphs {
                let Some(outline) = outlines[glyph.font].get(glyph.id) else {
                    continue;
                };
                let em = f32::from(self.fonts[glyph.font].units_per_em().max(1));
                pen.x = x + glyph.x * self.size;
                pen.y = baseline - glyph.y * self.size;
                pen.scale = self.size / em;
                // If an outline is broken, the part before the error is drawn.
                let _ = outline.draw(&DrawOptions::new(), DrawMemory::default(), &mut pen);
            }
        }
        pen.path.finish()
    }
}

/// Converts outlines from font units (y up) to pixels (y down).
struct Pen {
    path: PathBuilder,
    x: f32,
    y: f32,
    scale: f32,
}

impl Pen {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + x * self.scale, self.y - y * self.scale)
    }
}

impl PathSink for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, cx0: f32, cy0: f32, x: f32, y: f32) {
        let (cx0, cy0) = self.at(cx0, cy0);
        let (x, y) = self.at(x, y);
        self.path.quad_to(cx0, cy0, x, y);
    }

    fn curve_to(&mut self, cx0: f32, cy0: f32, cx1: f32, cy1: f32, x: f32, y: f32) {
        let (cx0, cy0) = self.at(cx0, cy0);
        let (cx1, cy1) = self.at(cx1, cy1);
        let (x, y) = self.at(x, y);
        self.path.cubic_to(cx0, cy0, cx1, cy1, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_box(width: f32, height: f32) -> TextBox {
        TextBox {
            width,
            height,
            max_size: height.min(width) / 3.0,
            min_size: 10.0,
        }
    }

    /// Lays out `text` and checks that every glyph lies inside the box.
    fn check(text: &str, width: f32, height: f32) -> TextBlock {
        let block = fit_text(text, Face::Title, text_box(width, height)).expect("it fits");
        assert!(
            block.height() <= height + 0.5 && block.width <= width + 0.5,
            "{text}"
        );
        let bounds = block.path(0.0, 0.0).expect("it has outlines").bounds();
        assert!(
            bounds.left() > -3.0 && bounds.right() < width + 3.0,
            "{text}: {bounds:?}"
        );
        assert!(
            bounds.top() > -3.0 && bounds.bottom() < height + 3.0,
            "{text}: {bounds:?}"
        );
        block
    }

    #[test]
    fn text_fits_into_its_box() {
        let long = "the quick brown fox jumps over the lazy dog ".repeat(40);
        let url = "https://example.com/".to_owned() + &"a".repeat(300);
        for text in [
            "Fox",
            "a red fox in the snow",
            "雪山里的红狐狸，夕阳。",
            &long,
            &url,
        ] {
            for (width, height) in [
                (900.0, 400.0),
                (120.0, 2000.0),
                (3000.0, 90.0),
                (60.0, 40.0),
            ] {
                check(text, width, height);
            }
        }
        assert!(check("Fox", 900.0, 400.0).size > 2.0 * check(&long, 900.0, 400.0).size);
        assert!(
            fit_text("  🦊 ", Face::Title, text_box(100.0, 100.0)).is_none(),
            "no glyphs"
        );
        assert!(
            fit_text("x", Face::Title, text_box(100.0, 5.0)).is_none(),
            "no space"
        );
    }

    #[test]
    fn lines_are_balanced() {
        let block = check("one two three four five six seven eight", 600.0, 400.0);
        let widths = || block.lines.iter().map(|line| line.width);
        let (min, max) = (
            widths().fold(f32::MAX, f32::min),
            widths().fold(0.0, f32::max),
        );
        assert!(min > 0.5 * max, "{min} {max}");
    }
}
