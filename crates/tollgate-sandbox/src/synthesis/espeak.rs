//! Speech by the program `espeak-ng`, if installed. The text is passed through a pipe, never through a shell or an argument.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::Command;

use super::pronunciation::{is_chinese, is_ideograph};
use super::utterance::Utterance;
use super::wav;

const PROGRAM: &str = "espeak-ng";
/// The timeout, far longer than the program needs: it synthesises speech about a thousand times as fast as people speak.
const TIME_LIMIT: Duration = Duration::from_secs(30);
/// The maximum size of the output in bytes: half an hour of speech.
const MAX_BYTES: u64 = 80 << 20;
/// Words per minute at speed 1, and the range to which they are limited.
const WORDS_PER_MINUTE: f64 = 175.0;
const WORDS_PER_MINUTE_RANGE: (f64, f64) = (80.0, 450.0);
/// The program's voice variants, female and male.
const VARIANTS: [&str; 8] = ["f1", "f2", "f3", "f4", "m1", "m2", "m3", "m7"];

/// The installed program.
#[derive(Debug, Clone)]
pub struct Espeak {
    program: PathBuf,
}

/// Why `espeak-ng` produced no speech.
#[derive(Debug, thiserror::Error)]
pub enum EspeakError {
    /// The program could not be started, or the pipe broke.
    #[error("espeak-ng: {0}")]
    Io(#[from] io::Error),
    /// The program ran too long and was stopped.
    #[error("espeak-ng took more than {} seconds", TIME_LIMIT.as_secs())]
    TimedOut,
    /// The program wrote too much audio and was stopped.
    #[error("espeak-ng wrote more than {MAX_BYTES} bytes")]
    TooLarge,
    /// The program exited with an error, for example because it does not support the language.
    #[error("espeak-ng ended with {0}")]
    Failed(ExitStatus),
    /// The program's output is not audio.
    #[error("espeak-ng wrote no audio that can be read")]
    InvalidAudio,
}

impl Espeak {
    /// Searches for the program in `PATH`. `None` if it is not found.
    pub fn find() -> Option<Self> {
        let path = std::env::var_os("PATH")?;
        let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
        let program = folders
            .map(|folder| folder.join(PROGRAM))
            .find(|file| can_run(file))?;
        Some(Self { program })
    }

    /// Synthesises `utterance`: a WAV file, 16 bits, mono, 22.05 kHz. Speeds are limited to 0.46 to 2.57. Dropping the future stops the program.
    pub async fn speak(&self, utterance: &Utterance<'_>) -> Result<Vec<u8>, EspeakError> {
        let audio = tokio::time::timeout(TIME_LIMIT, self.run(utterance));
        let audio = audio.await.map_err(|_| EspeakError::TimedOut)??;
        let (samples, rate) = wav::decode(&audio).ok_or(EspeakError::InvalidAudio)?;
        if samples.iter().all(|&sample| sample == 0) {
            return Err(EspeakError::InvalidAudio);
        }
        Ok(wav::encode(samples, rate))
    }

    async fn run(&self, utterance: &Utterance<'_>) -> Result<Vec<u8>, EspeakError> {
        let hash = utterance.voice_hash();
        let variant = VARIANTS[(hash >> 32) as usize % VARIANTS.len()];
        let pitch = 30 + (hash >> 48) % 41;
        let words_per_minute = (WORDS_PER_MINUTE * utterance.speed())
            .clamp(WORDS_PER_MINUTE_RANGE.0, WORDS_PER_MINUTE_RANGE.1)
            .round();
        let mut child = Command::new(&self.program)
            .args(["--stdin", "--stdout", "-b", "1"])
            .args(["-v", &format!("{}+{variant}", language(utterance))])
            .args(["-s", &words_per_minute.to_string()])
            .args(["-p", &pitch.to_string()])
            // The program needs none of the gateway's environment variables.
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()?;
        let missing = || io::Error::other("no pipe");
        let mut input = child.stdin.take().ok_or_else(missing)?;
        let output = child.stdout.take().ok_or_else(missing)?;
        // `[[` would begin espeak-ng's phoneme notation.
        let text = utterance.text.replace("[[", "[ [");
        let write = async {
            // The program may stop reading early; its exit status shows whether that was an error.
            let _ = input.write_all(text.as_bytes()).await;
            drop(input);
        };
        let mut audio = Vec::new();
        let mut limited = output.take(MAX_BYTES + 1);
        let ((), read) = tokio::join!(write, limited.read_to_end(&mut audio));
        read?;
        if audio.len() as u64 > MAX_BYTES {
            return Err(EspeakError::TooLarge);
        }
        let status = child.wait().await?;
        if status.success() {
            Ok(audio)
        } else {
            Err(EspeakError::Failed(status))
        }
    }
}

/// The program's language code for `utterance`, guessed from the text if the utterance has no valid tag.
fn language(utterance: &Utterance<'_>) -> String {
    let is_tag = |tag: &&str| {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        (2..=12).contains(&tag.len()) && tag.bytes().all(letter) && !tag.starts_with('-')
    };
    match utterance.language.filter(is_tag) {
        Some(tag) if is_chinese(tag) => "cmn".to_owned(),
        Some(tag) => tag.to_ascii_lowercase(),
        None if utterance
            .text
            .contains(['の', 'は', 'を', 'に', 'で', 'す']) =>
        {
            "ja".to_owned()
        }
        None if utterance.text.chars().any(is_ideograph) => "cmn".to_owned(),
        None => "en".to_owned(),
    }
}

#[cfg(unix)]
fn can_run(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let metadata = std::fs::metadata(file);
    metadata.is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn can_run(file: &Path) -> bool {
    file.is_file()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_is_a_valid_tag_or_guessed_from_the_text() {
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
            let utterance = Utterance {
                text,
                voice: "",
                speed: 1.0,
                language: tag,
            };
            assert_eq!(language(&utterance), expected, "{tag:?}");
        }
    }

    /// A program used instead of `espeak-ng`: it stores its arguments and the text next to itself, and writes `output`.
    #[cfg(unix)]
    fn fake(name: &str, output: &[u8], exit_code: i32) -> Espeak {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = std::env::temp_dir().join(format!("tollgate-espeak-{}", std::process::id()));
        let program = folder.join(name);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(program.with_extension("out"), output).unwrap();
        let script = format!(
            "#!/bin/sh\necho \"$@\" > $0.arguments\ncat > $0.text\ncat $0.out\nexit {exit_code}\n"
        );
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        Espeak { program }
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn espeak_reads_the_text_from_stdin_and_its_audio_is_normalised() {
        let utterance = Utterance {
            text: "Snow [[at]] night",
            voice: "ana",
            speed: 2.0,
            language: Some("en"),
        };
        let quiet = wav::encode(vec![0, 1, -1], 22_050);
        let espeak = fake("quiet", &quiet, 0);
        let (samples, rate) = wav::decode(&espeak.speak(&utterance).await.unwrap()).unwrap();
        assert_eq!((samples, rate), (vec![0, 29_000, -29_000], 22_050));
        let beside = |end| std::fs::read_to_string(espeak.program.with_extension(end)).unwrap();
        assert_eq!(beside("text"), "Snow [ [at]] night");
        let arguments = beside("arguments");
        assert!(arguments.contains("--stdin --stdout"), "{arguments}");
        assert!(arguments.contains("-v en+"), "{arguments}");
        assert!(arguments.contains("-s 350 "), "{arguments}");

        let failed = fake("failed", &quiet, 3).speak(&utterance).await;
        assert!(matches!(failed, Err(EspeakError::Failed(_))));
        for (name, output) in [
            ("text", b"no audio".to_vec()),
            ("silence", wav::encode(vec![0, 0], 22_050)),
        ] {
            let invalid = fake(name, &output, 0).speak(&utterance).await;
            assert!(matches!(invalid, Err(EspeakError::InvalidAudio)), "{name}");
        }
        let missing = Espeak {
            program: espeak.program.with_extension("missing"),
        };
        let missing = missing.speak(&utterance).await;
        assert!(matches!(missing, Err(EspeakError::Io(_))));
        let _ = std::fs::remove_dir_all(espeak.program.parent().unwrap());
    }
}
