//! Shapes text into pieces of positioned glyphs; lines break between pieces.

use harfrust::{Buffer, GlyphId, ShapeOptions, ShaperFont, shape};

use super::fonts::Face;

/// Characters beyond this number are ignored: more would not be legible in any image.
const MAX_CHARS: usize = 6000;

/// One glyph. Lengths are in ems.
#[derive(Debug, Clone, Copy)]
pub(super) struct Glyph {
    /// The index of the font in the face's stack.
    pub(super) font: usize,
    pub(super) id: GlyphId,
    /// Distance from the start of its piece.
    pub(super) x: f32,
    /// Height above the baseline.
    pub(super) y: f32,
    pub(super) advance: f32,
}

/// A run of glyphs that a line break does not split: a word, or one CJK character with its punctuation.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    pub(super) glyphs: Vec<Glyph>,
    /// The width in ems.
    pub(super) width: f32,
    /// Whether a space precedes it.
    pub(super) space: bool,
}

/// The pieces of `text`, without characters that no font contains (emoji).
pub(super) fn shape_pieces(text: &str, face: Face) -> Vec<Piece> {
    let fonts = face.stack();
    let charmaps = fonts.map(|font| font.charmap());
    let font_of = |c: char| {
        let covers = |map: &harfrust::font::charmap::Charmap<'_>| {
            map.map_unicode(c).is_some_and(|glyph| glyph.to_u32() != 0)
        };
        charmaps.iter().position(covers)
    };
    let mut shaper = Shaper {
        shapers: fonts.map(ShaperFont::new),
        pieces: Vec::new(),
    };
    let mut word: Vec<(char, usize)> = Vec::new();
    let mut space = false;
    for c in text.chars().take(MAX_CHARS) {
        if c.is_whitespace() || c.is_control() {
            shaper.push_word(&mut word, space);
            space = true;
            continue;
        }
        let Some(font) = font_of(c) else { continue };
        let breaks = word.last().is_some_and(|&(before, _)| may_break(before, c));
        if breaks {
            shaper.push_word(&mut word, space);
            space = false;
        }
        word.push((c, font));
        if word.len() == 1 && shaper.pieces.is_empty() {
            space = false;
        }
    }
    shaper.push_word(&mut word, space);
    shaper.pieces
}

/// Shapes words into pieces.
struct Shaper<'a> {
    shapers: [ShaperFont<'a, 'a>; 2],
    pieces: Vec<Piece>,
}

impl Shaper<'_> {
    /// Adds the piece of `word` and clears it. Does nothing if it is empty.
    fn push_word(&mut self, word: &mut Vec<(char, usize)>, space: bool) {
        if word.is_empty() {
            return;
        }
        let mut piece = Piece {
            glyphs: Vec::with_capacity(word.len()),
            width: 0.0,
            space,
        };
        for run in word.chunk_by(|a, b| a.1 == b.1) {
            self.shape_run(run, &mut piece);
        }
        word.clear();
        self.pieces.push(piece);
    }

    /// Appends a run of characters of one font.
    fn shape_run(&self, run: &[(char, usize)], piece: &mut Piece) {
        let font = run[0].1;
        let shaper = &self.shapers[font];
        let mut buffer = Buffer::new();
        buffer.push_str(&run.iter().map(|(c, _)| c).collect::<String>());
        buffer.guess_segment_properties();
        // Right-to-left scripts need no support, because no embedded font contains one.
        buffer.set_direction(harfrust::Direction::LeftToRight);
        if shape(shaper, &mut buffer, ShapeOptions::new()).is_err() {
            return;
        }
        let em = f32::from(shaper.units_per_em().max(1));
        for (info, position) in buffer.glyph_infos().iter().zip(buffer.glyph_positions()) {
            let advance = position.x_advance as f32 / em;
            piece.glyphs.push(Glyph {
                font,
                id: GlyphId::new(info.glyph_id),
                x: piece.width + position.x_offset as f32 / em,
                y: position.y_offset as f32 / em,
                advance,
            });
            piece.width += advance;
        }
    }
}

/// Whether a line may break between two characters without a space between them.
fn may_break(before: char, after: char) -> bool {
    if NEVER_FIRST.contains(after) || NEVER_LAST.contains(before) {
        return false;
    }
    is_ideographic(before) || is_ideographic(after) || matches!(before, '-' | '–' | '—' | '/')
}

const NEVER_FIRST: &str =
    "，。！？、；：）》〉」』】〕”’…—～·,.!?;:)]}%ー々ぁぃぅぇぉっゃゅょァィゥェォッャュョ";
const NEVER_LAST: &str = "（《〈「『【〔“‘([{#$";

/// Characters of scripts written without spaces, so not Hangul.
fn is_ideographic(c: char) -> bool {
    matches!(c, '\u{2E80}'..='\u{312F}' | '\u{3190}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{FE30}'..='\u{FE4F}' | '\u{FF00}'..='\u{FFEF}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(text: &str) -> usize {
        shape_pieces(text, Face::Title).len()
    }

    #[test]
    fn lines_may_break_between_words_and_ideographs() {
        assert_eq!(count("a quick  fox\n"), 3);
        assert_eq!(count("山水"), 2);
        assert_eq!(count("山水。"), 2, "a full stop stays with its character");
        assert_eq!(count("《山》"), 1);
        assert_eq!(count("한국어 글"), 2);
        assert_eq!(count("blue山"), 2);
    }

    #[test]
    fn characters_that_no_font_has_are_ignored() {
        assert_eq!(count("🦊🦊🦊"), 0);
        assert_eq!(count("a 🦊 fox"), 2);
        assert_eq!(count("fo🦊x"), 1);
        assert_eq!(count("\u{0}\u{7}\u{FFFF}"), 0);
    }

    #[test]
    fn letters_are_kerned() {
        let width = |text| shape_pieces(text, Face::Title)[0].width;
        assert!(width("AV") < width("A") + width("V"));
    }
}
