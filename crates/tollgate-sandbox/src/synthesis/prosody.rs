//! Prosody: determines the duration and pitch of each phone.

use std::time::Duration;

use super::phonemes::{self, Phone, SILENCE};
use super::pronunciation::{Pause, Tone, Word};

/// A phone with duration and pitch.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Segment {
    /// The phone.
    pub(super) phone: Phone,
    /// Duration in seconds.
    pub(super) length: f64,
    /// The pitch at the phone's start and end, as multiples of the voice's pitch.
    pub(super) pitch: (f64, f64),
}

/// Silence before the first word and after the last, in milliseconds.
const MARGIN_MS: (f64, f64) = (60.0, 160.0);
/// Duration of a syllable with a tone, in milliseconds.
const TONE_SYLLABLE_MS: f64 = 200.0;

/// The maximum duration of the built-in synthesiser's audio. It speaks longer texts faster.
const MAX_DURATION: Duration = Duration::from_secs(600);

/// The segments of `words` at `speed`, or faster if they would otherwise last longer than [`MAX_DURATION`].
pub(super) fn plan(words: &[Word], speed: f64) -> Vec<Segment> {
    let mut segments = vec![silence(MARGIN_MS.0)];
    for phrase in words.split_inclusive(|word| word.pause > Pause::None) {
        add_phrase(phrase, &mut segments);
        segments.push(silence(match phrase.last().map(|word| word.pause) {
            Some(Pause::Short) => 170.0,
            Some(Pause::Long | Pause::Question) => 340.0,
            Some(Pause::None) | None => 0.0,
        }));
    }
    segments.push(silence(MARGIN_MS.1));
    let total: f64 = segments.iter().map(|segment| segment.length).sum();
    let factor = speed.max(total / MAX_DURATION.as_secs_f64());
    for segment in &mut segments {
        segment.length /= factor;
    }
    segments
}

/// Adds a phrase: words up to a pause, with falling pitch, rising at the end of a question.
fn add_phrase(phrase: &[Word], segments: &mut Vec<Segment>) {
    let is_question = phrase
        .last()
        .is_some_and(|word| word.pause == Pause::Question);
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
        if is_last && is_question {
            end *= 1.4;
        } else if is_last {
            end *= 0.90;
        }
        add_word(word, is_last, (start, end), segments);
    }
}

/// Adds one word, whose pitch goes from `pitch.0` to `pitch.1`.
fn add_word(word: &Word, is_last: bool, pitch: (f64, f64), segments: &mut Vec<Segment>) {
    let phones: Vec<Phone> = phonemes::phones_of(&word.phonemes).collect();
    let total: f64 = phones.iter().map(|phone| phone.ms).sum();
    let stretch = match word.tone {
        Tone::Free => 1.0,
        _ => TONE_SYLLABLE_MS / total,
    };
    let last_vowel = phones.iter().rposition(Phone::is_vowel);
    let first_vowel = phones.iter().position(Phone::is_vowel);
    let mut passed = 0.0;
    for (at, phone) in phones.iter().enumerate() {
        let along = |ms: f64| pitch.0 + (pitch.1 - pitch.0) * ms / total;
        // The first vowel of a longer word is stressed: higher and longer.
        let stressed = word.tone == Tone::Free && phones.len() > 3 && first_vowel == Some(at);
        let stress = if stressed { 1.10 } else { 1.0 };
        let drawl = if is_last && last_vowel == Some(at) {
            1.35
        } else {
            1.0
        };
        segments.push(Segment {
            phone: *phone,
            length: phone.ms * stretch * stress * drawl / 1000.0,
            pitch: (along(passed) * stress, along(passed + phone.ms) * stress),
        });
        passed += phone.ms;
    }
}

fn silence(ms: f64) -> Segment {
    Segment {
        phone: SILENCE,
        length: ms / 1000.0,
        pitch: (1.0, 1.0),
    }
}

#[cfg(test)]
mod tests {
    use super::super::pronunciation;
    use super::*;

    fn segments(text: &str, speed: f64) -> Vec<Segment> {
        plan(&pronunciation::pronounce(text, None), speed)
    }

    fn length(text: &str, speed: f64) -> f64 {
        segments(text, speed)
            .iter()
            .map(|segment| segment.length)
            .sum()
    }

    #[test]
    fn speech_has_a_natural_speed_and_a_maximum_duration() {
        let sentence = "The quick brown fox jumps over the lazy dog near the river bank.";
        assert!((3.0..5.5).contains(&length(sentence, 1.0)));
        assert!((1.6..2.2).contains(&length("雪山脚下的小村庄", 1.0)));
        let long = "word ".repeat(10_000);
        for speed in [0.25, 1.0] {
            assert!((length(&long, speed) - MAX_DURATION.as_secs_f64()).abs() < 1e-6);
        }
        assert!(length(&long, 4.0) < length(&long.repeat(2), 4.0) + 1e-6);
    }

    #[test]
    fn pitch_rises_at_the_end_of_a_question() {
        for (text, rises) in [("Is it you?", true), ("It is you.", false)] {
            let segments = segments(text, 1.0);
            let vowel = segments.iter().rfind(|segment| segment.phone.is_vowel());
            let pitch = vowel.expect("a vowel").pitch;
            assert_eq!(pitch.1 > pitch.0, rises, "{text}");
        }
    }
}
