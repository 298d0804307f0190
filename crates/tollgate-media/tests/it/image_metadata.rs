//! Tests reading the headers of valid files of every format, and of broken and hostile ones.

use std::io::Cursor;

use tollgate_media::image::ImageMetadata;
use tollgate_media::image::{ImageFormat, ImageMetadataError, PixelSize};

use crate::image_file;

fn read_metadata(file: &[u8]) -> Result<ImageMetadata, ImageMetadataError> {
    ImageMetadata::read(Cursor::new(file), file.len() as u64)
}

fn rejected(file: &[u8]) -> String {
    read_metadata(file).unwrap_err().to_string()
}

/// A PNG that begins as stated and has these chunks after its header.
fn png(width: u32, height: u32, depth: u8, colour: u8, chunks: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
    let mut file = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
    file.extend(width.to_be_bytes());
    file.extend(height.to_be_bytes());
    file.extend([depth, colour, 0, 0, 0, 9, 9, 9, 9]);
    for (name, data) in chunks {
        file.extend(u32::try_from(data.len()).unwrap().to_be_bytes());
        file.extend(*name);
        file.extend(*data);
        file.extend([9; 4]);
    }
    file
}

fn webp(chunks: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
    let mut file = b"RIFF\0\0\0\0WEBP".to_vec();
    for (name, data) in chunks {
        file.extend(*name);
        file.extend(u32::try_from(data.len()).unwrap().to_le_bytes());
        file.extend(*data);
        file.extend(vec![0; data.len() % 2]);
    }
    file
}

#[test]
fn headers_of_real_files_are_read() {
    for format in ImageFormat::ALL {
        for (width, height) in [(1, 1), (300, 17), (17, 300)] {
            for alpha in [false, true] {
                if alpha && format == ImageFormat::Jpeg {
                    continue;
                }
                let file = image_file(format, width, height, alpha);
                let found = read_metadata(&file).unwrap_or_else(|e| panic!("{format:?}: {e}"));
                assert_eq!(found.format, format);
                assert_eq!(found.size, PixelSize::new(width, height));
                assert_eq!(found.bytes, file.len() as u64);
                if format != ImageFormat::Gif {
                    assert_eq!(found.has_alpha, alpha, "{format:?}");
                }
                // No truncated file may cause a panic, and a truncated header is rejected.
                for end in 0..file.len().min(400) {
                    let _ = read_metadata(&file[..end]);
                }
                assert!(read_metadata(&file[..12]).is_err());
            }
        }
    }
}

#[test]
fn png_headers_are_read_or_rejected() {
    let data: (&[u8; 4], &[u8]) = (b"IDAT", b"x");
    let good = read_metadata(&png(5, 6, 8, 2, &[(b"tEXt", &[0; 5000]), data])).unwrap();
    assert_eq!((good.size, good.has_alpha), (PixelSize::new(5, 6), false));
    assert!(
        read_metadata(&png(5, 6, 8, 3, &[(b"tRNS", b"x"), data]))
            .unwrap()
            .has_alpha
    );
    assert!(read_metadata(&png(5, 6, 16, 4, &[data])).unwrap().has_alpha);
    assert!(read_metadata(&png(5, 6, 8, 6, &[data])).unwrap().has_alpha);
    for (file, message) in [
        (png(5, 6, 8, 2, &[]), "ends too early"),
        (png(5, 6, 8, 2, &[(b"IEND", b"")]), "data is missing"),
        (png(0, 6, 8, 2, &[data]), "is 0"),
        (png(5, 0, 8, 2, &[data]), "is 0"),
        (png(u32::MAX, 6, 8, 2, &[data]), "header is broken"),
        (png(5, 6, 3, 2, &[data]), "header is broken"),
        (png(5, 6, 16, 3, &[data]), "header is broken"),
        (png(5, 6, 8, 5, &[data]), "header is broken"),
        (
            b"\x89PNG\r\n\x1a\nrubbish and more rubbish".to_vec(),
            "header is missing",
        ),
        (b"\x89PNX\r\n\x1a\n".to_vec(), "signature is broken"),
    ] {
        let error = rejected(&file);
        assert!(error.contains(message), "{message}: {error}");
    }
    // A chunk whose length exceeds the file, and more chunks than any valid file has.
    let mut file = png(5, 6, 8, 2, &[]);
    file.extend(b"\xff\xff\xff\xfftEXt");
    assert!(rejected(&file).contains("ends too early"));
    let many: Vec<(&[u8; 4], &[u8])> = vec![(b"tEXt", b""); 70_000];
    assert!(rejected(&png(5, 6, 8, 2, &many)).contains("too long"));
}

#[test]
fn jpeg_headers_are_read_or_rejected() {
    let frame = |marker: u8| {
        let mut file = b"\xff\xd8\xff\xe1\x00\x04ab\xff\xff\xff".to_vec();
        file.extend([marker, 0, 11, 8, 1, 2, 3, 4, 1, 1, 0x11, 0]);
        file.extend(b"\xff\xda\x00\x02");
        file
    };
    for marker in [0xc0, 0xc1, 0xc2, 0xc3, 0xc5, 0xcf] {
        let found = read_metadata(&frame(marker)).unwrap();
        assert_eq!(found.size, PixelSize::new(0x0304, 0x0102));
        assert!(!found.has_alpha);
    }
    for (file, message) in [
        (frame(0xc4), "frame is missing"),
        (b"\xff\xd8\xff\xd9".to_vec(), "frame is missing"),
        (b"\xff\xd8\xff\xe0\x00\x01".to_vec(), "segments are broken"),
        (b"\xff\xd8\xff\xd8".to_vec(), "segments are broken"),
        (b"\xff\xd8hello".to_vec(), "segments are broken"),
        (b"\xff\xd8\xff\xe0\xff\xff".to_vec(), "ends too early"),
        (
            [b"\xff\xd8".to_vec(), vec![0xff; 100_000]].concat(),
            "too long",
        ),
    ] {
        let error = rejected(&file);
        assert!(error.contains(message), "{message}: {error}");
    }
}

#[test]
fn webp_headers_are_read_or_rejected() {
    let canvas = |flags: u8| [flags, 0, 0, 0, 9, 1, 0, 19, 0, 0];
    let still = |flags: u8| webp(&[(b"VP8X", &canvas(flags)), (b"ICCP", b"odd"), (b"VP8 ", b"")]);
    let found = read_metadata(&still(0x10)).unwrap();
    assert_eq!(
        (found.size, found.has_alpha),
        (PixelSize::new(266, 20), true)
    );
    assert!(!read_metadata(&still(0)).unwrap().has_alpha);
    let lossy = webp(&[(b"VP8 ", b"\x00\x00\x00\x9d\x01\x2a\x40\x41\x20\x80")]);
    assert_eq!(
        read_metadata(&lossy).unwrap().size,
        PixelSize::new(0x0140, 0x20)
    );
    for (file, message) in [
        (webp(&[(b"VP8X", &canvas(0))]), "ends too early"),
        (
            webp(&[(b"VP8 ", b"\x01\x00\x00\x9d\x01\x2a\x40\x41\x20\x80")]),
            "frame is broken",
        ),
        (
            webp(&[(b"VP8 ", b"\x00\x00\x00\x9d\x01\x2a\x00\x00\x20\x80")]),
            "is 0",
        ),
        (webp(&[(b"VP8L", b"\x2e\0\0\0\0")]), "frame is broken"),
        (webp(&[(b"JUNK", b"\x2e\0\0\0\0")]), "header is broken"),
        (b"RIFF\0\0\0\0WAVEfmt ".to_vec(), "signature is broken"),
    ] {
        let error = rejected(&file);
        assert!(error.contains(message), "{message}: {error}");
    }
}

#[test]
fn gif_and_bmp_headers_are_read_or_rejected() {
    let gif = |tail: &[u8]| [b"GIF89a\x05\x00\x06\x00\x80\x00\x00abcdef", tail].concat();
    let found = read_metadata(&gif(b"\x21\xfe\x02hi\x00\x21\xf9\x04\x01\0\0\0\0\x2c")).unwrap();
    assert_eq!((found.size, found.has_alpha), (PixelSize::new(5, 6), true));
    assert!(
        !read_metadata(&gif(b"\x21\xf9\x04\x00\0\0\0\0\x2c"))
            .unwrap()
            .has_alpha
    );
    assert!(rejected(&gif(b"\x3b")).contains("data is missing"));
    assert!(rejected(b"GIF90a\x05\x00\x06\x00").contains("signature"));
    let endless = [b"\x21\xfe".to_vec(), b"\x01x".repeat(70_000)].concat();
    assert!(rejected(&gif(&endless)).contains("too long"));

    let bmp = |length: u32, rest: &[u8]| {
        [
            b"BM".to_vec(),
            vec![0; 12],
            length.to_le_bytes().to_vec(),
            rest.to_vec(),
        ]
        .concat()
    };
    assert_eq!(
        read_metadata(&bmp(12, &[7, 0, 8, 0])).unwrap().size,
        PixelSize::new(7, 8)
    );
    let flipped = [7, 0, 0, 0, 0xf8, 0xff, 0xff, 0xff, 1, 0, 24, 0];
    assert_eq!(
        read_metadata(&bmp(40, &flipped)).unwrap().size,
        PixelSize::new(7, 8)
    );
    let narrow = [0xff, 0xff, 0xff, 0xff, 8, 0, 0, 0, 1, 0, 24, 0];
    assert!(rejected(&bmp(40, &narrow)).contains("header is broken"));
    assert!(rejected(&bmp(41, &flipped)).contains("header is broken"));
}

#[test]
fn other_bytes_are_rejected() {
    for file in [
        &b""[..],
        b"x",
        b"<svg/>",
        b"%PDF-1.7",
        b"\0\0\0\x20ftypavif",
        &[0; 4096],
    ] {
        assert!(read_metadata(file).is_err());
    }
    assert!(rejected(b"%PDF-1.7").contains("not those of an image file"));
    // No more is read than the stated length.
    let file = image_file(ImageFormat::Png, 3, 3, false);
    assert!(ImageMetadata::read(Cursor::new(&file), 20).is_err());
}
