//! Tests every size of every size table.

use serde_json::json;
use tollgate_media::image::PixelSize;
use tollgate_media::video::{FAMILIES, FollowFirstFrame};
use tollgate_media::{Job, MediaJob as _, Submission};

use crate::{adjustment_values, cases, submit};

/// `cases/sizes.txt`, in the form of the docs pages: models, tiers (`-` if there are none), then rows of a ratio and its pixels.
#[test]
fn every_ratio_and_tier_of_an_image_has_its_pixels() {
    for table in cases::read_file("sizes.txt").split("\n\n") {
        let mut lines = table.lines().map(|line| line.split_whitespace().skip(1));
        let (models, tiers) = (lines.next().unwrap(), lines.next().unwrap());
        let ratios = table
            .lines()
            .skip(2)
            .map(|line| line.split(' ').next().unwrap());
        for (ratio, row) in ratios.zip(lines) {
            for ((tier, pixels), id) in tiers
                .clone()
                .zip(row)
                .flat_map(|cell| models.clone().map(move |id| (cell, id)))
            {
                let mut body = json!({ "size": ratio });
                if tier != "-" {
                    body["resolution"] = tier.into();
                }
                let got = submit(id, &body);
                assert_eq!(got.price.pixels.as_deref(), Some(pixels), "{id} {body}");
                assert_eq!((&*got.price.size, got.adjustments.len()), (ratio, 0));
                let size = image_size(&got);
                assert_eq!(size.ratio.as_deref(), Some(ratio));
                assert_eq!(size.tier.as_deref(), (tier != "-").then_some(tier));
                // A size in pixels, alone or with its own tier.
                let alone = json!({ "size": pixels, "resolution": tier.to_uppercase() });
                for body in [json!({ "size": pixels }), alone] {
                    if id == "gpt-image-2-official" {
                        let got = submit(id, &body);
                        assert_eq!(got.price.pixels.as_deref(), Some(pixels));
                        assert_eq!(got.price.resolution.as_deref(), Some(tier));
                        assert_eq!(image_size(&got).ratio, None);
                    }
                }
            }
        }
    }
}

#[test]
fn every_ratio_and_tier_of_a_video_has_its_pixels() {
    for family in FAMILIES {
        // The first model of the family supports every tier.
        let id = family.models[0];
        let ratios: Vec<_> = family.sizes.rows.iter().map(|row| row.ratio).collect();
        assert!(ratios.contains(&family.sizes.default_ratio));
        assert!(family.durations.contains(family.durations.default()));
        for row in family.sizes.rows {
            for (tier, (width, height)) in family.sizes.tiers.iter().zip(row.pixels) {
                let size = PixelSize::new(*width, *height);
                assert!(width % 2 == 0 && height % 2 == 0, "{id} {size}");
                for body in [
                    json!({ "size": size.to_string() }),
                    json!({ "aspect_ratio": row.ratio, "resolution": tier }),
                    json!({ "aspect_ratio": row.ratio, "resolution": tier.to_uppercase() }),
                    json!({ "size": size.to_string(), "aspect_ratio": row.ratio, "resolution": tier }),
                ] {
                    let submission = submit(id, &body);
                    assert_eq!(
                        adjustment_values(&submission.adjustments),
                        json!([]),
                        "{body}"
                    );
                    let Job::Video(job) = submission.job() else {
                        panic!("{id}")
                    };
                    assert_eq!(job.size.pixels, Some(size), "{id} {body}");
                    assert_eq!(job.size.ratio.as_deref(), Some(row.ratio));
                    assert_eq!(job.size.resolution.as_deref(), Some(*tier));
                }
                let named: Vec<f64> = row.ratio.split(':').map(|n| n.parse().unwrap()).collect();
                let off = f64::from(*width) / f64::from(*height) / (named[0] / named[1]);
                assert!(
                    (0.95..1.06).contains(&off),
                    "{id} {size} is no {}",
                    row.ratio
                );
            }
        }
        if family.sizes.follow == FollowFirstFrame::Never {
            let submission = submit(id, &json!({ "image": "https://a/1" }));
            assert_eq!(
                submission.job().pixels(),
                Some(PixelSize::new(1280, 720)),
                "{id}"
            );
        }
    }
}

fn image_size(submission: &Submission) -> &tollgate_media::image::Size {
    match submission.job() {
        Job::Image(job) => &job.size,
        other => panic!("no image: {other:?}"),
    }
}
