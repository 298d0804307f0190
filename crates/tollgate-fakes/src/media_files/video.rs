//! Generates MP4 files whose frames are one grey JPEG, shown again and again: a playable video of a few kilobytes.

use super::blob::Blob;
use super::jpeg;

/// A video.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VideoFile {
    /// The size in pixels.
    pub(crate) size: (u32, u32),
    pub(crate) seconds: u32,
    /// A number that determines the colour.
    pub(crate) number: u64,
}

/// Frames per second.
const RATE: u32 = 24;

/// No rotation, no scaling.
const MATRIX: [u32; 9] = [0x1_0000, 0, 0, 0, 0x1_0000, 0, 0, 0, 0x4000_0000];

impl VideoFile {
    /// Generates the video, `bytes` long in total if that is at least 16 bytes more than it needs: the difference is free space after its frames.
    pub(super) fn make(self, bytes: Option<u64>) -> Blob {
        let frame = jpeg::encode(self.size, self.number.to_le_bytes()[0]);
        let kind = boxed(b"ftyp", &[b"isom", &[0, 0, 2, 0], b"isom", b"mp41"]);
        // The index contains the position of the frame, and its own length does not depend on that.
        let index = self.index(frame.len() as u32, 0).len();
        let at = (kind.len() + index + 8) as u32;
        let mut head = kind;
        head.extend(self.index(frame.len() as u32, at));
        head.extend(boxed(b"mdat", &[&frame]));
        let free = bytes.unwrap_or(0).saturating_sub(head.len() as u64);
        if free < 16 {
            return Blob::new(head);
        }
        // The length has 64 bits, for videos of many gigabytes.
        head.extend(1_u32.to_be_bytes());
        head.extend(b"free");
        head.extend(free.to_be_bytes());
        Blob {
            head: head.into(),
            zeros: free - 16,
            ..Blob::default()
        }
    }

    fn frames(self) -> u32 {
        self.seconds.max(1) * RATE
    }

    /// Writes the box `moov`.
    fn index(self, length: u32, at: u32) -> Vec<u8> {
        let (width, height) = self.size;
        let frames = self.frames();
        let mut movie = words(&[0, 0, 0, RATE, frames, 0x1_0000, 0x0100_0000, 0, 0]);
        movie.extend(words(&MATRIX));
        movie.extend(words(&[0, 0, 0, 0, 0, 0, 2]));
        let mut track = words(&[7, 0, 0, 1, 0, frames, 0, 0, 0, 0]);
        track.extend(words(&MATRIX));
        track.extend(words(&[width << 16, height << 16]));
        let mut time = words(&[0, 0, 0, RATE, frames]);
        // The language: undetermined.
        time.extend([0x55, 0xc4, 0, 0]);
        let handler = [&words(&[0, 0])[..], b"vide", &[0; 12], b"video\0"].concat();
        let reference = boxed(b"url ", &[&words(&[1])]);
        let data = boxed(b"dinf", &[&boxed(b"dref", &[&words(&[0, 1]), &reference])]);
        let header = boxed(b"vmhd", &[&words(&[1, 0, 0])]);
        let samples = self.samples(length, at);
        let media = boxed(
            b"mdia",
            &[
                &boxed(b"mdhd", &[&time]),
                &boxed(b"hdlr", &[&handler]),
                &boxed(b"minf", &[&header, &data, &samples]),
            ],
        );
        let track = boxed(b"trak", &[&boxed(b"tkhd", &[&track]), &media]);
        boxed(b"moov", &[&boxed(b"mvhd", &[&movie]), &track])
    }

    /// Writes the box `stbl`: one sample per frame, each in a chunk of its own at the same position.
    fn samples(self, length: u32, at: u32) -> Vec<u8> {
        let frames = self.frames();
        let entry = self.entry();
        let mut offsets = words(&[0, frames]);
        offsets.extend(words(&vec![at; frames as usize]));
        boxed(
            b"stbl",
            &[
                &boxed(b"stsd", &[&words(&[0, 1]), &entry]),
                &boxed(b"stts", &[&words(&[0, 1, frames, 1])]),
                &boxed(b"stsc", &[&words(&[0, 1, 1, 1, 1])]),
                &boxed(b"stsz", &[&words(&[0, length, frames])]),
                &boxed(b"stco", &[&offsets]),
            ],
        )
    }

    /// Writes the box `mp4v`, which declares that a sample is a JPEG.
    fn entry(self) -> Vec<u8> {
        let (width, height) = self.size;
        let mut entry = vec![0; 6];
        entry.extend([0, 1]);
        entry.extend([0; 16]);
        entry.extend((width as u16).to_be_bytes());
        entry.extend((height as u16).to_be_bytes());
        entry.extend(words(&[0x48_0000, 0x48_0000, 0]));
        entry.extend([0, 1]);
        entry.extend([0; 32]);
        entry.extend([0, 24, 0xff, 0xff]);
        // Descriptors of the stream, of its decoder (0x6c is JPEG), and of its synchronisation.
        let decoder = [0x04, 13, 0x6c, 0x11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let mut stream = vec![0, 0, 0, 0, 0x03, 3 + 15 + 3, 0, 1, 0];
        stream.extend(decoder);
        stream.extend([0x06, 1, 2]);
        boxed(b"mp4v", &[&entry, &boxed(b"esds", &[&stream])])
    }
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

fn boxed(kind: &[u8; 4], parts: &[&[u8]]) -> Vec<u8> {
    let length = 8 + parts.iter().map(|part| part.len()).sum::<usize>();
    let mut file = Vec::with_capacity(length);
    file.extend((length as u32).to_be_bytes());
    file.extend(kind);
    for part in parts {
        file.extend(*part);
    }
    file
}
