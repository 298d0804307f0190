//! Gives the sandbox a voice: WAV files from text. Where `espeak-ng` is installed it speaks; elsewhere a
//! small throat of our own makes sounds in the rhythm and melody of the text, though no words that
//! anybody understands.

mod espeak;
mod letters;
mod phones;
mod throat;
mod tune;
mod wav;

use std::time::Duration;

pub use espeak::{Espeak, EspeakError};

/// What the built-in voice never goes beyond: a longer text is spoken faster.
pub const LONGEST: Duration = Duration::from_secs(600);
/// The range of the `speed` of a [`VoiceOrder`]; what lies outside is brought to its ends.
pub const SPEEDS: std::ops::RangeInclusive<f64> = 0.25..=4.0;

/// What to say and how.
#[derive(Debug, Clone, Copy)]
pub struct VoiceOrder<'a> {
    /// The words.
    pub text: &'a str,
    /// Whose voice, by any name: each has its own pitch and timbre. Empty for the usual one.
    pub voice: &'a str,
    /// How fast, in [`SPEEDS`]; 1 is usual.
    pub speed: f64,
    /// The language's tag, such as `en` or `zh`; guessed from the text where there is none.
    pub language: Option<&'a str>,
}

impl VoiceOrder<'_> {
    fn speed(&self) -> f64 {
        if self.speed.is_finite() {
            self.speed.clamp(*SPEEDS.start(), *SPEEDS.end())
        } else {
            1.0
        }
    }

    /// Chooses by the voice's name: 64 bits, well mixed (FNV-1a, and one more multiplication).
    fn character(&self) -> u64 {
        let hash = self
            .voice
            .bytes()
            .fold(0xCBF2_9CE4_8422_2325, |hash: u64, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
            });
        hash.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

/// Says `order` with the built-in voice: a WAV file, 16 bits, mono, 24 kHz. The same order makes the
/// same bytes. Takes about a second for ten minutes of speech: not for an async thread.
pub fn synthesise(order: &VoiceOrder<'_>) -> Vec<u8> {
    let throat = throat::Throat::of(order.character());
    let words = letters::read(order.text, order.language);
    let notes = tune::set(&words, order.speed() * throat.pace);
    wav::file(throat.say(&notes), throat::RATE)
}

/// The voice that this machine has, found once.
#[derive(Debug, Clone, Default)]
pub struct Speaker {
    espeak: Option<Espeak>,
}

impl Speaker {
    /// Looks for `espeak-ng` on the `PATH`.
    pub fn find() -> Self {
        Self {
            espeak: Espeak::find(),
        }
    }

    /// Says `order`: a WAV file, 16 bits, mono. Where `espeak-ng` fails the built-in voice speaks.
    pub async fn speak(&self, order: &VoiceOrder<'_>) -> Vec<u8> {
        if let Some(espeak) = &self.espeak {
            match espeak.speak(order).await {
                Ok(wav) => return wav,
                Err(error) => tracing::warn!(%error, "the built-in voice speaks instead"),
            }
        }
        let (text, voice) = (order.text.to_owned(), order.voice.to_owned());
        let (speed, language) = (order.speed, order.language.map(str::to_owned));
        let work = move || {
            synthesise(&VoiceOrder {
                text: &text,
                voice: &voice,
                speed,
                language: language.as_deref(),
            })
        };
        match tokio::task::spawn_blocking(work).await {
            Ok(wav) => wav,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime is shutting down: nobody waits for the sound any more.
                Err(_) => wav::file(Vec::new(), throat::RATE),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_speed_is_brought_into_range() {
        for (asked, used) in [
            (0.1, 0.25),
            (1.5, 1.5),
            (9.0, 4.0),
            (f64::NAN, 1.0),
            (f64::INFINITY, 1.0),
        ] {
            let order = VoiceOrder {
                text: "",
                voice: "",
                speed: asked,
                language: None,
            };
            assert_eq!(order.speed(), used, "{asked}");
        }
    }
}
