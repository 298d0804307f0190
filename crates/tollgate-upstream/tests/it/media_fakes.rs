//! The adapters of OpenAI's and xAI's images, videos and speech against their fakes: sizes, references, masks, voices.

use tollgate_fakes::{Fake, Options, Provider};
use tollgate_media::image::size::Sizes;
use tollgate_media::image::{ImageFormat, families};
use tollgate_upstream::channel::ChannelModel;
use tollgate_upstream::egress::{Client, ClientOptions, FetchLimits};
use tollgate_upstream::{Polled, UpstreamErrorKind};

use serde_json::{Value, json};

use crate::booth::{Booth, Thing, film, picture, reference, speech};
use crate::vendor::{KEY, channel};

use UpstreamErrorKind::{Moderated, QuotaExhausted, Unavailable};

/// A fake, and a channel to it whose entry for `model` gives no id of the provider's.
pub(crate) async fn booth(provider: Provider, model: &str, options: Options) -> (Fake, Booth) {
    let keys = vec![KEY.to_owned()];
    let fake = tollgate_fakes::start(provider, Options { keys, ..options }).await;
    let fake = fake.unwrap();
    let channel = channel(provider.name(), fake.base_url());
    let booth = Booth::of(channel, ChannelModel::new(model, model));
    (fake, booth)
}

async fn openai(model: &str) -> (Fake, Booth) {
    booth(Provider::OpenAi, model, Options::default()).await
}

async fn xai(model: &str) -> (Fake, Booth) {
    booth(Provider::Xai, model, Options::default()).await
}

/// The rules by which the fake has refused what it was asked.
pub(crate) fn broken_rules(fake: &Fake) -> Vec<&'static str> {
    let requests = fake.requests().into_iter();
    requests.filter_map(|seen| seen.rejected_by).collect()
}

/// What lies behind a link, fetched as the server does it.
pub(crate) async fn fetched(thing: &Thing) -> Vec<u8> {
    let Thing::Link {
        url,
        headers,
        is_own: true,
    } = thing
    else {
        panic!("no link of the channel's own: {thing:?}");
    };
    let client = Client::new(ClientOptions::default());
    let mut file = Vec::new();
    let limits = FetchLimits::of_bytes(1 << 20);
    let fetched = client.fetch_own(url, headers, &limits, &mut file).await;
    fetched.unwrap();
    file
}

/// Polls until it is no longer waiting.
pub(crate) async fn end(booth: &Booth, provider_job_id: &str) -> Polled {
    loop {
        match booth.poll(provider_job_id).await.unwrap() {
            Polled::Pending(_) => {}
            ended => return ended,
        }
    }
}

pub(crate) fn sized(size: impl std::fmt::Display) -> Value {
    let text = size.to_string();
    let (width, height) = text.split_once('x').unwrap();
    let side = |text: &str| text.parse::<u32>().unwrap();
    json!({"pixels": {"width": side(width), "height": side(height)}, "ratio": null, "tier": null})
}

/// Every size of a family.
pub(crate) fn sizes(family: &str) -> Vec<String> {
    let name = |(width, height): &(u32, u32)| format!("{width}x{height}");
    match &families::by_name(family).unwrap().sizes {
        Sizes::Ratios(sizes) => {
            let rows = sizes.rows.iter().flat_map(|row| row.pixels).map(name);
            rows.chain(sizes.extra_sizes.iter().map(|(size, _)| size.to_string()))
                .collect()
        }
        Sizes::Listed(sizes) => {
            let cells = sizes.groups.iter().flat_map(|(_, cells)| cells.iter());
            cells.map(name).collect()
        }
        Sizes::PixelRange(_) => panic!("{family} has a table"),
    }
}

#[tokio::test]
async fn every_size_of_openais_families_is_taken() {
    for (family, model) in [
        ("gpt-image-1", "gpt-image-1-official"),
        ("gpt-image-1", "gpt-image-1.5-official"),
        ("gpt-image-2", "gpt-image-2-official"),
        ("gpt-image-2.5-async", "gpt-image-2.5-async"),
    ] {
        let (fake, booth) = openai(model).await;
        for size in sizes(family) {
            let job = picture(family, 1, json!({"size": sized(&size), "quality": "max"}));
            let drawn = booth.draw(&job).await;
            assert!(drawn.is_ok(), "{model} {size}: {drawn:?}");
        }
        assert_eq!(broken_rules(&fake), [] as [&str; 0], "{model}");
        assert_eq!(booth.kept.files().len(), sizes(family).len());
    }
}

#[tokio::test]
async fn openai_makes_pictures_from_text_references_and_masks() {
    let (fake, mut booth) = openai("gpt-image-2-official").await;
    let more = json!({"quality": "high", "background": "opaque", "moderation": "low", "output_format": "jpeg",
        "output_compression": 50, "size": sized("1536x864")});
    booth.draw(&picture("gpt-image-2", 4, more)).await.unwrap();
    for file in booth.kept.files() {
        assert_eq!(
            image::guess_format(&file).unwrap(),
            image::ImageFormat::Jpeg
        );
        let there = image::load_from_memory(&file).unwrap();
        assert_eq!((there.width(), there.height()), (1536, 864));
    }
    assert_eq!(booth.kept.files().len(), 4);
    let job = picture("gpt-image-2", 1, json!({"background": "auto"}));
    let formats = [
        ImageFormat::Png,
        ImageFormat::Jpeg,
        ImageFormat::Webp,
        ImageFormat::Gif,
    ];
    booth.references = formats
        .map(|format| reference("fake-edit", format, (48, 48)))
        .into();
    booth.draw(&job).await.unwrap();
    booth.references.truncate(1);
    booth.mask = Some(reference("fake-mask", ImageFormat::Webp, (48, 48)));
    let refused = booth.draw(&job).await.unwrap_err();
    // Nothing in that mask is transparent.
    assert!(refused.message.contains("alpha"), "{refused}");
    let mut mask = reference("fake-clear-mask", ImageFormat::Png, (48, 48));
    let clear = image::RgbaImage::new(48, 48);
    clear.save(&mask.path).unwrap();
    mask.bytes = std::fs::metadata(&mask.path).unwrap().len();
    booth.mask = Some(mask);
    booth.draw(&job).await.unwrap();
    assert_eq!(broken_rules(&fake), ["mask"]);
}

#[tokio::test]
async fn openai_may_deliver_fewer_images_than_requested() {
    let (_fake, booth) = openai("gpt-image-2-official").await;
    let job = picture("gpt-image-2", 4, json!({"prompt": "[[fake:partial=3]]"}));
    assert_eq!(booth.draw(&job).await.unwrap(), []);
    assert_eq!(booth.kept.files().len(), 3);
}

#[tokio::test]
async fn openais_fake_makes_films() {
    let options = Options {
        polls: 3,
        ..Options::default()
    };
    let (fake, mut booth) = booth(Provider::OpenAi, "sora-2", options).await;
    booth.references = vec![reference("fake-film", ImageFormat::Gif, (64, 64))];
    let provider_job_id = booth
        .film(&film("sora-2", json!({"seconds": 12})))
        .await
        .unwrap();
    assert!(matches!(
        booth.poll(&provider_job_id).await.unwrap(),
        Polled::Pending(Some(_))
    ));
    assert!(matches!(
        end(&booth, &provider_job_id).await,
        Polled::Completed(_)
    ));
    let things = booth.kept.things();
    let file = fetched(&things[0]).await;
    assert_eq!(&file[4..8], b"ftyp");
    assert_eq!(broken_rules(&fake), [] as [&str; 0]);
}

#[tokio::test]
async fn openais_fake_speaks() {
    let (fake, booth) = openai("native-v3").await;
    let job =
        speech(json!({"voice": "marin", "speed": 4.0, "language": "en", "instructions": "softly"}));
    booth.speak(&job).await.unwrap();
    booth.speak(&speech(json!({}))).await.unwrap();
    assert_eq!(broken_rules(&fake), [] as [&str; 0]);
    assert!(booth.kept.files().iter().all(|file| file.len() > 100));
    let unknown = booth
        .speak(&speech(json!({"voice": "nobody"})))
        .await
        .unwrap_err();
    assert_eq!(unknown.kind, UpstreamErrorKind::Rejected);
    for (directive, expected) in [
        ("quota-exhausted", QuotaExhausted),
        ("html-200", Unavailable),
        ("reset-mid-body", Unavailable),
        ("status=500", Unavailable),
    ] {
        let job = speech(json!({"text": format!("Hello [[fake:{directive}]]")}));
        let error = booth.speak(&job).await.unwrap_err();
        assert_eq!(error.kind, expected, "{directive}");
    }
}

#[tokio::test]
async fn xais_fake_makes_pictures() {
    let (fake, mut booth) = xai("grok-imagine-1.0-partner").await;
    for size in sizes("grok-imagine")
        .into_iter()
        .chain(sizes("gpt-image-2"))
    {
        let job = picture("grok-imagine", 1, json!({"size": sized(&size)}));
        booth.draw(&job).await.unwrap();
    }
    let before = booth.kept.things().len();
    booth
        .draw(&picture("grok-imagine", 10, json!({})))
        .await
        .unwrap();
    let things = booth.kept.things();
    assert_eq!(things.len() - before, 10);
    let file = fetched(&things[0]).await;
    assert_eq!(
        image::guess_format(&file).unwrap(),
        image::ImageFormat::Jpeg
    );
    booth.references = vec![reference("fake-xai", ImageFormat::Gif, (32, 32))];
    booth
        .draw(&picture("grok-imagine-edit", 2, json!({})))
        .await
        .unwrap();
    booth
        .references
        .push(reference("fake-xai", ImageFormat::Webp, (32, 32)));
    booth
        .draw(&picture("seedream-4.5", 1, json!({})))
        .await
        .unwrap();
    assert_eq!(broken_rules(&fake), [] as [&str; 0]);
}

#[tokio::test]
async fn xai_may_hold_an_image_back() {
    let (_fake, booth) = xai("grok-imagine-1.0-partner").await;
    let job = picture("grok-imagine", 4, json!({"prompt": "[[fake:partial=3]]"}));
    assert_eq!(booth.draw(&job).await.unwrap(), [Moderated]);
    assert_eq!(booth.kept.things().len(), 3);
}

#[tokio::test]
async fn xais_fake_makes_films() {
    let options = Options {
        polls: 3,
        ..Options::default()
    };
    let (fake, mut booth) = booth(Provider::Xai, "grok-imagine-video-1.5", options).await;
    let family = "grok-imagine-video";
    let provider_job_id = booth
        .film(&film(family, json!({"seconds": 15})))
        .await
        .unwrap();
    assert!(matches!(
        booth.poll(&provider_job_id).await.unwrap(),
        Polled::Pending(_)
    ));
    assert!(matches!(
        end(&booth, &provider_job_id).await,
        Polled::Completed(_)
    ));
    let things = booth.kept.things();
    assert_eq!(&fetched(&things[0]).await[4..8], b"ftyp");
    let file = reference("fake-xai-film", ImageFormat::Png, (32, 32));
    booth.references = vec![file.clone()];
    booth
        .film(&film(family, json!({"image_use": "first_frame"})))
        .await
        .unwrap();
    booth.references = vec![file; 7];
    let many = json!({"image_use": "references", "seconds": 10});
    booth.film(&film(family, many)).await.unwrap();
    assert_eq!(broken_rules(&fake), [] as [&str; 0]);
}

#[tokio::test]
async fn xais_fake_speaks() {
    let (fake, booth) = xai("native-v3").await;
    let job =
        speech(json!({"voice": "ara", "speed": 4.0, "language": "zh", "instructions": "softly"}));
    booth.speak(&job).await.unwrap();
    booth.speak(&speech(json!({}))).await.unwrap();
    assert_eq!(broken_rules(&fake), [] as [&str; 0]);
    assert!(booth.kept.files().iter().all(|file| file.len() > 100));
    let unknown = booth
        .speak(&speech(json!({"voice": "no body"})))
        .await
        .unwrap_err();
    assert_eq!(unknown.kind, UpstreamErrorKind::Rejected);
    for (directive, expected) in [
        ("quota-exhausted", QuotaExhausted),
        ("html-200", Unavailable),
        ("reset-mid-body", Unavailable),
    ] {
        let job = speech(json!({"text": format!("Hello [[fake:{directive}]]")}));
        let error = booth.speak(&job).await.unwrap_err();
        assert_eq!(error.kind, expected, "{directive}");
    }
}
