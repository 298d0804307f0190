//! [`Utterance`]: a text to speak, with its voice, speed and language.

use std::hash::Hasher as _;

use fnv::FnvHasher;

/// The range of the speed of an utterance. Values outside are clamped.
pub const SPEEDS: std::ops::RangeInclusive<f64> = 0.25..=4.0;

/// A text to speak, with its voice, speed and language.
#[derive(Debug, Clone, Copy)]
pub struct Utterance<'a> {
    /// The text.
    pub text: &'a str,
    /// The name of a voice. Any name selects a voice with its own pitch and timbre; empty for the default voice.
    pub voice: &'a str,
    /// The speed, clamped to [`SPEEDS`]; 1 is normal.
    pub speed: f64,
    /// The language tag, such as `en` or `zh`. `None`: the language is guessed from the text.
    pub language: Option<&'a str>,
}

impl Utterance<'_> {
    pub(super) fn speed(&self) -> f64 {
        if self.speed.is_finite() {
            self.speed.clamp(*SPEEDS.start(), *SPEEDS.end())
        } else {
            1.0
        }
    }

    /// A 64-bit hash of the voice's name (FNV-1a and a final multiplication).
    pub(super) fn voice_hash(&self) -> u64 {
        let mut hasher = FnvHasher::default();
        hasher.write(self.voice.as_bytes());
        hasher.finish().wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}
