//! Breaks shaped text into lines, as large as its box allows, and turns the lines into a path.

use harfrust::font::glyph::outline::{DrawMemory, DrawOptions, PathSink};
use tiny_skia::{Path, PathBuilder};

use super::fonts::{Face, Stack};
use super::shape::{Glyph, Piece, pieces};

/// From baseline to baseline, in ems.
const LINE: f32 = 1.2;
/// From the top of a block to its first baseline, in ems: a little over the capitals.
const RISE: f32 = 0.95;
const SPACE: f32 = 0.26;
/// Blocks of up to this many lines get lines of about equal length.
const BALANCED: usize = 6;

/// Where a text may stand and how large. All in pixels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) width: f32,
    pub(crate) height: f32,
    /// Size of an em at most.
    pub(crate) largest: f32,
    /// Size of an em at least; what does not fit then is cut off with an ellipsis.
    pub(crate) smallest: f32,
}

/// A text broken into lines.
pub(crate) struct Block {
    fonts: Stack,
    lines: Vec<Line>,
    /// Size of an em in pixels.
    pub(crate) size: f32,
    /// Width of the longest line in pixels.
    pub(crate) width: f32,
}

/// Glyphs at their places from the start of the line, in ems.
#[derive(Debug, Clone, Default)]
struct Line {
    glyphs: Vec<Glyph>,
    width: f32,
}

/// Sets `text` as large as `frame` allows. None where there is nothing to set or no room for a line.
pub(crate) fn set(text: &str, face: Face, frame: Frame) -> Option<Block> {
    let pieces = pieces(text, face);
    if pieces.is_empty() || frame.width <= 0.0 {
        return None;
    }
    let block = |lines: Vec<Line>, size: f32| Block {
        fonts: face.stack(),
        width: lines.iter().map(|l| l.width).fold(0.0, f32::max) * size,
        lines,
        size,
    };
    let longest = pieces.iter().map(|p| p.width).fold(0.0, f32::max);
    let mut size = frame.largest.max(frame.smallest);
    while size > frame.smallest {
        let measure = frame.width / size;
        // Words stay whole down to the smallest size.
        if longest <= measure {
            let lines = wrap(&pieces, measure);
            if height(lines.len()) * size <= frame.height {
                return Some(block(balance(&pieces, measure, lines), size));
            }
        }
        size *= 0.95;
    }
    let size = frame.smallest;
    let measure = frame.width / size;
    let mut lines = wrap(&pieces, measure);
    let fitting = (((frame.height / size) - height(1)) / LINE + 1.0).floor();
    if fitting < 1.0 {
        return None;
    }
    let fitting = fitting as usize;
    if lines.len() > fitting {
        lines.truncate(fitting);
        if let Some(last) = lines.last_mut() {
            cut_off(last, face, measure);
        }
    }
    Some(block(lines, size))
}

/// Height of so many lines in ems, from the capitals' top to below the last descender.
fn height(lines: usize) -> f32 {
    RISE + LINE * (lines.max(1) - 1) as f32 + 0.25
}

/// Fills lines of at most `measure` ems, one after the other. A piece wider than that is broken
/// wherever it must be.
fn wrap(pieces: &[Piece], measure: f32) -> Vec<Line> {
    let mut lines = vec![Line::default()];
    for piece in pieces {
        let line = lines.last_mut().expect("there is always a line");
        let gap = if piece.space && line.width > 0.0 {
            SPACE
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
            break_up(piece, measure, &mut lines);
        }
    }
    lines
}

/// Spreads a piece that is wider than a line over several, beginning on the last of `lines`.
fn break_up(piece: &Piece, measure: f32, lines: &mut Vec<Line>) {
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

/// The same number of lines in as narrow a column as they fit, which evens out their lengths.
fn balance(pieces: &[Piece], measure: f32, lines: Vec<Line>) -> Vec<Line> {
    if !(2..=BALANCED).contains(&lines.len()) {
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

/// Ends `line` in an ellipsis that still fits.
fn cut_off(line: &mut Line, face: Face, measure: f32) {
    let Some(dots) = pieces("…", face).pop() else {
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

impl Block {
    /// Its height in pixels.
    pub(crate) fn height(&self) -> f32 {
        height(self.lines.len()) * self.size
    }

    /// The outlines of all glyphs, the block's upper left corner at (`x`, `y`).
    pub(crate) fn path(&self, x: f32, y: f32) -> Option<Path> {
        let mut pen = Pen {
            path: PathBuilder::new(),
            x: 0.0,
            y: 0.0,
            scale: 1.0,
        };
        let outlines = self.fonts.map(|font| font.outline_glyphs());
        for (number, line) in self.lines.iter().enumerate() {
            let baseline = y + (RISE + LINE * number as f32) * self.size;
            for glyph in &line.glyphs {
                let Some(outline) = outlines[glyph.font].get(glyph.id) else {
                    continue;
                };
                let em = f32::from(self.fonts[glyph.font].units_per_em().max(1));
                pen.x = x + glyph.x * self.size;
                pen.y = baseline - glyph.y * self.size;
                pen.scale = self.size / em;
                // A glyph that cannot be drawn is left out: half its outline is still a path.
                let _ = outline.draw(&DrawOptions::new(), DrawMemory::default(), &mut pen);
            }
        }
        pen.path.finish()
    }
}

/// Carries outlines from font units, y upwards, to pixels, y downwards.
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

    /// Sets `text` and checks that every glyph lies inside the frame.
    fn check(text: &str, width: f32, height: f32) -> Block {
        let frame = Frame {
            width,
            height,
            largest: height.min(width) / 3.0,
            smallest: 10.0,
        };
        let block = set(text, Face::Title, frame).expect("it fits");
        assert!(block.height() <= height + 0.5, "{text}: {}", block.height());
        assert!(block.width <= width + 0.5, "{text}: {}", block.width);
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
    fn text_stays_in_its_frame() {
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
    }

    #[test]
    fn short_text_is_larger_than_long() {
        let long = "the quick brown fox jumps over the lazy dog ".repeat(10);
        assert!(check("Fox", 900.0, 400.0).size > 2.0 * check(&long, 900.0, 400.0).size);
    }

    #[test]
    fn lines_are_balanced() {
        let block = check("one two three four five six seven eight", 600.0, 400.0);
        let widths: Vec<f32> = block.lines.iter().map(|l| l.width).collect();
        let (least, most) = widths.iter().fold((f32::MAX, 0.0_f32), |(low, high), w| {
            (low.min(*w), high.max(*w))
        });
        assert!(least > 0.5 * most, "{widths:?}");
    }

    #[test]
    fn nothing_to_set_is_no_block() {
        let frame = Frame {
            width: 100.0,
            height: 100.0,
            largest: 20.0,
            smallest: 10.0,
        };
        assert!(set("  🦊 ", Face::Title, frame).is_none());
        assert!(
            set(
                "x",
                Face::Title,
                Frame {
                    height: 5.0,
                    ..frame
                }
            )
            .is_none()
        );
    }
}
