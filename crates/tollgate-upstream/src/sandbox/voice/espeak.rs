//! Speech by `espeak-ng`, a program that a machine may have. The text goes in through a pipe, never
//! through a shell or an argument.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use super::letters::{is_chinese, is_ideograph};
use super::{VoiceOrder, wav};

const PROGRAM: &str = "espeak-ng";
/// It speaks a thousand times as fast as people do.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// Most bytes of sound: half an hour.
const MAX_BYTES: u64 = 80 << 20;
/// Words a minute at speed 1, and what the program can do.
const PACE: f64 = 175.0;
const PACES: (f64, f64) = (80.0, 450.0);
/// The program's own ways to speak a language, women's and men's.
const VARIANTS: [&str; 8] = ["f1", "f2", "f3", "f4", "m1", "m2", "m3", "m7"];

/// The program, found.
#[derive(Debug, Clone)]
pub struct Espeak {
    program: PathBuf,
}

/// Why `espeak-ng` did not speak.
#[derive(Debug, thiserror::Error)]
pub enum EspeakError {
    /// It could not be started, or broke off.
    #[error("espeak-ng: {0}")]
    Io(#[from] io::Error),
    /// It took too long, and was stopped.
    #[error("espeak-ng took more than {} seconds", TIME_LIMIT.as_secs())]
    Time,
    /// It made too much sound, and was stopped.
    #[error("espeak-ng made more than {MAX_BYTES} bytes")]
    Size,
    /// It ended with an error: it may not know the language.
    #[error("espeak-ng ended with {0}")]
    Failed(ExitStatus),
    /// What it made is no sound.
    #[error("espeak-ng made no sound that can be read")]
    Sound,
}

impl Espeak {
    /// Looks for the program on the `PATH`.
    pub fn find() -> Option<Self> {
        let path = std::env::var_os("PATH")?;
        let places = std::env::split_paths(&path).filter(|place| place.is_absolute());
        let program = places
            .map(|place| place.join(PROGRAM))
            .find(|file| can_run(file))?;
        Some(Self { program })
    }

    /// Says `order`: a WAV file, 16 bits, mono, 22.05 kHz. Speeds below 0.46 and above 2.57 are more than
    /// the program can do. Dropping the future stops it.
    pub async fn speak(&self, order: &VoiceOrder<'_>) -> Result<Vec<u8>, EspeakError> {
        let sound = tokio::time::timeout(TIME_LIMIT, self.run(order));
        let sound = sound.await.map_err(|_| EspeakError::Time)??;
        let (samples, rate) = wav::read(&sound).ok_or(EspeakError::Sound)?;
        if samples.iter().all(|&sample| sample == 0) {
            return Err(EspeakError::Sound);
        }
        Ok(wav::file(samples, rate))
    }

    async fn run(&self, order: &VoiceOrder<'_>) -> Result<Vec<u8>, EspeakError> {
        let character = order.character();
        let variant = VARIANTS[(character >> 32) as usize % VARIANTS.len()];
        let pitch = 30 + (character >> 48) % 41;
        let pace = (PACE * order.speed()).clamp(PACES.0, PACES.1).round();
        let mut child = Command::new(&self.program)
            .args(["--stdin", "--stdout", "-b", "1"])
            .args(["-v", &format!("{}+{variant}", language(order))])
            .args(["-s", &pace.to_string()])
            .args(["-p", &pitch.to_string()])
            // Nothing of our surroundings is its business.
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let missing = || io::Error::other("no pipe");
        let mut input = child.stdin.take().ok_or_else(missing)?;
        let output = child.stdout.take().ok_or_else(missing)?;
        // Two opening brackets would begin its own signs for sounds.
        let text = order.text.replace("[[", "[ [");
        let write = async {
            // It may stop reading early; what it ends with tells whether that was an error.
            let _ = input.write_all(text.as_bytes()).await;
            drop(input);
        };
        let mut sound = Vec::new();
        let mut limited = output.take(MAX_BYTES + 1);
        let ((), read) = tokio::join!(write, limited.read_to_end(&mut sound));
        read?;
        if sound.len() as u64 > MAX_BYTES {
            return Err(EspeakError::Size);
        }
        let status = child.wait().await?;
        if status.success() {
            Ok(sound)
        } else {
            Err(EspeakError::Failed(status))
        }
    }
}

/// The program's name of the order's language; a guess where the order's is none or no tag at all.
fn language(order: &VoiceOrder<'_>) -> String {
    let is_tag = |tag: &&str| {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (2..=12).contains(&tag.len()) && tag.bytes().all(letter) && !tag.starts_with('-')
    };
    match order.language.filter(is_tag) {
        Some(tag) if is_chinese(tag) => "cmn".to_owned(),
        Some(tag) => tag.to_ascii_lowercase(),
        None if order.text.contains(['の', 'は', 'を', 'に', 'で', 'す']) => "ja".to_owned(),
        None if order.text.chars().any(is_ideograph) => "cmn".to_owned(),
        None => "en".to_owned(),
    }
}

#[cfg(unix)]
fn can_run(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let facts = std::fs::metadata(file);
    facts.is_ok_and(|facts| facts.is_file() && facts.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn can_run(file: &Path) -> bool {
    file.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_language_is_a_tag_or_a_guess() {
        for (tag, text, expected) in [
            (Some("en"), "x", "en"),
            (Some("zh-CN"), "x", "cmn"),
            (Some("pt-BR"), "x", "pt-br"),
            (Some("-en"), "x", "en"),
            (Some("../../x"), "雪", "cmn"),
            (Some("en+whisper"), "x", "en"),
            (None, "これは雪です", "ja"),
            (None, "雪", "cmn"),
            (None, "snow", "en"),
        ] {
            let order = VoiceOrder {
                text,
                voice: "",
                speed: 1.0,
                language: tag,
            };
            assert_eq!(language(&order), expected, "{tag:?}");
        }
    }
}
