//! Tests the MP4 files of encoded clips: structure, reproducibility, limits.

use std::io::ErrorKind;
use std::ops::ControlFlow;

use sha2::{Digest, Sha256};
use tollgate_sandbox::video::{ClipInfo, ClipSpec, encode_clip};

/// An image with gradients, edges and some noise.
fn test_image(width: u32, height: u32) -> Vec<u8> {
    let pixel = |x: u32, y: u32| {
        let disc = (x * 2).abs_diff(width).pow(2) + (y * 2).abs_diff(height).pow(2);
        let inside = disc < height.pow(2) / 3;
        let noise = (x.wrapping_mul(2_654_435_761) ^ y.wrapping_mul(40_503)) >> 13 & 7;
        let red = if inside { 230 } else { 40 + noise };
        [
            red as u8,
            (x * 255 / width) as u8,
            (y * 255 / height) as u8,
            255,
        ]
    };
    (0..height)
        .flat_map(|y| (0..width).flat_map(move |x| pixel(x, y)))
        .collect()
}

fn encode(spec: &ClipSpec<'_>) -> (Vec<u8>, ClipInfo) {
    let mut file = Vec::new();
    let info =
        encode_clip(spec, &mut file, |_, _| ControlFlow::Continue(())).expect("a legal spec");
    assert_eq!(info.bytes, file.len() as u64);
    (file, info)
}

fn spec(first: &[u8], width: u32, height: u32) -> ClipSpec<'_> {
    ClipSpec {
        first,
        width,
        height,
        seconds: 2,
        fps: 24,
        seed: 5,
        caption: "A film 电影",
    }
}

/// The boxes in `bytes`. Asserts that there is nothing else.
fn boxes(bytes: &[u8]) -> Vec<(&str, &[u8])> {
    let mut found = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let size = number(rest, 0) as usize;
        let kind = std::str::from_utf8(&rest[4..8]).expect("a plain name");
        found.push((kind, &rest[8..size]));
        rest = &rest[size..];
    }
    found
}

/// The box at `path`. Asserts that each part of the path is the only box with its name.
fn at<'a>(bytes: &'a [u8], path: &str) -> &'a [u8] {
    path.split('/').fold(bytes, |bytes, name| {
        let all = boxes(bytes);
        let mut named = all.iter().filter(|(kind, _)| *kind == name);
        let (_, found) = named.next().unwrap_or_else(|| panic!("no {name}"));
        assert!(named.next().is_none(), "two of {name}");
        found
    })
}

fn number(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap())
}

/// The numbers of a table whose count is at the offset `count`.
fn list(table: &[u8], count: usize) -> Vec<u32> {
    let numbers = table[count + 4..].chunks_exact(4);
    assert_eq!(numbers.len(), number(table, count) as usize);
    assert!(numbers.remainder().is_empty());
    numbers.map(|four| number(four, 0)).collect()
}

/// Reads the bits of a NAL unit.
struct BitReader {
    bytes: Vec<u8>,
    at: usize,
}

impl BitReader {
    fn new(unit: &[u8]) -> Self {
        let (mut bytes, mut zeros) = (Vec::new(), 0);
        for &byte in &unit[1..] {
            assert!(zeros < 2 || byte > 2, "a start code inside a unit");
            if zeros < 2 || byte != 3 {
                bytes.push(byte);
            }
            zeros = if byte == 0 { zeros + 1 } else { 0 };
        }
        Self { bytes, at: 0 }
    }

    fn fixed(&mut self, count: u32) -> u32 {
        (0..count).fold(0, |value, _| {
            let bit = self.bytes[self.at / 8] >> (7 - self.at % 8) & 1;
            self.at += 1;
            value << 1 | u32::from(bit)
        })
    }

    fn ue(&mut self) -> u32 {
        let mut length = 0;
        while self.fixed(1) == 0 {
            length += 1;
        }
        (1 << length) - 1 + self.fixed(length)
    }

    /// Width and height from a sequence parameter set, after cropping.
    fn size(&mut self) -> (u32, u32) {
        assert_eq!(self.fixed(8), 66, "baseline profile");
        self.fixed(16);
        assert_eq!((self.ue(), self.ue(), self.ue(), self.ue()), (0, 0, 0, 6));
        assert_eq!((self.ue(), self.fixed(1)), (1, 0), "one reference image");
        let (columns, rows) = (self.ue() + 1, self.ue() + 1);
        assert_eq!(self.fixed(2), 0b11);
        let mut cropped = [0; 4];
        if self.fixed(1) == 1 {
            cropped = std::array::from_fn(|_| self.ue() * 2);
        }
        let [left, right, top, bottom] = cropped;
        (columns * 16 - left - right, rows * 16 - top - bottom)
    }
}

#[test]
fn a_video_file_has_all_boxes_and_frames() {
    // Sides that are multiples of macroblocks and sides that are not; with and without space for the bar.
    for (width, height) in [(320, 180), (144, 112), (128, 208), (16, 16), (34, 306)] {
        let first = test_image(width, height);
        let (file, info) = encode(&spec(&first, width, height));
        assert_eq!(info.frames, 48);
        let kinds: Vec<_> = boxes(&file).into_iter().map(|(kind, _)| kind).collect();
        assert_eq!(kinds, ["ftyp", "moov", "mdat"]);

        let track = at(&file, "moov/trak");
        let header = at(track, "tkhd");
        assert_eq!(
            (number(header, 76) >> 16, number(header, 80) >> 16),
            (width, height)
        );
        assert_eq!(number(at(&file, "moov/mvhd"), 16), 2000, "milliseconds");
        let media = at(track, "mdia/mdhd");
        assert_eq!(number(media, 16), 2 * number(media, 12), "seconds");

        let table = at(track, "mdia/minf/stbl");
        let times = at(table, "stts");
        assert_eq!((number(times, 4), number(times, 8)), (1, 48));
        assert_eq!(number(times, 12) * 24, number(media, 12));
        assert_eq!(list(at(table, "stss"), 4), [1, 25]);
        assert_eq!(number(at(table, "stsc"), 12), 48, "all in one chunk");
        let sizes = list(at(table, "stsz"), 8);
        assert_eq!(sizes.len(), 48);

        let start = list(at(table, "stco"), 4);
        let images = at(&file, "mdat");
        assert_eq!(start, [(file.len() - images.len()) as u32]);
        let mut rest = images;
        for (at, &size) in sizes.iter().enumerate() {
            let (sample, others) = rest.split_at(size as usize);
            assert_eq!(number(sample, 0) as usize, sample.len() - 4);
            assert_eq!(sample[4], if at % 24 == 0 { 0x65 } else { 0x01 });
            rest = others;
        }
        assert!(rest.is_empty());

        // The description has a header of its own before its boxes.
        let description = &at(&at(table, "stsd")[8..], "avc1")[78..];
        let parameters = at(description, "avcC");
        let length = usize::from(u16::from_be_bytes([parameters[6], parameters[7]]));
        let (sequence, image) = parameters[8..].split_at(length);
        assert_eq!(
            (parameters[5], sequence[0], image[0], image[3]),
            (0xE1, 0x67, 1, 0x68)
        );
        assert_eq!(parameters[1..4], sequence[1..4]);
        assert_eq!(BitReader::new(sequence).size(), (width, height));
    }
}

#[test]
fn the_same_spec_gives_the_same_bytes() {
    let first = test_image(208, 160);
    let base = spec(&first, 208, 160);
    let (file, _) = encode(&base);
    let title = base.caption.as_bytes();
    assert!(file.windows(title.len()).any(|bytes| bytes == title));
    let other = ClipSpec { seed: 6, ..base };
    assert_ne!(encode(&other).0, file);
    // ffmpeg and Chromium decoded exactly these bytes, and a person checked the images: repeat that before changing the checksum.
    let sum: String = Sha256::digest(&file)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    assert_eq!(
        sum,
        "dc605b5a7b6c9b66d95815b79ce1ef360424cc27c4f61528d3b5f21e09196396"
    );
}

#[test]
fn p_frames_are_a_fraction_of_i_frames() {
    let first = test_image(640, 360);
    let (file, _) = encode(&spec(&first, 640, 360));
    let sizes = list(at(&file, "moov/trak/mdia/minf/stbl/stsz"), 8);
    let (key, between) = (sizes[24], sizes[47]);
    assert!(between > 100 && between * 4 < key, "{key} {between}");
    assert!(between < 640 * 360 / 150, "{between}");
}

#[test]
fn noise_is_encoded_with_coarse_quantisation() {
    let mut state = 1u32;
    let noise: Vec<u8> = (0..320 * 240 * 4)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .collect();
    let (file, _) = encode(&spec(&noise, 320, 240));
    let sizes = list(at(&file, "moov/trak/mdia/minf/stbl/stsz"), 8);
    // With the finest quantisation, which other images get, this one would need far more bytes.
    assert!(sizes[0] < 320 * 240 * 6 / 10, "{}", sizes[0]);
}

#[test]
fn encoding_can_be_cancelled() {
    let first = test_image(64, 64);
    let mut seen = Vec::new();
    let mut file = Vec::new();
    let stopped = encode_clip(&spec(&first, 64, 64), &mut file, |encoded, total| {
        seen.push((encoded, total));
        match encoded {
            3 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    });
    assert_eq!(stopped.unwrap_err().kind(), ErrorKind::Interrupted);
    assert_eq!(seen, [(0, 48), (1, 48), (2, 48), (3, 48)]);
    assert!(file.is_empty());
}

#[test]
fn specs_out_of_range_are_rejected() {
    let first = test_image(64, 64);
    let base = spec(&first, 64, 64);
    for (spec, why) in [
        (
            ClipSpec { width: 63, ..base },
            "the sides of a video are even, not 63x64",
        ),
        (
            ClipSpec { height: 8, ..base },
            "height of a video is 16 to 8192, not 8",
        ),
        (
            ClipSpec { seconds: 0, ..base },
            "seconds of a video is 1 to 60, not 0",
        ),
        (
            ClipSpec { fps: 61, ..base },
            "fps of a video is 1 to 60, not 61",
        ),
        (
            ClipSpec { height: 62, ..base },
            "the first frame has 16384 bytes, not 15872",
        ),
    ] {
        let rejected = encode_clip(&spec, &mut Vec::new(), |_, _| ControlFlow::Continue(()));
        let error = rejected.unwrap_err();
        assert_eq!(
            (error.kind(), error.to_string().as_str()),
            (ErrorKind::InvalidInput, why)
        );
    }
}
