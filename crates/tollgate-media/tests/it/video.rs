//! The video families, SPEC.md's table and the providers' rules row by row.

use serde_json::{Value, json};
use tollgate_core::ErrorKind;
use tollgate_media::video::VideoJob;
use tollgate_media::{Endpoint, Job, RequestShape, Submission};

use crate::CATALOGUE;

fn read(id: &str, body: &Value) -> Result<Submission, tollgate_core::ApiError> {
    let mut body = body.as_object().unwrap().clone();
    body.entry("prompt").or_insert_with(|| "a fox".into());
    let model = CATALOGUE.task(id, Endpoint::VideoGenerations).unwrap();
    tollgate_media::read(model, RequestShape::Usual, &body, false)
}

fn submit(id: &str, body: &Value) -> Submission {
    read(id, body).unwrap_or_else(|error| panic!("{id} {body}: {error}"))
}

fn job(submission: &Submission) -> &VideoJob {
    match submission.job() {
        Job::Video(job) => job,
        other => panic!("no film: {other:?}"),
    }
}

#[test]
fn defaults() {
    for (id, seconds, size) in [
        ("sora-2", 8, "1280x720"),
        ("veo-3.1-flash", 8, "1280x720"),
        ("veo-3.1-pro", 8, "1280x720"),
        ("grok-imagine-video-1.5", 6, "854x480"),
        ("seedance-1.0-fast", 5, "1248x704"),
        ("seedance-1.0-mini", 5, "1248x704"),
        ("seedance-1.0-pro", 5, "1248x704"),
        ("seedance-1.5-pro", 5, "1280x720"),
        ("seedance-2.0", 5, "1280x720"),
        ("seedance-2.0-fast", 5, "1280x720"),
    ] {
        let submission = submit(id, &json!({}));
        let job = job(&submission);
        assert_eq!(job.model, id);
        assert_eq!(job.seconds, seconds, "{id}");
        assert_eq!(job.size.pixels.unwrap().to_string(), size, "{id}");
        assert_eq!(submission.adjustments, []);
    }
}

#[test]
fn refused() {
    let error = read("sora-2", &json!({ "seconds": "10" })).unwrap_err();
    assert_eq!(error.kind, ErrorKind::InvalidRequest);
    assert_eq!(
        error.message,
        "`seconds` must be 8 or 12 seconds in whole, got \"10\""
    );
}
