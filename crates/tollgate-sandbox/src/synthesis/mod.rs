//! Speech synthesis: generates WAV files from text, by `espeak-ng` if it is installed, otherwise by a small formant synthesiser.
//!
//! The built-in synthesiser follows rhythm and intonation of the text; its words are hardly intelligible. Crates that could replace it (evaluated on
//! 2026-11-22): espeak-rs 0.2.0 and espeakng-sys 0.3.0 link eSpeak NG, whose licence is GPL-3.0; piper-rs 0.2.0 and kokoroxide 0.1.5 need ONNX
//! Runtime and voice models of tens of megabytes; flite 0.0.3 needs the system library; tts 0.26.3 plays speech through the desktop's speech service
//! and returns no audio.

mod espeak;
mod formant;
mod phonemes;
mod pronunciation;
mod prosody;
mod utterance;
mod wav;

pub use espeak::{Espeak, EspeakError};
pub use utterance::{SPEEDS, Utterance};

/// Synthesises `utterance` with the built-in synthesiser: a WAV file, 16 bits, mono, 24 kHz. The same utterance always generates the same bytes.
/// CPU-bound, about a second for ten minutes of speech: not for an async thread.
pub fn synthesise(utterance: &Utterance<'_>) -> Vec<u8> {
    let voice = formant::Voice::from_hash(utterance.voice_hash());
    let words = pronunciation::pronounce(utterance.text, utterance.language);
    let segments = prosody::plan(&words, utterance.speed() * voice.rate);
    wav::encode(voice.synthesise(&segments), formant::SAMPLE_RATE)
}

/// Synthesises speech with the engine that is available on this machine.
#[derive(Debug, Clone, Default)]
pub struct SpeechEngine {
    espeak: Option<Espeak>,
}

impl SpeechEngine {
    /// Searches for `espeak-ng` in `PATH`.
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
