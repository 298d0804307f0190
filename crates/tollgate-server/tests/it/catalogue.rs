//! Every model of the specification that makes media, through the adapter of a provider that has it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde_json::{Value, json};
use tollgate_core::TaskKind;
use tollgate_fakes::{Fake, Options, Provider, start};
use tollgate_media::AnyFamily;

use crate::films::mp4_ms;
use crate::gate::{Backend, Client, Setup, links, on_one, status};
use crate::pictures::{data_uri, decoded, png};

on_one!(every_model_is_made_by_a_provider);

/// Who makes which models. With `refers` each is given a picture too.
struct Row {
    provider: Provider,
    models: &'static [&'static str],
    refers: bool,
}

const fn row(provider: Provider, models: &'static [&'static str]) -> Row {
    Row {
        provider,
        models,
        refers: false,
    }
}

const TABLE: &[Row] = &[
    row(
        Provider::OpenAi,
        &[
            "gpt-image-2-official",
            "gpt-image-1-official",
            "gpt-image-1.5-official",
            "gpt-image-2.5-async",
            "sora-2",
            "kling-v3",
        ],
    ),
    row(
        Provider::Ark,
        &[
            "doubao-seedance-4-5",
            "Doubao-Seedream-4.5",
            "doubao-seedream-4.5",
            "doubao-seedream-4-5",
            "doubao-seedream-5-0-lite",
            "doubao-seedream-5.0-lite",
            "Doubao-Seedream-5.0-lite",
            "seedance-1.0-fast",
            "seedance-1.0-mini",
            "seedance-1.0-pro",
            "seedance-1.5-pro",
            "seedance-2.0",
            "seedance-2.0-fast",
        ],
    ),
    row(
        Provider::Gemini,
        &[
            "imagen-4.0-partner",
            "gemini-2.5-flash-image-preview",
            "gemini-2.5-flash-image-preview-official",
            "gemini-3.1-flash-image-preview",
            "gemini-3.1-flash-image-preview-official",
            "gemini-3-pro-image-preview",
            "gemini-3-pro-image-preview-official",
            "veo-3.1-flash",
            "veo-3.1-pro",
        ],
    ),
    row(Provider::DashScope, &["wan2.7-image", "wan2.7-image-pro"]),
    row(
        Provider::Xai,
        &["grok-imagine-1.0-partner", "grok-imagine-video-1.5"],
    ),
    Row {
        refers: true,
        ..row(Provider::Xai, &["grok-imagine-1.0-edit-partner"])
    },
    row(Provider::Kling, &["native-v3"]),
];

/// The family of a model that has it in its own list.
fn family(model: &str) -> AnyFamily {
    let mut all = AnyFamily::all();
    let found = all.find(|family| family.models().contains(&model));
    found.unwrap_or_else(|| panic!("nobody has {model}"))
}

impl Row {
    fn body(&self, model: &str) -> Value {
        let mut body = match family(model).kind() {
            TaskKind::Speech => json!({ "input": "The tide is coming in." }),
            TaskKind::Image | TaskKind::Video => json!({ "prompt": "a harbour at dawn" }),
        };
        body["model"] = model.into();
        if self.refers {
            body["image_urls"] = json!([data_uri("image/png", &png(640, 480))]);
        }
        body
    }
}

async fn every_model_is_made_by_a_provider(backend: Backend) {
    let named: Vec<&str> = TABLE.iter().flat_map(|row| row.models).copied().collect();
    let there: BTreeSet<&str> = AnyFamily::all()
        .flat_map(|family| family.models())
        .copied()
        .collect();
    assert_eq!(BTreeSet::from_iter(named.iter().copied()), there);
    assert_eq!(named.len(), there.len(), "a model stands there once");

    let (mut config, mut fakes) = (String::new(), Vec::new());
    for (at, row) in TABLE.iter().enumerate() {
        let fake = start(row.provider, Options::default()).await.unwrap();
        let (kind, url, models) = (row.provider.name(), fake.base_url(), row.models);
        write!(
            config,
            "[[channel]]\nname = \"{kind}-{at}\"\nkind = \"{kind}\"\nbase_url = \"{url}\"\n\
             api_keys = [\"up-key-{at}\"]\nmodels = {models:?}\npoll_ms = 100\n"
        )
        .unwrap();
        fakes.push(fake);
    }
    let gate = Setup::new(backend).config(&config).start().await;
    let client = gate.somebody().await;
    let mut orders = Vec::new();
    for row in TABLE {
        for model in row.models {
            let path = family(model).endpoint().path();
            let receipt = client.post(path, &row.body(model)).await.expect(200);
            orders.push((*model, crate::gate::task_id(&receipt.json())));
        }
    }
    for (model, id) in orders {
        let record = client.ended(&id).await;
        assert_eq!(status(&record), "completed", "{model}: {record}");
        made(&client, model, &record).await;
    }
    for (row, fake) in TABLE.iter().zip(&fakes) {
        nothing_refused(row, fake);
    }
    gate.close().await;
}

/// Looks at the file that a record leads to.
async fn made(client: &Client, model: &str, record: &Value) {
    let kind = family(model).kind();
    let url = match kind {
        TaskKind::Image => links(record).remove(0),
        TaskKind::Video => record["url"].as_str().expect("a link").to_owned(),
        TaskKind::Speech => record["metadata"]["url"].as_str().unwrap().to_owned(),
    };
    assert!(url.starts_with(&client.url("/files/")), "{model}: {url}");
    let file = client.fetch(&url).await.expect(200);
    let media_type = file.header("content-type");
    match kind {
        TaskKind::Image => {
            let (_, width, height) = decoded(&file.body);
            assert!(width >= 512 && height >= 512, "{model}: {width}x{height}");
        }
        TaskKind::Video => {
            let seconds: u64 = record["seconds"].as_str().unwrap().parse().unwrap();
            assert_eq!(media_type, "video/mp4");
            assert_eq!(mp4_ms(&file.body), 1000 * seconds, "{model}");
        }
        TaskKind::Speech => assert!(media_type.starts_with("audio/"), "{model}: {media_type}"),
    }
}

/// No request broke a rule of its provider's.
fn nothing_refused(row: &Row, fake: &Fake) {
    let seen = fake.requests();
    assert!(
        !seen.is_empty(),
        "{} was asked for nothing",
        row.provider.name()
    );
    for one in seen {
        let what = format!("{} {} {}", one.method, one.path, one.body);
        assert_eq!(one.rejected_by, None, "{what}");
        assert!(!what.contains("up-key"), "{what}");
    }
}
