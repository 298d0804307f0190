//! Sets words to music: how long each sound lasts, and at what pitch.

use super::LONGEST;
use super::letters::{Stop, Tone, Word};
use super::phones::{self, Phone, SILENCE};

/// A sound with its length and melody.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Note {
    /// What the throat does.
    pub(super) phone: Phone,
    /// Seconds.
    pub(super) length: f64,
    /// Pitch at its beginning and its end, as multiples of the voice's own.
    pub(super) pitch: (f64, f64),
}

/// Silence before the first word and after the last, in milliseconds.
const MARGIN: (f64, f64) = (60.0, 160.0);
/// Length of a syllable with a tone, in milliseconds.
const SYLLABLE: f64 = 200.0;

/// The notes of `words`, `speed` times as fast as usual, or faster where they would take too long.
pub(super) fn set(words: &[Word], speed: f64) -> Vec<Note> {
    let mut notes = vec![pause(MARGIN.0)];
    for phrase in words.split_inclusive(|word| word.stop > Stop::Nothing) {
        sing(phrase, &mut notes);
        notes.push(pause(match phrase.last().map(|word| word.stop) {
            Some(Stop::Short) => 170.0,
            Some(Stop::Long | Stop::Question) => 340.0,
            Some(Stop::Nothing) | None => 0.0,
        }));
    }
    notes.push(pause(MARGIN.1));
    let total: f64 = notes.iter().map(|note| note.length).sum();
    let factor = speed.max(total / LONGEST.as_secs_f64());
    for note in &mut notes {
        note.length /= factor;
    }
    notes
}

/// Adds the notes of words that are said in one breath, from high to low.
fn sing(phrase: &[Word], notes: &mut Vec<Note>) {
    let asks = phrase
        .last()
        .is_some_and(|word| word.stop == Stop::Question);
    let count = phrase.len() as f64;
    for (at, word) in phrase.iter().enumerate() {
        let is_last = at + 1 == phrase.len();
        let slope = |at: usize| 1.10 - 0.20 * at as f64 / count;
        let (mut start, mut end) = (slope(at), slope(at + 1));
        let contour = match word.tone {
            Tone::Free => (1.0, 1.0),
            Tone::High => (1.14, 1.14),
            Tone::Rising => (0.93, 1.20),
            Tone::Low => (0.88, 0.80),
            Tone::Falling => (1.26, 0.84),
        };
        (start, end) = (start * contour.0, end * contour.1);
        if is_last && asks {
            end *= 1.4;
        } else if is_last {
            end *= 0.90;
        }
        say(word, is_last, (start, end), notes);
    }
}

/// Adds the notes of one word, whose pitch goes from `pitch.0` to `pitch.1`.
fn say(word: &Word, is_last: bool, pitch: (f64, f64), notes: &mut Vec<Note>) {
    let sounds: Vec<Phone> = phones::spell(&word.sounds).collect();
    let total: f64 = sounds.iter().map(|phone| phone.ms).sum();
    let stretch = match word.tone {
        Tone::Free => 1.0,
        _ => SYLLABLE / total,
    };
    let last_vowel = sounds.iter().rposition(Phone::is_vowel);
    let first_vowel = sounds.iter().position(Phone::is_vowel);
    let mut passed = 0.0;
    for (at, phone) in sounds.iter().enumerate() {
        let along = |ms: f64| pitch.0 + (pitch.1 - pitch.0) * ms / total;
        // In a longer word the first vowel is stressed: higher, and longer.
        let stressed = word.tone == Tone::Free && sounds.len() > 3 && first_vowel == Some(at);
        let stress = if stressed { 1.10 } else { 1.0 };
        let drawl = if is_last && last_vowel == Some(at) {
            1.35
        } else {
            1.0
        };
        notes.push(Note {
            phone: *phone,
            length: phone.ms * stretch * stress * drawl / 1000.0,
            pitch: (along(passed) * stress, along(passed + phone.ms) * stress),
        });
        passed += phone.ms;
    }
}

fn pause(ms: f64) -> Note {
    Note {
        phone: SILENCE,
        length: ms / 1000.0,
        pitch: (1.0, 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::letters;
    use super::*;

    fn length(text: &str, speed: f64) -> f64 {
        let notes = set(&letters::read(text, None), speed);
        notes.iter().map(|note| note.length).sum()
    }

    #[test]
    fn speech_has_a_natural_speed() {
        let sentence = "The quick brown fox jumps over the lazy dog near the river bank.";
        let seconds = length(sentence, 1.0);
        assert!((3.0..5.5).contains(&seconds), "{seconds}");
        let seconds = length("雪山脚下的小村庄", 1.0);
        assert!((1.6..2.2).contains(&seconds), "{seconds}");
    }

    #[test]
    fn nothing_lasts_too_long() {
        let text = "word ".repeat(10_000);
        for speed in [0.25, 1.0] {
            let seconds = length(&text, speed);
            assert!((seconds - LONGEST.as_secs_f64()).abs() < 1e-6, "{seconds}");
        }
        assert!(length(&text, 4.0) < length("word ".repeat(20_000).as_str(), 4.0) + 1e-6);
    }

    #[test]
    fn a_question_rises() {
        let end = |text: &str| {
            let notes = set(&letters::read(text, None), 1.0);
            let sounds = notes.iter().rev().find(|note| note.phone.is_vowel());
            sounds.map(|note| note.pitch.1 / note.pitch.0).unwrap()
        };
        assert!(end("Is it you?") > 1.0);
        assert!(end("It is you.") < 1.0);
    }
}
