//! Concatenates MP3 files: their frames in order, without the metadata of the single files.
//!
//! The crate `mp3-metadata` 0.4.0 (evaluated on 2026-11-28) lists a file's frames, but skips bytes that are not audio, and does not recognise a first
//! frame that only contains the number of the others.

/// The length of an ID3v2 tag's header, and of a complete ID3v1 tag.
const ID3V2_HEAD: usize = 10;
const ID3V1: usize = 128;
/// kbit/s of layer III by index, for MPEG 1 and for MPEG 2 and 2.5.
const RATES: [[usize; 15]; 2] = [
    [
        0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320,
    ],
    [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
];
/// Samples per second by index, for MPEG 1, 2 and 2.5.
const SAMPLES: [[usize; 3]; 3] = [
    [44_100, 48_000, 32_000],
    [22_050, 24_000, 16_000],
    [11_025, 12_000, 8_000],
];

/// The frames of an MP3 file without tags, and without the first frame if that only contains the number of the others, which is wrong if more follow.
/// `None` if `file` is not an MP3.
pub(super) fn frames(file: &[u8]) -> Option<&[u8]> {
    let mut audio = file;
    while let Some(rest) = without_id3v2(audio) {
        audio = rest;
    }
    if audio.len() > ID3V1 && audio[audio.len() - ID3V1..].starts_with(b"TAG") {
        audio = &audio[..audio.len() - ID3V1];
    }
    let first = Frame::parse(audio)?;
    if first.is_index(audio) {
        audio = audio.get(first.bytes..)?;
    }
    Some(audio)
}

fn without_id3v2(file: &[u8]) -> Option<&[u8]> {
    let head = file.get(..ID3V2_HEAD)?;
    if !head.starts_with(b"ID3") {
        return None;
    }
    let footer = if head[5] & 0x10 == 0 { 0 } else { ID3V2_HEAD };
    // Each byte holds seven bits of the length.
    let length = head[6..]
        .iter()
        .fold(0, |all, byte| all << 7 | usize::from(byte & 0x7f));
    Some(file.get(ID3V2_HEAD + length + footer..).unwrap_or_default())
}

/// One frame of layer III.
struct Frame {
    /// The frame's length in bytes, including the header.
    bytes: usize,
    /// The number of bytes from the header to the audio.
    side: usize,
}

impl Frame {
    /// Parses the frame at the beginning of `audio`.
    fn parse(audio: &[u8]) -> Option<Self> {
        let head: &[u8; 4] = audio.first_chunk()?;
        let is_layer_3 = head[0] == 0xff && head[1] & 0xe6 == 0xe2;
        if !is_layer_3 {
            return None;
        }
        let version = match head[1] >> 3 & 3 {
            3 => 0,
            2 => 1,
            0 => 2,
            _ => return None,
        };
        let is_first = version == 0;
        let rate = *RATES[usize::from(!is_first)].get(usize::from(head[2] >> 4))?;
        let samples = *SAMPLES[version].get(usize::from(head[2] >> 2 & 3))?;
        let padding = usize::from(head[2] >> 1 & 1);
        let per_frame = if is_first { 144_000 } else { 72_000 };
        let is_mono = head[3] >> 6 == 3;
        let side = match (is_first, is_mono) {
            (true, false) => 32,
            (true, true) | (false, false) => 17,
            (false, true) => 9,
        };
        // With a free bit rate (0) the length is unknown.
        (rate > 0).then_some(Self {
            bytes: per_frame * rate / samples + padding,
            side,
        })
    }

    /// Whether the frame contains no audio but the number of frames (Xing, Info, VBRI).
    fn is_index(&self, audio: &[u8]) -> bool {
        let begins = |at: usize, word: &[u8]| audio.get(at..at + 4) == Some(word);
        let xing = 4 + self.side;
        begins(xing, b"Xing") || begins(xing, b"Info") || begins(36, b"VBRI")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame of MPEG 1, 128 kbit/s, 44100 Hz, stereo, filled with `fill`.
    fn frame(fill: u8) -> Vec<u8> {
        let mut frame = vec![fill; 417];
        frame[..4].copy_from_slice(&[0xff, 0xfb, 0x90, 0x00]);
        frame
    }

    fn tag(length: usize) -> Vec<u8> {
        let sizes = [length >> 21, length >> 14, length >> 7, length].map(|n| n as u8 & 0x7f);
        let mut tag = [b"ID3\x04\x00\x00".as_slice(), &sizes].concat();
        tag.resize(ID3V2_HEAD + length, 1);
        tag
    }

    #[test]
    fn only_frames_with_audio_are_kept() {
        let audio = [frame(1), frame(2)].concat();
        let mut info = frame(0);
        info[36..40].copy_from_slice(b"Xing");
        let mut old = vec![b'x'; ID3V1];
        old[..3].copy_from_slice(b"TAG");
        for (name, file) in [
            ("bare", audio.clone()),
            ("tagged", [tag(300), audio.clone()].concat()),
            ("counted", [info.clone(), audio.clone()].concat()),
            (
                "all of it",
                [tag(5), tag(200), info, audio.clone(), old].concat(),
            ),
        ] {
            assert_eq!(frames(&file), Some(audio.as_slice()), "{name}");
        }
    }

    #[test]
    fn frame_lengths_depend_on_version_rate_and_padding() {
        for (head, bytes, side) in [
            ([0xff, 0xfb, 0x90, 0x00], 417, 32),
            ([0xff, 0xfb, 0x92, 0x00], 418, 32),
            ([0xff, 0xfb, 0x90, 0xc0], 417, 17),
            // MPEG 2, 64 kbit/s, 24000 Hz, mono.
            ([0xff, 0xf3, 0x84, 0xc0], 192, 9),
        ] {
            let frame = Frame::parse(&head).unwrap();
            assert_eq!((frame.bytes, frame.side), (bytes, side), "{head:?}");
        }
    }

    #[test]
    fn other_files_are_rejected() {
        for file in [
            b"RIFF....WAVE".as_slice(),
            b"",
            b"ID3",
            b"\xff",
            b"<html></html>",
            b"\xff\xfb\x00\x00",
            b"\xff\xfb\xf0\x00",
        ] {
            assert_eq!(frames(file), None, "{file:?}");
        }
    }
}
