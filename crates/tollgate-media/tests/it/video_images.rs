//! Images of the video families: frames and references, their forms, and the size that follows the first frame.

use serde_json::{Value, json};
use tollgate_core::TaskKind;
use tollgate_media::image::{ImageFormat, ImageSource, InputImage};
use tollgate_media::input::InputRole;
use tollgate_media::video::{FAMILIES, FollowFirstFrame, ImageUse};
use tollgate_media::{AnyFamily, Endpoint, Job, MediaJob as _};

use crate::video::{job, pixels, rejection, submit, video};
use crate::{CATALOGUE, URL, adjustment_values, image_file, metadata, urls};

#[test]
fn images_are_frames_or_references() {
    use ImageUse::{FirstAndLast, FirstFrame, References};
    for (id, uses) in [
        ("sora-2", vec![FirstFrame]),
        ("veo-3.1-pro", vec![FirstFrame]),
        (
            "grok-imagine-video-1.5",
            vec![
                FirstFrame, References, References, References, References, References, References,
            ],
        ),
        ("seedance-1.0-pro", vec![FirstFrame, FirstAndLast]),
        (
            "seedance-1.0-mini",
            vec![FirstFrame, FirstAndLast, References, References],
        ),
        ("seedance-1.5-pro", vec![FirstFrame, FirstAndLast]),
        (
            "seedance-2.0",
            vec![
                FirstFrame, References, References, References, References, References, References,
                References, References,
            ],
        ),
    ] {
        for (index, expected) in uses.iter().enumerate() {
            let submission = submit(id, &json!({ "images": urls(index + 1) }));
            assert_eq!(submission.adjustments, [], "{id} {index}");
            assert_eq!(
                video(&submission).image_use,
                Some(*expected),
                "{id} {index}"
            );
            assert_eq!(submission.inputs.len(), index + 1);
        }
        if !["sora-2", "veo-3.1-pro"].contains(&id) {
            rejection(id, &json!({ "images": urls(uses.len() + 1) }));
        }
    }
    for id in ["sora-2", "veo-3.1-flash"] {
        let submission = submit(id, &json!({ "images": [URL, "https://example.com/b.png"] }));
        assert_eq!(submission.inputs.len(), 1);
        assert_eq!(
            adjustment_values(&submission.adjustments),
            [(
                "images[1]".to_owned(),
                json!("https://example.com/b.png"),
                Value::Null
            )]
        );
    }
    let fast = submit(
        "seedance-1.0-fast",
        &json!({ "image": URL, "images": ["https://example.com/b.png"] }),
    );
    assert_eq!(video(&fast).image_use, Some(FirstFrame));
    assert_eq!(
        adjustment_values(&fast.adjustments),
        [(
            "images[0]".to_owned(),
            json!("https://example.com/b.png"),
            Value::Null
        )]
    );
    assert_eq!(
        fast.into_job(vec![ImageSource::Url(URL.to_owned())])
            .input_images()
            .len(),
        1
    );
    for (id, body, words) in [
        (
            "seedance-1.0-pro",
            json!({ "images": urls(3) }),
            "`images` must be at most 2 for seedance-1.0-pro",
        ),
        (
            "seedance-1.0-fast",
            json!({ "images": urls(3) }),
            "`images` must be at most 2 for seedance-1.0-fast",
        ),
        (
            "seedance-1.5-pro",
            json!({ "image": "https://a/1", "images": urls(2) }),
            "at most 2 images together, got 3",
        ),
        (
            "seedance-1.0-mini",
            json!({ "images": urls(3), "resolution": "1080p" }),
            "`resolution` must be 480p or 720p with references",
        ),
        (
            "grok-imagine-video-1.5",
            json!({ "images": urls(2), "seconds": "11" }),
            "`seconds` must be at most 10 with several images",
        ),
        (
            "grok-imagine-video-1.5",
            json!({ "images": urls(2), "size": "1920x1080" }),
            "`size` must be 480p or 720p with several images",
        ),
    ] {
        let message = rejection(id, &body);
        assert!(message.contains(words), "{id} {body}: {message}");
    }
    let mini = submit(
        "seedance-1.0-mini",
        &json!({ "images": urls(3), "metadata": { "camera_fixed": true } }),
    );
    assert_eq!(mini.adjustments[0].field, "metadata.camera_fixed");
    assert_eq!(video(&mini).camera_fixed, None);
}

#[test]
fn images_come_in_many_forms() {
    let png = image_file(ImageFormat::Png, 320, 320, false);
    let data = crate::data_uri("image/png", &png);
    let bare = data.split_once(',').unwrap().1.to_owned();
    for (body, field) in [
        (json!({ "image": URL }), "image"),
        (json!({ "image": data }), "image"),
        (json!({ "image": bare }), "image"),
        (json!({ "input_reference": URL }), "input_reference"),
        (
            json!({ "input_reference": { "image_url": URL } }),
            "input_reference",
        ),
        (json!({ "image": { "image_url": { "url": URL } } }), "image"),
        (json!({ "images": [data] }), "images[0]"),
        (json!({ "images": [bare] }), "images[0]"),
        (json!({ "images": [{ "url": URL }] }), "images[0]"),
        (json!({ "images": [{ "url": data }] }), "images[0]"),
    ] {
        let submission = submit("seedance-1.5-pro", &body);
        assert_eq!(submission.adjustments, [], "{body}");
        let fields: Vec<&str> = submission
            .inputs
            .iter()
            .map(|input| input.field.as_str())
            .collect();
        assert_eq!(fields, [field], "{body}");
    }
    // Clients that fill in both fields mean one image.
    let both = submit(
        "seedance-1.5-pro",
        &json!({ "image": URL, "images": [URL, "https://a/2"] }),
    );
    let fields: Vec<&str> = both
        .inputs
        .iter()
        .map(|input| input.field.as_str())
        .collect();
    assert_eq!(fields, ["image", "images[1]"]);
    assert_eq!(
        submit("seedance-1.5-pro", &json!({ "images": [] })).inputs,
        []
    );

    let long = "cat".repeat(40);
    for (body, words) in [
        (
            json!({ "image": "cat.png" }),
            "`image` must be an absolute http or https URL",
        ),
        (
            json!({ "image": 7 }),
            "`image` must be an image: its URL, data URI or base64",
        ),
        (
            json!({ "image": { "file_id": "f" } }),
            "`image` must be an image",
        ),
        (json!({ "image": { "url": 7 } }), "`image` must be an image"),
        (
            json!({ "image": { "url": "x" } }),
            "`image.url` must be an absolute",
        ),
        (
            json!({ "input_reference": "x" }),
            "`input_reference` must be an absolute",
        ),
        (
            json!({ "image": URL, "input_reference": "https://a/b" }),
            "`image` and `input_reference` are one field but differ",
        ),
        (json!({ "images": URL }), "`images` must be an array"),
        (json!({ "images": [null] }), "`images[0]` must be an image"),
        (json!({ "image": long }), "`image` must hold an image, but"),
        (
            json!({ "image": format!("{bare}A") }),
            "`image` must hold valid base64",
        ),
        (
            json!({ "image": "data:image/png;base64,AAAA" }),
            "`image` must hold an image",
        ),
    ] {
        let message = rejection("seedance-1.5-pro", &body);
        assert!(message.contains(words), "{body}: {message}");
    }
    let gif = crate::data_uri("image/gif", &image_file(ImageFormat::Gif, 320, 320, false));
    let bare_gif = gif.split_once(',').unwrap().1;
    assert!(
        rejection("veo-3.1-pro", &json!({ "image": gif }))
            .contains("must be a data URI of jpeg, png")
    );
    assert!(
        rejection("veo-3.1-pro", &json!({ "image": bare_gif }))
            .contains("must be base64 of jpeg, png, got gif")
    );
}

#[test]
fn a_video_without_a_ratio_follows_its_first_frame() {
    let images = |count| json!({ "images": urls(count), "resolution": "720p" });
    for (id, count, first, expected) in [
        ("seedance-1.5-pro", 1, (800, 1400), "720x1280"),
        ("seedance-1.5-pro", 2, (1400, 1400), "960x960"),
        ("seedance-1.0-pro", 1, (2100, 900), "1504x640"),
        ("seedance-2.0", 1, (1000, 760), "1112x834"),
        ("grok-imagine-video-1.5", 1, (600, 400), "1080x720"),
    ] {
        let submission = submit(id, &images(count));
        let shown = json!({ "seconds": video(&submission).seconds.to_string(), "size": "720p" });
        assert_eq!(Value::Object(submission.job().echoed_fields()), shown);
        assert_eq!(
            (submission.price.size.as_str(), &submission.price.pixels),
            ("auto", &None)
        );
        let mut price = submission.price.clone();
        let family = CATALOGUE
            .task_model(id, Endpoint::VideoGenerations)
            .unwrap()
            .family;
        let mut job = submission.into_job(vec![ImageSource::Url(URL.to_owned()); count]);
        let known = |known: bool| vec![known.then(|| crate::metadata(first.0, first.1)); count];
        family
            .apply_reference_metadata(&mut job, &known(false))
            .unwrap();
        assert_eq!(job.pixels(), None);
        family
            .apply_reference_metadata(&mut job, &known(true))
            .unwrap();
        price.update_from(&job);
        assert_eq!(price.pixels.as_deref(), Some(expected), "{id}");
        assert_eq!(job.echoed_fields()["size"], expected);
        let Job::Video(video) = &job else {
            panic!("no video")
        };
        assert_eq!(video.size.ratio, None);
    }
    // Asked for by name, with a first frame; references are none.
    let named = submit(
        "seedance-2.0",
        &json!({ "image": URL, "aspect_ratio": "adaptive" }),
    );
    assert_eq!(
        (pixels(video(&named)).as_str(), named.price.size.as_str()),
        ("follows", "adaptive")
    );
    rejection(
        "seedance-2.0",
        &json!({ "images": urls(2), "aspect_ratio": "adaptive" }),
    );
    assert_eq!(pixels(&job("seedance-2.0", &images(2))), "1280x720");
    // A ratio that was asked for stays, and so does every frame of families that do not follow.
    let asked = json!({ "image": URL, "aspect_ratio": "1:1" });
    assert_eq!(pixels(&job("seedance-1.5-pro", &asked)), "960x960");
    for family in FAMILIES
        .iter()
        .filter(|f| f.sizes.follow == FollowFirstFrame::Never)
    {
        assert_eq!(
            pixels(&job(family.models[0], &json!({ "image": URL }))),
            "1280x720"
        );
    }
}

#[test]
fn files_are_checked_against_the_providers_limits() {
    let family = |id: &str| {
        CATALOGUE
            .task_model(id, Endpoint::VideoGenerations)
            .unwrap()
            .family
    };
    let role = InputRole::Reference(0);
    let check = |id: &str, width, height| {
        let found = family(id).check_input_image(role, "image", &metadata(width, height), None);
        found.map_err(|error| error.message)
    };
    assert_eq!(check("seedance-1.0-pro", 300, 750), Ok(()));
    assert!(
        check("seedance-1.0-pro", 299, 400)
            .unwrap_err()
            .contains("300 to 6000 pixels on each side")
    );
    assert!(
        check("seedance-2.0", 300, 751)
            .unwrap_err()
            .contains("a ratio from 1:2.5 to 2.5:1")
    );
    assert_eq!(check("veo-3.1-pro", 10, 1000), Ok(()));
    assert_eq!(
        family("seedance-2.0").input_limits().max_bytes,
        30 * 1_048_576
    );
    assert_eq!(family("sora-2").input_limits().max_bytes, 20 * 1_048_576);
}

#[test]
fn a_stored_job_reads_back() {
    let body = json!({ "image": URL, "metadata": { "seed": 5, "negativePrompt": "x" } });
    let source = vec![ImageSource::Stored("f".to_owned())];
    let job = submit("veo-3.1-pro", &body).into_job(source);
    let text = job.to_text().unwrap();
    assert_eq!(Job::from_text(job.kind(), &text).unwrap(), job);
    let Job::Video(video) = &job else {
        panic!("no video")
    };
    let image = InputImage {
        field: "image".to_owned(),
        source: ImageSource::Stored("f".to_owned()),
    };
    assert_eq!(video.images, [image]);
    assert_eq!(AnyFamily::by_name(job.family()).unwrap().kind(), job.kind());
    assert!(Job::from_text(TaskKind::Speech, &text).is_err());
}
