//! Fuzz targets for files: uploads of clients, files that requests refer to, and results of providers.

use std::io::Cursor;

use image::{ExtendedColorType, ImageFormat, RgbImage};
use tollgate_core::TaskKind;
use tollgate_media::image::ImageMetadata;
use tollgate_storage::types::check_result;

use crate::target::Target;

pub(crate) fn targets() -> Vec<Target> {
    vec![
        Target {
            name: "image-header".to_owned(),
            corpus: Box::new(|| Ok(images())),
            run: Box::new(|input, _| image_header(input)),
        },
        Target {
            name: "result-file".to_owned(),
            corpus: Box::new(|| Ok([images(), videos_and_audio()].concat())),
            run: Box::new(|input, _| result_file(input)),
        },
    ]
}

/// Asserts that a complete image which is accepted has a size, and that reading only its header gives the same metadata.
fn image_header(input: &[u8]) {
    let length = input.len() as u64;
    let header = ImageMetadata::read(Cursor::new(input), length);
    if let Ok(complete) = ImageMetadata::read_complete(Cursor::new(input), length) {
        assert!(complete.size.width > 0 && complete.size.height > 0);
        assert_eq!(header.ok(), Some(complete));
    }
}

/// Asserts that a rejected result has an error message.
fn result_file(input: &[u8]) {
    let path = std::env::temp_dir().join(format!("tollgate-fuzz-{}", std::process::id()));
    if std::fs::write(&path, input).is_err() {
        return;
    }
    for kind in [TaskKind::Image, TaskKind::Video, TaskKind::Speech] {
        for earlier_results in [0, 1] {
            if let Err(words) = check_result(&path, kind, earlier_results) {
                assert!(!words.is_empty(), "an error without words");
            }
        }
    }
    let _ = std::fs::remove_file(&path);
}

/// A small image in each format.
pub(crate) fn images() -> Vec<Vec<u8>> {
    let drawn = RgbImage::from_fn(16, 12, |x, y| {
        image::Rgb([x, y, x * y].map(|value| value.to_be_bytes()[3]))
    });
    let formats = [
        ImageFormat::Png,
        ImageFormat::Jpeg,
        ImageFormat::Gif,
        ImageFormat::WebP,
        ImageFormat::Bmp,
    ];
    let encode = |format| {
        let mut file = Cursor::new(Vec::new());
        let size = drawn.dimensions();
        let color = ExtendedColorType::Rgb8;
        let written = image::write_buffer_with_format(
            &mut file,
            drawn.as_raw(),
            size.0,
            size.1,
            color,
            format,
        );
        written.ok().map(|()| file.into_inner())
    };
    formats.into_iter().filter_map(encode).collect()
}

/// An MP4 of empty boxes, a WAV of silence, an MP3 of one frame.
fn videos_and_audio() -> Vec<Vec<u8>> {
    let part = |kind: &[u8; 4], inner: &[u8]| {
        let length = u32::try_from(8 + inner.len()).unwrap_or(u32::MAX);
        [&length.to_be_bytes(), &kind[..], inner].concat()
    };
    let track = part(b"trak", &part(b"mdia", &part(b"mdhd", &[0; 24])));
    let mp4 = [
        part(b"ftyp", b"isom\0\0\0\x01isommp42"),
        part(b"moov", &[part(b"mvhd", &[0; 100]), track].concat()),
        part(b"mdat", &[1; 64]),
    ];
    let chunk = |name: &[u8; 4], inner: &[u8]| {
        let length = u32::try_from(inner.len()).unwrap_or(u32::MAX);
        [&name[..], &length.to_le_bytes(), inner].concat()
    };
    let format = [1, 0, 1, 0, 0x40, 0x1f, 0, 0, 0x80, 0x3e, 0, 0, 2, 0, 16, 0];
    let wave = [
        b"WAVE".to_vec(),
        chunk(b"fmt ", &format),
        chunk(b"data", &[0; 64]),
    ];
    // MPEG-1 layer III, 128 kbit/s, 44.1 kHz: 417 bytes a frame.
    let frame = [&[0xff, 0xfb, 0x90, 0x00][..], &[0; 413]].concat();
    vec![
        mp4.concat(),
        chunk(b"RIFF", &wave.concat()),
        [&b"ID3\x04\0\0\0\0\0\0"[..], &frame, &frame].concat(),
    ]
}
