//! Checks whether an audio file is complete: a transfer that was cut off lacks its end.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

/// Frames of an MP3 that are checked: hours of audio.
const MAX_FRAMES: u32 = 1_000_000;
/// Bytes that the last frame of an MP3 may lack: some encoders leave out its padding.
const MAX_MISSING: u64 = 4;
/// kbit/s of layer III by index: MPEG 1, then MPEG 2 and 2.5.
const BITRATES: [[u64; 15]; 2] = [
    [
        0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320,
    ],
    [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160],
];
/// Hz of MPEG 1 by index.
const SAMPLE_RATES: [u64; 3] = [44_100, 48_000, 32_000];

/// Whether a WAV file of `bytes` bytes has all bytes that its header announces. Writers that did not know the size announce none, or the largest;
/// such files count as complete.
pub(super) fn is_complete_wav(file: &mut File, bytes: u64) -> io::Result<bool> {
    let mut head = [0; 8];
    file.seek(SeekFrom::Start(0))?;
    file.read_exact(&mut head)?;
    let size = u32::from_le_bytes([head[4], head[5], head[6], head[7]]);
    Ok(size >= i32::MAX as u32 || u64::from(size) + 8 <= bytes)
}

/// Whether the last frame of an MP3 file of `bytes` bytes is complete. The check stops at data that is no frame of layer III, such as tags at the end
/// of the file.
pub(super) fn is_complete_mp3(file: &mut File, bytes: u64) -> io::Result<bool> {
    let mut file = BufReader::new(file);
    let mut at = id3_len(&mut file)?;
    file.seek(SeekFrom::Start(at))?;
    for _ in 0..MAX_FRAMES {
        if at + 4 > bytes {
            break;
        }
        let mut head = [0; 4];
        file.read_exact(&mut head)?;
        let Some(len) = frame_len(head) else { break };
        file.seek_relative(len.cast_signed() - 4)?;
        at += len;
    }
    Ok(at <= bytes + MAX_MISSING)
}

/// The length of the ID3 tag at the start of the file; 0 if there is none.
fn id3_len(file: &mut (impl Read + Seek)) -> io::Result<u64> {
    file.seek(SeekFrom::Start(0))?;
    let mut head = Vec::new();
    file.take(10).read_to_end(&mut head)?;
    Ok(match head[..] {
        [b'I', b'D', b'3', _, _, _, a, b, c, d] => {
            let size = [a, b, c, d].into_iter();
            10 + size.fold(0, |size, byte| size << 7 | u64::from(byte & 0x7f))
        }
        _ => 0,
    })
}

/// The length in bytes of a frame of layer III with that header. `None` if it is not the header of such a frame, or does not state the length.
fn frame_len(head: [u8; 4]) -> Option<u64> {
    let [0xff, version, rates, _] = head else {
        return None;
    };
    if version & 0xe6 != 0xe2 {
        return None;
    }
    // The sample rate of MPEG 2 is half of that of MPEG 1, and that of MPEG 2.5 is half of that of MPEG 2.
    let (table, halved, samples) = match version >> 3 & 3 {
        3 => (0, 0, 144),
        2 => (1, 1, 72),
        0 => (1, 2, 72),
        _ => return None,
    };
    let bitrate = *BITRATES[table]
        .get(usize::from(rates >> 4))
        .filter(|rate| **rate > 0)?;
    let sample_rate = SAMPLE_RATES.get(usize::from(rates >> 2 & 3))? >> halved;
    Some(samples * bitrate * 1_000 / sample_rate + u64::from(rates >> 1 & 1))
}
