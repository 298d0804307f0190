//! xAI's pictures, films and speech: what goes over the wire, and what each answer means.

use bytes::Bytes;
use serde_json::{Value, json};
use tollgate_media::image::ImageFormat;
use tollgate_upstream::{Polled, UpstreamErrorKind};

use crate::booth::{
    Booth, Thing, base64, breaks_off, bytes_of, film, json_of, picture, reference, says, speech,
};
use crate::vendor::{KEY, Vendor, answer};

use UpstreamErrorKind::{
    Failed, KeyRejected, ModelNotFound, Moderated, OutcomeUnknown, QuotaExhausted, RateLimited,
    Rejected, Unavailable, UnsupportedByChannel,
};

fn xai(vendor: &Vendor, name: &str) -> Booth {
    Booth::at(vendor, "xai", name)
}

fn link(url: &str, is_own: bool) -> Thing {
    Thing::Link {
        url: url.into(),
        headers: http::HeaderMap::new(),
        is_own,
    }
}

#[tokio::test]
async fn pictures_are_asked_for_by_ratio_and_come_as_links() {
    let vendor = Vendor::answering(|_| {
        let data = json!([{"url": "https://imgen.example/1.jpg", "revised_prompt": "x"}, {"b64_json": base64(b"two")}]);
        says(200, &json!({"data": data, "usage": {"cost_in_usd_ticks": 5}}))
    })
    .await;
    let booth = xai(&vendor, "grok-imagine-1.0-partner");
    let size =
        json!({"size": {"pixels": {"width": 720, "height": 1280}, "ratio": "9:16", "tier": null}});
    assert_eq!(
        booth.draw(&picture("grok-imagine", 2, size)).await.unwrap(),
        []
    );
    let [seen] = <[_; 1]>::try_from(vendor.seen()).unwrap();
    assert_eq!(seen.line, "POST /v1/images/generations");
    assert_eq!(seen.headers["authorization"], format!("Bearer {KEY}"));
    let expected = json!({"model": "grok-imagine-image", "prompt": "a cat, 猫", "aspect_ratio": "9:16", "n": 2});
    assert_eq!(json_of(&seen), expected);
    let mut things = booth.kept.things();
    assert_eq!(
        things.pop(),
        Some(link("https://imgen.example/1.jpg", false))
    );
    assert_eq!(things, [Thing::Bytes("two".into())]);
}

#[tokio::test]
async fn edits_carry_the_picture_as_a_data_uri() {
    let vendor = Vendor::answering(|_| {
        says(
            200,
            &json!({"data": [{"url": "https://imgen.example/1.jpg"}]}),
        )
    })
    .await;
    let mut booth = xai(&vendor, "grok-imagine-1.0-edit-partner");
    let file = reference("xai-edit", ImageFormat::Jpeg, (40, 30));
    booth.references = vec![file.clone()];
    let size =
        json!({"size": {"pixels": {"width": 1152, "height": 864}, "ratio": "4:3", "tier": null}});
    let job = picture("grok-imagine-edit", 1, size);
    booth.draw(&job).await.unwrap();
    booth
        .references
        .push(reference("xai-edit", ImageFormat::Gif, (8, 8)));
    booth.draw(&job).await.unwrap();
    let [one, two] = <[_; 2]>::try_from(vendor.seen()).unwrap();
    assert_eq!(one.line, "POST /v1/images/edits");
    let uri = format!("data:image/jpeg;base64,{}", base64(&bytes_of(&file)));
    let expected = json!({
        "model": "grok-imagine-image", "prompt": "a cat, 猫", "aspect_ratio": "4:3", "n": 1,
        "image": {"url": uri, "type": "image_url"},
    });
    assert_eq!(json_of(&one), expected);
    let sent = json_of(&two);
    assert!(sent.get("image").is_none());
    assert_eq!(sent["images"][0], expected["image"]);
    let second = sent["images"][1]["url"].as_str().unwrap();
    assert!(
        second.starts_with("data:image/png;base64,iVBOR"),
        "{second}"
    );
}

#[tokio::test]
async fn what_it_cannot_do_is_left_to_others() {
    let vendor = Vendor::answering(|_| says(200, &json!({"data": []}))).await;
    let mut booth = xai(&vendor, "m");
    let job = picture("seedream-4.5", 1, json!({}));
    let file = reference("xai-many", ImageFormat::Png, (8, 8));
    booth.references = vec![file.clone(); 4];
    assert_eq!(
        booth.draw(&job).await.unwrap_err().kind,
        UnsupportedByChannel
    );
    booth.references.truncate(1);
    booth.mask = Some(file);
    assert_eq!(
        booth.draw(&job).await.unwrap_err().kind,
        UnsupportedByChannel
    );
    assert!(vendor.seen().is_empty());
}

#[tokio::test]
async fn a_model_that_makes_fewer_at_once_is_asked_in_smaller_calls() {
    let vendor = Vendor::answering(|seen| {
        let n = json_of(seen)["n"].as_u64().unwrap();
        if n > 3 {
            return says(
                400,
                &json!({"code": "invalid_argument", "error": "n must be at most 3"}),
            );
        }
        let one = json!({"url": "https://imgen.example/1.jpg"});
        says(200, &json!({"data": vec![one; n as usize]}))
    })
    .await;
    let booth = xai(&vendor, "grok-imagine-1.0-partner");
    let job = picture("grok-imagine", 10, json!({}));
    assert_eq!(booth.draw(&job).await.unwrap(), []);
    let mut asked: Vec<_> = vendor
        .seen()
        .iter()
        .map(|seen| json_of(seen)["n"].as_u64())
        .collect();
    asked.sort_unstable();
    assert_eq!(asked, [1, 3, 3, 3, 10].map(Some));
    assert_eq!(booth.kept.things().len(), 10);
}

#[tokio::test]
async fn pictures_held_back_are_moderated_although_the_status_is_good() {
    let held = json!({"url": "", "respect_moderation": false});
    let good = json!({"url": "https://imgen.example/1.jpg", "respect_moderation": true});
    for (data, expected) in [
        (json!([good, held]), Ok(vec![Moderated])),
        (json!([held, held]), Err(Moderated)),
    ] {
        let vendor = Vendor::answering(move |_| says(200, &json!({"data": data}))).await;
        let booth = xai(&vendor, "grok-imagine-1.0-partner");
        let drawn = booth.draw(&picture("grok-imagine", 2, json!({}))).await;
        assert_eq!(drawn.map_err(|error| error.kind), expected);
    }
}

#[tokio::test]
async fn every_refusal_has_its_kind() {
    let job = picture("grok-imagine", 2, json!({}));
    for (status, body, expected) in [
        (
            400,
            json!({"error": {"message": "Invalid aspect_ratio"}}),
            Rejected,
        ),
        (
            400,
            json!({"code": "x", "error": "Content violates the content policy"}),
            Moderated,
        ),
        (
            400,
            json!({"error": "Incorrect API key provided"}),
            KeyRejected,
        ),
        (401, json!({"error": "Unauthorized"}), KeyRejected),
        (
            403,
            json!({"error": "Your team has used all available credits"}),
            QuotaExhausted,
        ),
        (
            404,
            json!({"error": "The model x does not exist"}),
            ModelNotFound,
        ),
        (422, json!({"error": "Failed to deserialize"}), Rejected),
        (429, json!({"error": "Too many requests"}), RateLimited),
        (503, Value::Null, Unavailable),
        (200, json!({"data": []}), Unavailable),
        (200, json!({}), Unavailable),
    ] {
        let name = body.to_string();
        let vendor = Vendor::answering(move |_| says(status, &body)).await;
        let booth = xai(&vendor, "grok-imagine-1.0-partner");
        assert_eq!(
            booth.draw(&job).await.unwrap_err().kind,
            expected,
            "{status} {name}"
        );
    }
    let vendor = Vendor::answering(|_| breaks_off("{\"data\":[".into())).await;
    let booth = xai(&vendor, "grok-imagine-1.0-partner");
    assert_eq!(booth.draw(&job).await.unwrap_err().kind, OutcomeUnknown);
}

#[tokio::test]
async fn films_start_from_text_one_picture_or_several() {
    let vendor = Vendor::answering(|_| says(200, &json!({"request_id": "r-1"}))).await;
    let mut booth = xai(&vendor, "grok-imagine-video-1.5");
    let job = film("grok-imagine-video", json!({"seconds": 6}));
    assert_eq!(booth.film(&job).await.unwrap(), "r-1");
    let file = reference("xai-film", ImageFormat::Png, (16, 9));
    booth.references = vec![file.clone()];
    let follows = json!({"seconds": 6, "size": {"pixels": {"width": 1280, "height": 720}, "ratio": null, "resolution": "720p"}});
    booth
        .film(&film("grok-imagine-video", follows))
        .await
        .unwrap();
    booth.references.push(file.clone());
    booth.film(&job).await.unwrap();
    let seen = vendor.seen();
    assert_eq!(seen[0].line, "POST /v1/videos/generations");
    assert_eq!(seen[0].headers["authorization"], format!("Bearer {KEY}"));
    let url = format!("data:image/png;base64,{}", base64(&bytes_of(&file)));
    let image = json!({"url": url});
    let sent: Vec<_> = seen.iter().map(json_of).collect();
    let (model, prompt) = ("grok-imagine-video-1.5", "a cat runs");
    let expected = [
        json!({"model": model, "prompt": prompt, "duration": 6, "aspect_ratio": "16:9", "resolution": "720p"}),
        json!({"model": model, "prompt": prompt, "duration": 6, "resolution": "720p", "image": image}),
        json!({"model": model, "prompt": prompt, "duration": 6, "aspect_ratio": "16:9", "resolution": "720p",
            "reference_images": [image, image]}),
    ];
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn a_film_whose_acceptance_is_lost_is_unknown() {
    let vendor = Vendor::answering(|_| breaks_off("{\"request_id\":".into())).await;
    let booth = xai(&vendor, "grok-imagine-video-1.5");
    let job = film("grok-imagine-video", json!({}));
    assert_eq!(booth.film(&job).await.unwrap_err().kind, OutcomeUnknown);
    for (status, body, expected) in [
        (400, json!({"error": "bad duration"}), Rejected),
        (429, json!({"error": "slow"}), RateLimited),
        (200, json!({}), OutcomeUnknown),
    ] {
        let vendor = Vendor::answering(move |_| says(status, &body)).await;
        let booth = xai(&vendor, "grok-imagine-video-1.5");
        assert_eq!(booth.film(&job).await.unwrap_err().kind, expected);
    }
}

#[tokio::test]
async fn polls_tell_how_far_a_film_is() {
    for (status, text, expected) in [
        (202, "", None),
        (202, "{\"status\":\"pending\",\"progress\":40}", Some(40)),
        (200, "{\"status\":\"pending\"}", None),
    ] {
        let vendor = Vendor::answering(move |_| answer(status, "application/json", text)).await;
        let polled = xai(&vendor, "v").poll("r-1").await.unwrap();
        assert!(
            matches!(polled, Polled::Pending(percent) if percent == expected),
            "{polled:?}"
        );
        assert_eq!(vendor.seen()[0].line, "GET /v1/videos/r-1");
        assert_eq!(
            vendor.seen()[0].headers["authorization"],
            format!("Bearer {KEY}")
        );
    }
    let video =
        json!({"url": "https://vidgen.example/1.mp4", "duration": 6, "respect_moderation": true});
    for done in [
        json!({"status": "done", "video": video}),
        json!({"video": video}),
    ] {
        let vendor = Vendor::answering(move |_| says(200, &done)).await;
        let booth = xai(&vendor, "v");
        assert!(matches!(
            booth.poll("r-1").await.unwrap(),
            Polled::Completed(_)
        ));
        assert_eq!(
            booth.kept.things(),
            [link("https://vidgen.example/1.mp4", false)]
        );
    }
}

#[tokio::test]
async fn a_film_that_failed_says_why() {
    for (status, body, expected) in [
        (
            200,
            json!({"status": "failed", "error": {"code": "internal_error", "message": "sorry"}}),
            Unavailable,
        ),
        (
            200,
            json!({"status": "failed", "error": {"message": "blocked by moderation"}}),
            Moderated,
        ),
        (200, json!({"status": "failed"}), Failed),
        (200, json!({"status": "expired"}), Failed),
        (
            200,
            json!({"status": "done", "video": {"url": "", "respect_moderation": false}}),
            Moderated,
        ),
        (200, json!({"status": "done"}), Failed),
        (404, json!({"error": "no such request"}), Failed),
    ] {
        let name = body.to_string();
        let vendor = Vendor::answering(move |_| says(status, &body)).await;
        let booth = xai(&vendor, "v");
        let polled = booth.poll("r-1").await.unwrap();
        let Polled::Failed(error) = polled else {
            panic!("{name}: {polled:?}");
        };
        assert_eq!(error.kind, expected, "{name}");
        assert!(booth.kept.things().is_empty());
    }
    for (status, body, expected) in [
        (500, Value::Null, Unavailable),
        (401, json!({"error": "no"}), KeyRejected),
        (200, json!({"status": "dreaming"}), Unavailable),
    ] {
        let vendor = Vendor::answering(move |_| says(status, &body)).await;
        assert_eq!(
            xai(&vendor, "v").poll("r-1").await.unwrap_err().kind,
            expected
        );
    }
}

#[tokio::test]
async fn speech_has_voice_language_and_pace() {
    let vendor = Vendor::answering(|_| answer(200, "audio/mpeg", "ID3...")).await;
    let booth = xai(&vendor, "native-v3");
    booth.speak(&speech(json!({}))).await.unwrap();
    booth
        .speak(&speech(
            json!({"voice": "rex", "language": "zh", "speed": 3.0}),
        ))
        .await
        .unwrap();
    assert_eq!(
        booth.kept.files(),
        [Bytes::from("ID3..."), Bytes::from("ID3...")]
    );
    let seen = vendor.seen();
    assert_eq!(seen[0].line, "POST /v1/tts");
    let sent: Vec<_> = seen.iter().map(json_of).collect();
    let expected = [
        json!({"text": "Hello.", "voice_id": "eve", "language": "auto"}),
        json!({"text": "Hello.", "voice_id": "rex", "language": "zh", "speed": 1.5}),
    ];
    assert_eq!(sent, expected);
    for (status, text, expected) in [
        (400, "{\"error\":\"unknown voice_id\"}", Rejected),
        (429, "{\"error\":\"slow down\"}", RateLimited),
        (200, "{\"error\":\"oops\"}", Unavailable),
    ] {
        let vendor = Vendor::answering(move |_| answer(status, "application/json", text)).await;
        let refused = xai(&vendor, "native-v3").speak(&speech(json!({}))).await;
        assert_eq!(refused.unwrap_err().kind, expected);
    }
}
