//! Tests image-to-image: reference images, masks, and invalid reference files.

use std::path::PathBuf;

use image::{Rgba, RgbaImage};
use tollgate_media::image::ImageFormat;
use tollgate_upstream::{InputFile, UpstreamErrorKind};

use crate::harness::{Attempt, decode, file, job, make, png};

/// An image in which no two rows or columns are alike.
fn pattern(width: u32, height: u32, alpha: u8) -> RgbaImage {
    RgbaImage::from_fn(width, height, |x, y| {
        Rgba([(x * 7 + y) as u8, (y * 5) as u8, (x ^ y) as u8, alpha])
    })
}

fn solid(width: u32, height: u32, colour: [u8; 4]) -> RgbaImage {
    RgbaImage::from_pixel(width, height, Rgba(colour))
}

async fn mean(references: Vec<InputFile>) -> [f64; 3] {
    let attempt = Attempt {
        references,
        ..Attempt::default()
    };
    let image = attempt.run(&job("An edit", 128, 128)).await.image();
    let decoded = decode(&image).into_rgb8();
    let mut sums = [0.0; 3];
    for pixel in decoded.pixels() {
        for (sum, value) in sums.iter_mut().zip(pixel.0) {
            *sum += f64::from(value) / (128.0 * 128.0);
        }
    }
    sums
}

#[tokio::test]
async fn every_reference_image_affects_the_result() {
    let red = png("image_urls-red", &solid(300, 100, [230, 20, 20, 255]));
    let blue = png("image_urls-blue", &solid(90, 400, [20, 20, 230, 255]));
    let from_red = mean(vec![red.clone()]).await;
    let from_blue = mean(vec![blue.clone()]).await;
    assert!(
        from_red[0] > from_blue[0] + 60.0,
        "{from_red:?} {from_blue:?}"
    );
    assert!(
        from_blue[2] > from_red[2] + 60.0,
        "{from_red:?} {from_blue:?}"
    );
    let both = mean(vec![red.clone(), blue]).await;
    assert!(
        both[2] > from_red[2] + 3.0,
        "the second is seen too: {both:?} {from_red:?}"
    );
    let many = mean(vec![red; 16]).await;
    assert!(many[0] > 80.0, "{many:?}");
}

#[tokio::test]
async fn images_from_one_reference_differ() {
    let mut job = job("Vary it", 96, 96);
    job.n = 2;
    let attempt = Attempt {
        references: vec![png("vary", &pattern(64, 64, 255))],
        ..Attempt::default()
    };
    let outcome = attempt.run(&job).await;
    assert_ne!(outcome.images[0].bytes, outcome.images[1].bytes);
}

#[tokio::test]
async fn only_transparent_mask_pixels_are_repainted() {
    let (width, height) = (200, 120);
    for (name, alpha) in [("opaque", 255), ("clear", 77)] {
        let ground = pattern(width, height, alpha);
        let mut mask = solid(width, height, [0, 0, 0, 255]);
        for (x, y, pixel) in mask.enumerate_pixels_mut() {
            pixel.0[3] = match (x, y) {
                (40..150, 30..100) => 0,
                // Nearly transparent pixels do not count as transparent.
                (150..160, _) => 1,
                _ => 255,
            };
        }
        let result = inpainted(name, &ground, &mask, (width, height)).await;
        let mut repainted = 0;
        for (x, y, pixel) in result.enumerate_pixels() {
            if mask.get_pixel(x, y).0[3] != 0 {
                assert_eq!(pixel, ground.get_pixel(x, y), "{name} {x},{y}");
            } else {
                repainted += u32::from(pixel != ground.get_pixel(x, y));
            }
        }
        assert!(repainted > 6000, "{repainted} of 7700");
    }
}

/// The result of an edit of `ground` where `mask` allows it.
async fn inpainted(
    name: &str,
    ground: &RgbaImage,
    mask: &RgbaImage,
    (width, height): (u32, u32),
) -> RgbaImage {
    let attempt = Attempt {
        references: vec![png(&format!("ground-{name}"), ground)],
        mask: Some(png(&format!("mask-{name}"), mask)),
        ..Attempt::default()
    };
    let image = attempt.run(&job("A hole", width, height)).await.image();
    decode(&image).into_rgba8()
}

#[tokio::test]
async fn a_mask_scales_with_its_reference_and_an_opaque_mask_changes_nothing() {
    let green = [10, 200, 30, 255];
    let mut mask = solid(50, 50, [0, 0, 0, 255]);
    let complete = pattern(64, 64, 255);
    let opaque = solid(64, 64, [0, 0, 0, 255]);
    assert_eq!(
        inpainted("opaque", &complete, &opaque, (64, 64)).await,
        complete
    );
    mask.put_pixel(0, 0, Rgba([0, 0, 0, 0]));
    let result = inpainted("scaled", &solid(50, 50, green), &mask, (200, 100)).await;
    for (x, y, pixel) in result.enumerate_pixels() {
        assert!(pixel.0 == green || (x < 4 && y < 2), "{x},{y}");
    }
    assert_ne!(result.get_pixel(1, 1).0, green);
}

#[tokio::test]
async fn every_input_format_is_read() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let image = image::DynamicImage::from(pattern(60, 40, 255)).into_rgb8();
    for format in ImageFormat::ALL {
        let path = folder.join(format!("every.{}", format.extension()));
        image.save(&path).unwrap();
        let attempt = Attempt {
            references: vec![file("image", path, format, (60, 40))],
            ..Attempt::default()
        };
        attempt.run(&job("From any", 48, 48)).await.image();
    }
}

#[tokio::test]
async fn invalid_files_are_rejected_with_the_name_of_their_field() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let complete = make(&job("Whole", 64, 64)).await.bytes;
    let mut huge = complete.to_vec();
    // The header of a PNG that claims 60000 x 60000 pixels, with a corrected checksum.
    huge[16..24].copy_from_slice(&[0, 0, 0xea, 0x60, 0, 0, 0xea, 0x60]);
    let sum = crc(&huge[12..29]);
    huge[29..33].copy_from_slice(&sum.to_be_bytes());
    for (name, bytes) in [
        ("empty", &[][..]),
        ("text", b"<svg/>"),
        ("cut", &complete[..complete.len() / 2]),
        ("header", &complete[..33]),
        ("huge", &huge),
    ] {
        let path = folder.join(format!("broken-{name}"));
        std::fs::write(&path, bytes).unwrap();
        let broken = file("image_urls[3]", path, ImageFormat::Png, (64, 64));
        let good = png(&format!("good-{name}"), &pattern(64, 64, 255));
        for (references, mask) in [
            (vec![broken.clone()], None),
            (vec![good.clone(), broken.clone()], None),
            (vec![good], Some(broken)),
        ] {
            let attempt = Attempt {
                references,
                mask,
                ..Attempt::default()
            };
            let error = attempt.run(&job("x", 64, 64)).await.result.unwrap_err();
            assert_eq!(error.kind, UpstreamErrorKind::Rejected, "{name}");
            assert!(error.message.starts_with("image_urls[3] "), "{error}");
            assert!(!error.message.contains("broken-"), "no paths: {error}");
        }
    }
}

/// PNG's checksum.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ (0xedb8_8320 * (sum & 1))
        })
    })
}
