//! Fuzz targets for input of clients (JSON bodies, forms, ranges, media requests) and of operators (the configuration).

use std::convert::Infallible;

use axum::body::Body;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, HeaderValue, header};
use serde_json::Value;
use tokio::runtime::Runtime;
use tollgate_config::{Config, Overrides};
use tollgate_core::ApiError;
use tollgate_media::{Catalogue, Job, parse_request};
use tollgate_server::http::body::{MAX_SMALL_BODY, read_json};
use tollgate_server::http::body_memory::BodyBudget;
use tollgate_server::http::form_json::read_json_or_form;
use tollgate_server::http::range::{FilePart, parse_range};

use crate::target::Target;
use crate::{chat, corpus};

pub(crate) fn targets() -> Vec<Target> {
    let runtime = || {
        let built = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build();
        built.unwrap_or_else(|e| unreachable!("a runtime: {e}"))
    };
    let (json_runtime, form_runtime) = (runtime(), runtime());
    vec![
        Target {
            name: "json-body".to_owned(),
            corpus: Box::new(corpus::media_requests),
            run: Box::new(move |input, cuts| json_body(&json_runtime, input, cuts)),
        },
        Target {
            name: "form".to_owned(),
            corpus: Box::new(|| Ok(forms())),
            run: Box::new(move |input, cuts| form(&form_runtime, input, cuts)),
        },
        Target {
            name: "media-request".to_owned(),
            corpus: Box::new(corpus::media_requests),
            run: Box::new(|input, _| media_request(input)),
        },
        Target {
            name: "range".to_owned(),
            corpus: Box::new(|| Ok(RANGES.map(Vec::from).into())),
            run: Box::new(range),
        },
        Target {
            name: "configuration".to_owned(),
            corpus: Box::new(corpus::configurations),
            run: Box::new(|input, _| configuration(input)),
        },
    ]
}

/// A request body that arrives in pieces.
fn body(input: &[u8], cuts: u64) -> Body {
    let pieces: Vec<_> = chat::pieces(input, cuts)
        .into_iter()
        .map(|piece| Ok::<_, Infallible>(Bytes::copy_from_slice(piece)))
        .collect();
    Body::from_stream(stream::iter(pieces))
}

fn budget() -> BodyBudget {
    BodyBudget::new(256)
}

/// Asserts that every body which the bounded reader accepts has the value that the JSON parser reads.
fn json_body(runtime: &Runtime, input: &[u8], cuts: u64) {
    let budget = budget();
    let headers = HeaderMap::new();
    let read = read_json(
        &headers,
        body(input, cuts),
        MAX_SMALL_BODY,
        budget.of_user("user"),
    );
    if let Ok(read) = runtime.block_on(read) {
        let parsed: Value = serde_json::from_slice(input).unwrap_or_default();
        assert_eq!(
            read.value, parsed,
            "the bounded reader reads something else"
        );
    }
}

/// Asserts that a form is read the same however it is split.
fn form(runtime: &Runtime, input: &[u8], cuts: u64) {
    let content_type = HeaderValue::from_static("multipart/form-data; boundary=B");
    let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, content_type)]);
    let budget = budget();
    let read = |body: Body| -> Result<Value, ApiError> {
        let read = read_json_or_form(&headers, body, budget.of_user("user"));
        runtime.block_on(read).map(|read| read.value)
    };
    let in_one_piece = read(Body::from(Bytes::copy_from_slice(input)));
    let in_pieces = read(body(input, cuts));
    assert_eq!(
        in_one_piece.is_ok(),
        in_pieces.is_ok(),
        "the cut decides about the form"
    );
    if let (Ok(in_one_piece), Ok(in_pieces)) = (in_one_piece, in_pieces) {
        assert_eq!(in_one_piece, in_pieces, "the cut changes the fields");
    }
}

/// Asserts that an accepted request becomes a job that is unchanged after storing and loading it.
fn media_request(input: &[u8]) {
    let Ok(Value::Object(request)) = serde_json::from_slice(input) else {
        return;
    };
    let Ok(catalogue) = Catalogue::new(&[]) else {
        return;
    };
    let name = request
        .get("model")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let Some(endpoint) = catalogue.endpoint(name) else {
        return;
    };
    let Ok(model) = catalogue.task_model(name, endpoint) else {
        return;
    };
    for endpoint in [&[endpoint], endpoint.aliases()].concat() {
        for strict in [false, true] {
            let parsed = parse_request(model, endpoint.request_layout(), &request, strict);
            let Ok(submission) = parsed else { continue };
            let job = submission.job();
            let text = job.to_text().unwrap_or_default();
            let again = Job::from_text(job.kind(), &text).and_then(|job| job.to_text());
            assert_eq!(again.ok(), Some(text), "a job changes while it is stored");
        }
    }
}

/// Asserts that a requested range lies within the file.
fn range(input: &[u8], length: u64) {
    // Derives lengths of all orders of magnitude.
    let length = length >> (length % 64);
    let text = String::from_utf8_lossy(input);
    if let FilePart::Bytes { first, last } = parse_range(&text, length) {
        assert!(
            first <= last && last < length,
            "{first} to {last} of {length}"
        );
    }
}

/// Asserts that a rejected configuration has an error message.
fn configuration(input: &[u8]) {
    let path = std::env::temp_dir().join(format!("tollgate-fuzz-{}.toml", std::process::id()));
    if std::fs::write(&path, input).is_err() {
        return;
    }
    let loaded = Config::load(Some(&path), &Overrides::default());
    let _ = std::fs::remove_file(&path);
    if let Err(error) = loaded {
        assert!(!error.to_string().is_empty(), "an error without words");
    }
}

fn forms() -> Vec<Vec<u8>> {
    let png = crate::files::images().swap_remove(0);
    let field = |name: &str, more: &str, value: &[u8]| {
        let head = format!("--B\r\ncontent-disposition: form-data; name=\"{name}\"{more}\r\n\r\n");
        [head.as_bytes(), value, b"\r\n"].concat()
    };
    let file = "; filename=\"a.png\"\r\ncontent-type: image/png";
    let fields = [
        field("model", "", b"gpt-image-1-official"),
        field("prompt", "", "a lighthouse, 灯塔".as_bytes()),
        field("n", "", b"2"),
        field("metadata", "", b"{\"a\":[1,2]}"),
        field("image[]", file, &png),
        field("image[]", file, &png),
        b"--B--\r\n".to_vec(),
    ];
    vec![fields.concat(), b"--B--\r\n".to_vec()]
}

const RANGES: [&[u8]; 8] = [
    b"bytes=0-0",
    b"bytes=2-5",
    b"Bytes = 2-",
    b"bytes=-3",
    b"bytes=5-2",
    b"bytes=0-1,3-4",
    b"bytes=99999999999999999999999-",
    b"bytes=-0",
];
