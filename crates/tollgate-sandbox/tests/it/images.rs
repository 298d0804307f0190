//! Tests generated images: sizes, formats, reproducibility, directives, duration and progress.

use std::time::Duration;

use tokio::time::Instant;
use tollgate_media::image::{Background, ImageFormat};
use tollgate_upstream::{ProviderError, UpstreamErrorKind};

use crate::harness::{Attempt, decode, job, make, provider};

#[tokio::test]
async fn images_have_the_requested_size_and_format() {
    for (width, height, format) in [
        (1, 1, ImageFormat::Png),
        (16, 16, ImageFormat::Webp),
        (512, 512, ImageFormat::Png),
        (887, 1774, ImageFormat::Png),
        (1881, 836, ImageFormat::Jpeg),
        (1024, 128, ImageFormat::Webp),
        (128, 1024, ImageFormat::Png),
        (256, 2048, ImageFormat::Jpeg),
        (1365, 1024, ImageFormat::Webp),
        (5404, 3040, ImageFormat::Png),
        (4096, 1, ImageFormat::Png),
        (1, 4096, ImageFormat::Jpeg),
    ] {
        let mut job = job("A red fox 在雪地里 🦊 at dawn", width, height);
        job.output_format = format;
        let image = make(&job).await;
        assert_eq!(image.format, format);
        let decoded = decode(&image);
        assert_eq!((decoded.width(), decoded.height()), (width, height));
        assert!(!decoded.color().has_alpha(), "{width}x{height}");
    }
}

#[tokio::test]
async fn any_prompt_can_be_rendered() {
    for prompt in [
        String::new(),
        "🦊🦊🦊".into(),
        "word ".repeat(1200),
        "长".repeat(5000),
        "x".repeat(5000),
        "\u{202e}\u{0}\u{feff}e\u{301}\u{301}\u{301} سلام שלום नमस्ते".into(),
    ] {
        for (width, height) in [(256, 256), (640, 80), (80, 640)] {
            decode(&make(&job(&prompt, width, height)).await);
        }
    }
}

#[tokio::test]
async fn the_same_request_gives_the_same_bytes() {
    let base = job("Lighthouse in a storm", 256, 256);
    let first = make(&base).await.bytes;
    assert_eq!(first, make(&base).await.bytes);
    let late = Attempt {
        failed_attempts: 3,
        time: Duration::from_millis(30),
        ..Attempt::default()
    };
    assert_eq!(first, late.run(&base).await.image().bytes);
    let mut directed = base.clone();
    directed.prompt += " [[sandbox:delay=1]]";
    assert_eq!(
        first,
        make(&directed).await.bytes,
        "directives are not drawn"
    );

    let mut others = vec![base.clone(); 4];
    others[0].prompt = "Lighthouse in a calm".into();
    others[1].seed = Some(7);
    others[2].quality = Some("high".into());
    others[3].model = "other".into();
    for other in others {
        assert_ne!(first, make(&other).await.bytes);
    }
}

#[tokio::test]
async fn images_of_one_request_differ() {
    let mut job = job("Four of a kind", 128, 128);
    job.n = 4;
    let outcome = Attempt::default().run(&job).await;
    assert!(outcome.result.unwrap().failures.is_empty());
    let mut files: Vec<_> = outcome.images.iter().map(|p| p.bytes.clone()).collect();
    files.sort();
    files.dedup();
    assert_eq!(files.len(), 4);
}

#[tokio::test]
async fn compression_changes_the_size_of_jpeg_and_webp() {
    for format in [ImageFormat::Jpeg, ImageFormat::Webp] {
        let mut job = job("Compressed", 512, 512);
        job.output_format = format;
        let mut sizes = Vec::new();
        for quality in [0, 30, 60, 100] {
            job.output_compression = Some(quality);
            sizes.push(make(&job).await.bytes.len());
        }
        assert!(sizes.is_sorted_by(|a, b| a < b), "{format:?}: {sizes:?}");
    }
}

#[tokio::test]
async fn a_transparent_background_is_transparent() {
    for format in [ImageFormat::Png, ImageFormat::Webp] {
        for (width, height) in [(300, 200), (64, 512)] {
            let mut job = job("Sticker", width, height);
            job.background = Some(Background::Transparent);
            job.output_format = format;
            let decoded = decode(&make(&job).await).into_rgba8();
            for (x, y) in [
                (0, 0),
                (width - 1, 0),
                (0, height - 1),
                (width - 1, height - 1),
            ] {
                assert_eq!(decoded.get_pixel(x, y).0[3], 0, "{format:?} corner {x},{y}");
            }
            let middle = decoded.get_pixel(width / 2, height / 2).0[3];
            assert_eq!(middle, 255, "{format:?}");
        }
    }
}

#[tokio::test]
async fn a_watermark_changes_only_the_lower_right() {
    let plain_job = job("Marked", 512, 512);
    let mut marked_job = plain_job.clone();
    marked_job.watermark = Some(true);
    let plain = decode(&make(&plain_job).await).into_rgb8();
    let marked = decode(&make(&marked_job).await).into_rgb8();
    let changed: Vec<(u32, u32)> = plain
        .enumerate_pixels()
        .filter(|(x, y, pixel)| marked.get_pixel(*x, *y) != *pixel)
        .map(|(x, y, _)| (x, y))
        .collect();
    assert!(!changed.is_empty());
    assert!(changed.iter().all(|(x, y)| *x > 256 && *y > 400));
}

#[tokio::test]
async fn a_palette_sets_the_colours() {
    let mut job = job("Blue and orange", 256, 256);
    job.extra = serde_json::from_str(
        r##"{"color_palette": [{"hex": "#1B3A8C", "ratio": "50.00%"},
            {"hex": "#274CB5", "ratio": "25.00%"}, {"hex": "#3F6FE0", "ratio": "25.00%"}]}"##,
    )
    .unwrap();
    let decoded = decode(&make(&job).await).into_rgb8();
    let blue = decoded.pixels().filter(|p| p.0[2] >= p.0[0]).count();
    assert!(blue as f64 > 0.98 * 256.0 * 256.0, "{blue} pixels are blue");
}

/// The error of one attempt at `prompt`. Asserts that nothing is delivered.
async fn failure(prompt: &str, failed_attempts: u32) -> Option<ProviderError> {
    let attempt = Attempt {
        failed_attempts,
        ..Attempt::default()
    };
    let outcome = attempt.run(&job(prompt, 32, 32)).await;
    assert_eq!(outcome.result.is_ok(), !outcome.images.is_empty());
    outcome.result.err()
}

#[tokio::test]
async fn directives_determine_the_outcome_of_attempts() {
    use UpstreamErrorKind::{Failed, Moderated, Rejected, Unavailable, UnsupportedByChannel};
    for (prompt, failed_attempts, expected) in [
        ("plain", 0, None),
        ("[[sandbox:nonsense]] [[sandbox:fail=x]]", 0, None),
        ("[[sandbox:fail]]", 0, Some((Failed, None))),
        ("[[sandbox:fail]]", 5, Some((Failed, None))),
        ("[[sandbox:fail=2]]", 0, Some((Unavailable, None))),
        ("[[sandbox:fail=2]]", 1, Some((Unavailable, None))),
        ("[[sandbox:fail=2]]", 2, None),
        ("[[sandbox:moderated]]", 0, Some((Moderated, None))),
        (
            "[[sandbox:fail=1]][[sandbox:status=503]]",
            0,
            Some((Unavailable, Some(503))),
        ),
        ("[[sandbox:fail=1]][[sandbox:status=503]]", 1, None),
    ] {
        let error = failure(prompt, failed_attempts).await;
        let found = error.map(|error| (error.kind, error.status));
        assert_eq!(found, expected, "{prompt}, {failed_attempts} failed");
    }
    for (kind, statuses) in [
        (Rejected, &[400, 413, 422][..]),
        (UnsupportedByChannel, &[401, 402, 403, 404]),
        (Unavailable, &[200, 302, 408, 409, 429, 500, 503]),
    ] {
        for status in statuses {
            let error = failure(&format!("[[sandbox:status={status}]]"), 9).await;
            let error = error.expect("a failure");
            assert_eq!((error.kind, error.status), (kind, Some(*status)));
        }
    }
}

#[tokio::test]
async fn partial_delivers_only_k_images() {
    for (directive, delivered) in [("partial=0", 0), ("partial=2", 2), ("partial=9", 3)] {
        let mut job = job(&format!("x [[sandbox:{directive}]]"), 32, 32);
        job.n = 3;
        let outcome = Attempt::default().run(&job).await;
        assert_eq!(outcome.images.len(), delivered, "{directive}");
        assert_eq!(outcome.result.unwrap().failures.len(), 3 - delivered);
    }
}

#[tokio::test]
async fn moderation_rejects_only_prompts_with_the_directive() {
    let review = provider(Duration::ZERO).moderation.unwrap();
    assert!(review.check_prompt("a cat").await.is_ok());
    let error = review
        .check_prompt("a [[sandbox:moderated]] cat")
        .await
        .unwrap_err();
    assert_eq!(error.kind, UpstreamErrorKind::Moderated);
}

#[tokio::test(start_paused = true)]
async fn an_attempt_takes_the_configured_time_and_reports_progress() {
    let attempt = Attempt {
        time: Duration::from_millis(200),
        ..Attempt::default()
    };
    let start = Instant::now();
    let outcome = attempt.run(&job("slow", 16, 16)).await;
    assert!(start.elapsed() >= Duration::from_millis(200));
    assert!(outcome.progress.is_sorted(), "{:?}", outcome.progress);
    assert!(outcome.progress.len() >= 2, "{:?}", outcome.progress);
    assert!(outcome.progress.iter().all(|percent| *percent < 100));
    assert_eq!(outcome.images.len(), 1);
    // A directive replaces the configured time, also for a failure.
    let attempt = Attempt {
        time: Duration::from_secs(3600),
        ..Attempt::default()
    };
    attempt
        .run(&job("[[sandbox:delay=0]]", 16, 16))
        .await
        .image();
    let start = Instant::now();
    failure("[[sandbox:delay=60]][[sandbox:fail]]", 0).await;
    assert!(start.elapsed() >= Duration::from_millis(60));
}

#[tokio::test(start_paused = true)]
async fn cancelling_ends_a_waiting_attempt_at_once() {
    for prompt in [
        "[[sandbox:hang]]",
        "[[sandbox:delay=3600000]]",
        "[[sandbox:hang]][[sandbox:fail]]",
    ] {
        let attempt = Attempt::default();
        let cancel = attempt.cancel.clone();
        tokio::spawn(async move {
            // The paused clock moves when the attempt waits.
            tokio::time::sleep(Duration::from_millis(50)).await;
            cancel.cancel();
        });
        let start = Instant::now();
        let error = attempt.run(&job(prompt, 16, 16)).await.result.unwrap_err();
        assert_eq!(error.kind, UpstreamErrorKind::Interrupted, "{prompt}");
        assert!(start.elapsed() < Duration::from_secs(1), "{prompt}");
    }
}
