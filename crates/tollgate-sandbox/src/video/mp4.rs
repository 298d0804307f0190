//! Writes MP4 files (ISO/IEC 14496-12, -14, -15) with the index (`moov`) before the data, so that playback can start during the download.
//!
//! Why no crate is used (evaluated on 2026-11-22): mp4 0.14.0 writes the index after the data; muxide 0.5.0 writes no `colr` and `pasp` boxes;
//! shiguredo_mp4 2026.6.0 is a pre-release whose boxes must be filled one by one, which takes about as many lines as this file.

use std::io::{self, Write};

use super::h264::Format;

/// Ticks of the media timescale per frame.
const TICKS_PER_FRAME: u32 = 512;
/// Ticks of the movie timescale per second.
const MOVIE_TIMESCALE: u32 = 1000;
/// Longer titles are truncated to this many characters.
const TITLE_MAX: usize = 500;
/// The unity matrix: no rotation, no scaling.
const MATRIX: [u32; 9] = [0x1_0000, 0, 0, 0, 0x1_0000, 0, 0, 0, 0x4000_0000];

/// The encoded frames of a clip.
#[derive(Debug, Default)]
pub(super) struct Samples {
    /// The bytes of all frames, each frame with a length prefix.
    bytes: Vec<u8>,
    /// The size of each frame.
    sizes: Vec<u32>,
    /// The numbers, from 1, of complete frames.
    keys: Vec<u32>,
}

impl Samples {
    /// Adds a frame that consists of one NAL unit.
    pub(super) fn push(&mut self, unit: &[u8], key: bool) {
        let length = unit.len() as u32;
        self.bytes.extend_from_slice(&length.to_be_bytes());
        self.bytes.extend_from_slice(unit);
        self.sizes.push(length + 4);
        if key {
            self.keys.push(self.sizes.len() as u32);
        }
    }
}

/// The contents of a file.
pub(super) struct Mp4File<'a> {
    pub(super) format: Format,
    /// Sequence and picture parameter set.
    pub(super) parameter_sets: &'a [Vec<u8>; 2],
    pub(super) samples: &'a Samples,
    /// The title; empty for none.
    pub(super) title: &'a str,
}

impl Mp4File<'_> {
    /// Writes the file and returns its size in bytes.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<u64> {
        let mut head = BoxWriter::default();
        head.nested(b"ftyp", |b| {
            b.bytes(b"isom");
            b.u32(0x200);
            b.bytes(b"isomiso2avc1mp41");
        });
        let index = |start: u32| {
            let mut index = BoxWriter::default();
            index.nested(b"moov", |b| self.write_moov(b, start));
            index.0
        };
        // The size of the index does not depend on the data's offset.
        let start = head.0.len() + index(0).len() + 8;
        let frames = &self.samples.bytes;
        head.bytes(&index(start as u32));
        head.u32(frames.len() as u32 + 8);
        head.bytes(b"mdat");
        out.write_all(&head.0)?;
        out.write_all(frames)?;
        Ok((head.0.len() + frames.len()) as u64)
    }

    fn frame_count(&self) -> u32 {
        self.samples.sizes.len() as u32
    }

    /// The duration in ticks of `MOVIE_TIMESCALE`.
    fn duration(&self) -> u32 {
        let length = u64::from(self.frame_count()) * u64::from(MOVIE_TIMESCALE);
        length.div_ceil(u64::from(self.format.fps)) as u32
    }

    fn write_moov(&self, b: &mut BoxWriter, start: u32) {
        b.nested(b"mvhd", |b| {
            b.zeros(3); // version, flags, times of creation and change
            b.u32(MOVIE_TIMESCALE);
            b.u32(self.duration());
            b.u32(0x1_0000); // rate
            b.u16(0x100); // volume
            b.bytes(&[0; 10]);
            MATRIX.iter().for_each(|&value| b.u32(value));
            b.zeros(6);
            b.u32(2); // the next track's number
        });
        b.nested(b"trak", |b| {
            b.nested(b"tkhd", |b| self.write_track_header(b));
            b.nested(b"mdia", |b| {
                b.nested(b"mdhd", |b| {
                    b.zeros(3);
                    b.u32(self.format.fps * TICKS_PER_FRAME);
                    b.u32(self.frame_count() * TICKS_PER_FRAME);
                    b.u16(0x55C4); // language: und
                    b.u16(0);
                });
                b.nested(b"hdlr", |b| write_handler(b, b"vide", "VideoHandler"));
                b.nested(b"minf", |b| self.write_media_info(b, start));
            });
        });
        b.nested(b"udta", |b| self.write_metadata(b));
    }

    fn write_track_header(&self, b: &mut BoxWriter) {
        b.u32(3); // flags: enabled, in the clip
        b.zeros(2);
        b.u32(1); // the track's number
        b.u32(0);
        b.u32(self.duration());
        b.zeros(4); // reserved, layer and group, volume
        MATRIX.iter().for_each(|&value| b.u32(value));
        b.u32(self.format.width << 16);
        b.u32(self.format.height << 16);
    }

    fn write_media_info(&self, b: &mut BoxWriter, start: u32) {
        b.nested(b"vmhd", |b| {
            b.u32(1); // flags: always 1
            b.zeros(2);
        });
        b.nested(b"dinf", |b| {
            b.nested(b"dref", |b| {
                b.u32(0);
                b.u32(1);
                b.nested(b"url ", |b| b.u32(1)); // flags: in this file
            });
        });
        b.nested(b"stbl", |b| self.write_sample_table(b, start));
    }

    /// The sample table: offset, size and time of each frame.
    fn write_sample_table(&self, b: &mut BoxWriter, start: u32) {
        b.nested(b"stsd", |b| {
            b.u32(0);
            b.u32(1);
            b.nested(b"avc1", |b| self.write_sample_entry(b));
        });
        b.nested(b"stts", |b| {
            b.u32(0);
            b.u32(1);
            b.u32(self.frame_count());
            b.u32(TICKS_PER_FRAME);
        });
        let listed = |b: &mut BoxWriter, list: &[u32]| {
            b.u32(list.len() as u32);
            list.iter().for_each(|&value| b.u32(value));
        };
        b.nested(b"stss", |b| {
            b.u32(0);
            listed(b, &self.samples.keys);
        });
        b.nested(b"stsc", |b| {
            b.u32(0);
            b.u32(1);
            b.u32(1); // from the first chunk on
            b.u32(self.frame_count()); // all frames in it
            b.u32(1); // of the first description
        });
        b.nested(b"stsz", |b| {
            b.zeros(2);
            listed(b, &self.samples.sizes);
        });
        b.nested(b"stco", |b| {
            b.u32(0);
            listed(b, &[start]);
        });
    }

    /// Writes the description of how the frames are encoded.
    fn write_sample_entry(&self, b: &mut BoxWriter) {
        b.bytes(&[0; 6]);
        b.u16(1); // data reference
        b.zeros(4);
        b.u16(self.format.width as u16);
        b.u16(self.format.height as u16);
        b.u32(0x48_0000); // 72 dots an inch
        b.u32(0x48_0000);
        b.u32(0);
        b.u16(1); // frames a sample
        b.bytes(&[0; 32]); // the coder's name
        b.u16(24); // depth
        b.u16(0xFFFF);
        let [sequence, picture] = self.parameter_sets;
        b.nested(b"avcC", |b| {
            b.bytes(&[1]);
            b.bytes(&sequence[1..4]); // profile, compatibility, level
            b.bytes(&[0xFF, 0xE1]); // lengths of four bytes; one sequence parameter set
            b.u16(sequence.len() as u16);
            b.bytes(sequence);
            b.bytes(&[1]);
            b.u16(picture.len() as u16);
            b.bytes(picture);
        });
        b.nested(b"colr", |b| {
            b.bytes(b"nclx");
            [1, 1, 1].into_iter().for_each(|bt_709| b.u16(bt_709));
            b.bytes(&[0]); // limited range
        });
        b.nested(b"pasp", |b| {
            b.u32(1);
            b.u32(1);
        });
    }

    /// The title and the encoder's name, as iTunes metadata.
    fn write_metadata(&self, b: &mut BoxWriter) {
        let title: String = self.title.chars().take(TITLE_MAX).collect();
        b.nested(b"meta", |b| {
            b.u32(0);
            b.nested(b"hdlr", |b| write_handler(b, b"mdir", ""));
            b.nested(b"ilst", |b| {
                for (kind, text) in [
                    (b"\xA9nam", title.as_str()),
                    (b"\xA9too", "Tollgate sandbox"),
                ] {
                    if text.is_empty() {
                        continue;
                    }
                    b.nested(kind, |b| {
                        b.nested(b"data", |b| {
                            b.u32(1); // UTF-8
                            b.u32(0);
                            b.bytes(text.as_bytes());
                        });
                    });
                }
            });
        });
    }
}

fn write_handler(b: &mut BoxWriter, kind: &[u8; 4], name: &str) {
    b.zeros(2);
    b.bytes(kind);
    b.zeros(3);
    b.bytes(name.as_bytes());
    b.bytes(&[0]);
}

/// An MP4 box under construction.
#[derive(Default)]
struct BoxWriter(Vec<u8>);

impl BoxWriter {
    /// Writes a box of `kind` with the contents that `fill` writes.
    fn nested(&mut self, kind: &[u8; 4], fill: impl FnOnce(&mut Self)) {
        let start = self.0.len();
        self.u32(0);
        self.bytes(kind);
        fill(self);
        let size = (self.0.len() - start) as u32;
        self.0[start..start + 4].copy_from_slice(&size.to_be_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    fn u16(&mut self, value: u16) {
        self.bytes(&value.to_be_bytes());
    }

    fn u32(&mut self, value: u32) {
        self.bytes(&value.to_be_bytes());
    }

    /// Writes `count` zeros of 32 bits.
    fn zeros(&mut self, count: usize) {
        self.0.resize(self.0.len() + 4 * count, 0);
    }
}
