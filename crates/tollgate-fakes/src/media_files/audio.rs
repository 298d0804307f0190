//! Generates silence as WAV, PCM and MP3.

use super::blob::Blob;

/// The formats of audio files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AudioFormat {
    Mp3,
    Wav,
    /// 16 bits, little-endian, one channel.
    Pcm,
}

impl AudioFormat {
    /// The format called `name`, such as `mp3`.
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "mp3" => Some(Self::Mp3),
            "wav" => Some(Self::Wav),
            "pcm" => Some(Self::Pcm),
            _ => None,
        }
    }

    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Self::Mp3 => "audio/mpeg",
            Self::Wav => "audio/wav",
            Self::Pcm => "audio/pcm",
        }
    }

    pub(super) fn extension(self) -> &'static str {
        match self {
            Self::Mp3 => "mp3",
            Self::Wav => "wav",
            Self::Pcm => "pcm",
        }
    }
}

/// Samples per second.
const RATE: u32 = 24_000;

/// The length in bytes of an MP3 frame: 64 kbit/s at [`RATE`].
const FRAME: usize = 192;

/// The duration in milliseconds of an MP3 frame: 576 samples.
const FRAME_MS: u32 = 24;

/// A silent audio file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AudioFile {
    pub(crate) form: AudioFormat,
    pub(crate) milliseconds: u32,
}

impl AudioFile {
    /// A file as long as it takes to read a text aloud, at `speed` times the usual speed.
    pub(crate) fn for_text(text: &str, form: AudioFormat, speed: f64) -> Self {
        let characters = text.chars().count() as f64;
        let milliseconds = (characters * 65.0 / speed).clamp(120.0, 3_600_000.0);
        let milliseconds = milliseconds as u32 / FRAME_MS * FRAME_MS;
        Self { form, milliseconds }
    }

    /// The length in the form of some providers: seconds with three decimals.
    pub(crate) fn seconds(self) -> String {
        format!("{:.3}", f64::from(self.milliseconds) / 1000.0)
    }

    pub(super) fn make(self) -> Blob {
        let samples = u64::from(RATE) * u64::from(self.milliseconds) / 1000;
        match self.form {
            AudioFormat::Mp3 => Blob::new(frames(self.milliseconds / FRAME_MS)),
            AudioFormat::Pcm => Blob {
                zeros: samples * 2,
                ..Blob::default()
            },
            AudioFormat::Wav => {
                let bytes = (samples * 2) as u32;
                let mut head = b"RIFF".to_vec();
                head.extend((bytes + 36).to_le_bytes());
                head.extend(b"WAVEfmt \x10\0\0\0\x01\0\x01\0");
                head.extend(RATE.to_le_bytes());
                head.extend((RATE * 2).to_le_bytes());
                head.extend(b"\x02\0\x10\0data");
                head.extend(bytes.to_le_bytes());
                Blob {
                    head: head.into(),
                    zeros: u64::from(bytes),
                    ..Blob::default()
                }
            }
        }
    }
}

/// Frames whose side information states that they contain no audio.
fn frames(count: u32) -> Vec<u8> {
    let mut frame = [0; FRAME];
    frame[..4].copy_from_slice(&[0xff, 0xf3, 0x84, 0xc4]);
    frame.repeat(count.max(1) as usize)
}
