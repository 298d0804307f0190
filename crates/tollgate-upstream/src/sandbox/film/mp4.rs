//! Packs coded pictures into an MP4 file (ISO/IEC 14496-12, -14, -15). The index stands before the
//! pictures, so that a player can begin while the file is still being loaded.

use std::io::{self, Write};

use super::h264::Format;

/// Units of time of a picture.
const TICKS: u32 = 512;
/// Units of time of a second in the film's header.
const MILLI: u32 = 1000;
/// Characters of a title that are kept.
const TITLE_MAX: usize = 500;
/// No rotation, no scaling.
const MATRIX: [u32; 9] = [0x1_0000, 0, 0, 0, 0x1_0000, 0, 0, 0, 0x4000_0000];

/// The coded pictures of a film.
#[derive(Debug, Default)]
pub(super) struct Samples {
    /// Their bytes, one after the other.
    bytes: Vec<u8>,
    /// The size of each.
    sizes: Vec<u32>,
    /// The numbers, from 1, of those that stand alone.
    keys: Vec<u32>,
}

impl Samples {
    /// Adds a picture that is this one NAL unit.
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

/// What a file holds.
pub(super) struct Film<'a> {
    pub(super) format: Format,
    /// Sequence and picture parameter set.
    pub(super) parameter_sets: &'a [Vec<u8>; 2],
    pub(super) samples: &'a Samples,
    /// The film's name; empty for none.
    pub(super) title: &'a str,
}

impl Film<'_> {
    /// Writes the file and gives its size in bytes.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<u64> {
        let mut head = Boxes::default();
        head.within(b"ftyp", |b| {
            b.bytes(b"isom");
            b.u32(0x200);
            b.bytes(b"isomiso2avc1mp41");
        });
        let index = |start: u32| {
            let mut index = Boxes::default();
            index.within(b"moov", |b| self.index(b, start));
            index.0
        };
        // The index is as long wherever the pictures begin.
        let start = head.0.len() + index(0).len() + 8;
        let pictures = &self.samples.bytes;
        head.bytes(&index(start as u32));
        head.u32(pictures.len() as u32 + 8);
        head.bytes(b"mdat");
        out.write_all(&head.0)?;
        out.write_all(pictures)?;
        Ok((head.0.len() + pictures.len()) as u64)
    }

    fn pictures(&self) -> u32 {
        self.samples.sizes.len() as u32
    }

    /// The film's length in units of `MILLI`.
    fn duration(&self) -> u32 {
        let length = u64::from(self.pictures()) * u64::from(MILLI);
        length.div_ceil(u64::from(self.format.fps)) as u32
    }

    fn index(&self, b: &mut Boxes, start: u32) {
        b.within(b"mvhd", |b| {
            b.zeros(3); // version, flags, times of creation and change
            b.u32(MILLI);
            b.u32(self.duration());
            b.u32(0x1_0000); // rate
            b.u16(0x100); // volume
            b.bytes(&[0; 10]);
            MATRIX.iter().for_each(|&value| b.u32(value));
            b.zeros(6);
            b.u32(2); // the next track's number
        });
        b.within(b"trak", |b| {
            b.within(b"tkhd", |b| self.track_header(b));
            b.within(b"mdia", |b| {
                b.within(b"mdhd", |b| {
                    b.zeros(3);
                    b.u32(self.format.fps * TICKS);
                    b.u32(self.pictures() * TICKS);
                    b.u16(0x55C4); // language: und
                    b.u16(0);
                });
                b.within(b"hdlr", |b| handler(b, b"vide", "VideoHandler"));
                b.within(b"minf", |b| self.media(b, start));
            });
        });
        b.within(b"udta", |b| self.about(b));
    }

    fn track_header(&self, b: &mut Boxes) {
        b.u32(3); // flags: enabled, in the film
        b.zeros(2);
        b.u32(1); // the track's number
        b.u32(0);
        b.u32(self.duration());
        b.zeros(4); // reserved, layer and group, volume
        MATRIX.iter().for_each(|&value| b.u32(value));
        b.u32(self.format.width << 16);
        b.u32(self.format.height << 16);
    }

    fn media(&self, b: &mut Boxes, start: u32) {
        b.within(b"vmhd", |b| {
            b.u32(1); // flags: always 1
            b.zeros(2);
        });
        b.within(b"dinf", |b| {
            b.within(b"dref", |b| {
                b.u32(0);
                b.u32(1);
                b.within(b"url ", |b| b.u32(1)); // flags: in this file
            });
        });
        b.within(b"stbl", |b| self.table(b, start));
    }

    /// Where each picture is and when it is shown.
    fn table(&self, b: &mut Boxes, start: u32) {
        b.within(b"stsd", |b| {
            b.u32(0);
            b.u32(1);
            b.within(b"avc1", |b| self.description(b));
        });
        b.within(b"stts", |b| {
            b.u32(0);
            b.u32(1);
            b.u32(self.pictures());
            b.u32(TICKS);
        });
        let listed = |b: &mut Boxes, list: &[u32]| {
            b.u32(list.len() as u32);
            list.iter().for_each(|&value| b.u32(value));
        };
        b.within(b"stss", |b| {
            b.u32(0);
            listed(b, &self.samples.keys);
        });
        b.within(b"stsc", |b| {
            b.u32(0);
            b.u32(1);
            b.u32(1); // from the first chunk on
            b.u32(self.pictures()); // all pictures in it
            b.u32(1); // of the first description
        });
        b.within(b"stsz", |b| {
            b.zeros(2);
            listed(b, &self.samples.sizes);
        });
        b.within(b"stco", |b| {
            b.u32(0);
            listed(b, &[start]);
        });
    }

    /// How the pictures are coded.
    fn description(&self, b: &mut Boxes) {
        b.bytes(&[0; 6]);
        b.u16(1); // data reference
        b.zeros(4);
        b.u16(self.format.width as u16);
        b.u16(self.format.height as u16);
        b.u32(0x48_0000); // 72 dots an inch
        b.u32(0x48_0000);
        b.u32(0);
        b.u16(1); // pictures a sample
        b.bytes(&[0; 32]); // the coder's name
        b.u16(24); // depth
        b.u16(0xFFFF);
        let [sequence, picture] = self.parameter_sets;
        b.within(b"avcC", |b| {
            b.bytes(&[1]);
            b.bytes(&sequence[1..4]); // profile, compatibility, level
            b.bytes(&[0xFF, 0xE1]); // lengths of four bytes; one sequence parameter set
            b.u16(sequence.len() as u16);
            b.bytes(sequence);
            b.bytes(&[1]);
            b.u16(picture.len() as u16);
            b.bytes(picture);
        });
        b.within(b"colr", |b| {
            b.bytes(b"nclx");
            [1, 1, 1].into_iter().for_each(|bt_709| b.u16(bt_709));
            b.bytes(&[0]); // limited range
        });
        b.within(b"pasp", |b| {
            b.u32(1);
            b.u32(1);
        });
    }

    /// The title, and that the film is ours, in the form that players show.
    fn about(&self, b: &mut Boxes) {
        let title: String = self.title.chars().take(TITLE_MAX).collect();
        b.within(b"meta", |b| {
            b.u32(0);
            b.within(b"hdlr", |b| handler(b, b"mdir", ""));
            b.within(b"ilst", |b| {
                for (kind, text) in [
                    (b"\xA9nam", title.as_str()),
                    (b"\xA9too", "Tollgate sandbox"),
                ] {
                    if text.is_empty() {
                        continue;
                    }
                    b.within(kind, |b| {
                        b.within(b"data", |b| {
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

fn handler(b: &mut Boxes, kind: &[u8; 4], name: &str) {
    b.zeros(2);
    b.bytes(kind);
    b.zeros(3);
    b.bytes(name.as_bytes());
    b.bytes(&[0]);
}

/// Boxes in the making.
#[derive(Default)]
struct Boxes(Vec<u8>);

impl Boxes {
    /// A box of `kind` with what `fill` writes.
    fn within(&mut self, kind: &[u8; 4], fill: impl FnOnce(&mut Self)) {
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

    /// So many numbers of 32 bits that are 0.
    fn zeros(&mut self, count: usize) {
        self.0.resize(self.0.len() + 4 * count, 0);
    }
}
