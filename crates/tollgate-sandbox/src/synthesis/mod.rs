//! Speech synthesis: WAV files from text, by `espeak-ng` if it is installed, else by a small formant synthesiser.
//!
//! The built-in synthesiser follows rhythm and intonation of the text; its words are hardly intelligible. Crates that could
//! replace it (looked at on 2026-11-22): espeak-rs 0.2.0 and espeakng-sys 0.3.0 link eSpeak NG, whose licence is GPL-3.0;
//! piper-rs 0.2.0 and kokoroxide 0.1.5 need ONNX Runtime and voice models of tens of megabytes; flite 0.0.3 needs the system
//! library; tts 0.26.3 speaks through the desktop's speech service and returns no audio.

mod espeak;
mod formant;
mod phonemes;
mod pronunciation;
mod prosody;
mod wav;

use std::time::Duration;

pub use espeak::{Espeak, EspeakError};

/// The longest audio of the built-in synthesiser. It speaks longer texts faster.
pub const MAX_DURATION: Duration = Duration::from_secs(600);
/// The range of the speed of an utterance. Values outside are clamped.
pub const SPEEDS: std::ops::RangeInclusive<f64> = 0.25..=4.0;

/// A text to speak, and how.
#[derive(Debug, Clone, Copy)]
pub struct Utterance<'a> {
    /// The text.
    pub text: &'a str,
    /// The name of a voice. Any name gives a voice with its own pitch and timbre; empty for the default voice.
    pub voice: &'a str,
    /// The speed, clamped to [`SPEEDS`]; 1 is normal.
    pub speed: f64,
    /// The language tag, such as `en` or `zh`. `None` to guess it from the text.
    pub language: Option<&'a str>,
}

impl Utterance<'_> {
    fn speed(&self) -> f64 {
        if self.speed.is_finite() {
            self.speed.clamp(*SPEEDS.start(), *SPEEDS.end())
        } else {
            1.0
        }
    }

    /// A 64-bit hash of the voice's name (FNV-1a and a final multiplication).
    fn voice_hash(&self) -> u64 {
        let hash = self
            .voice
            .bytes()
            .fold(0xCBF2_9CE4_8422_2325, |hash: u64, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
            });
        hash.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    }
}

/// Synthesises `utterance` with the built-in synthesiser: a WAV file, 16 bits, mono, 24 kHz. The same utterance gives the
/// same bytes. CPU-bound, about a second for ten minutes of speech: not for an async thread.
pub fn synthesise(utterance: &Utterance<'_>) -> Vec<u8> {
    let voice = formant::Voice::from_hash(utterance.voice_hash());
    let words = pronunciation::pronounce(utterance.text, utterance.language);
    let segments = prosody::plan(&words, utterance.speed() * voice.rate);
    wav::encode(voice.synthesise(&segments), formant::SAMPLE_RATE)
}

/// Synthesises speech with what this machine has.
#[derive(Debug, Clone, Default)]
pub struct SpeechEngine {
    espeak: Option<Espeak>,
}

impl SpeechEngine {
    /// Looks for `espeak-ng` on the `PATH`.
    pub fn find() -> Self {
        Self {
            espeak: Espeak::find(),
        }
    }

    /// Synthesises `utterance`: a WAV file, 16 bits, mono. Falls back to the built-in synthesiser if `espeak-ng` fails.
    pub async fn speak(&self, utterance: &Utterance<'_>) -> Vec<u8> {
        if let Some(espeak) = &self.espeak {
            match espeak.speak(utterance).await {
                Ok(wav) => return wav,
                Err(error) => {
                    tracing::warn!(%error, "espeak-ng failed; using the built-in synthesiser")
                }
            }
        }
        let (text, voice) = (utterance.text.to_owned(), utterance.voice.to_owned());
        let (speed, language) = (utterance.speed, utterance.language.map(str::to_owned));
        let work = move || {
            synthesise(&Utterance {
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
                // The runtime is shutting down: the result is dropped.
                Err(_) => wav::encode(Vec::new(), formant::SAMPLE_RATE),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speed_is_clamped() {
        for (requested, used) in [
            (0.1, 0.25),
            (1.5, 1.5),
            (9.0, 4.0),
            (f64::NAN, 1.0),
            (f64::INFINITY, 1.0),
        ] {
            let utterance = Utterance {
                text: "",
                voice: "",
                speed: requested,
                language: None,
            };
            assert_eq!(utterance.speed(), used, "{requested}");
        }
    }
}
