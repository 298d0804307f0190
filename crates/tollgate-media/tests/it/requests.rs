//! Tests the outcome of requests, a job or an error, from tables of cases.
//!
//! A line of `tests/cases/requests/FAMILY.jsonl` is a heading, `{"behaviour": …}`, or a case:
//!
//! - `models` are the ids that the request is sent to, with the same outcome. `body` gets a prompt if it has none. Without `models`, the body is
//!   complete and names its model.
//! - `path` is given if it differs from the family's own, `strict` if the request is strict; `references` are the sizes of the reference images that
//!   are known.
//! - In `body`, `{"repeat": ["x", 5]}` is replaced by `"xxxxx"` and `{"copies": ["x", 5]}` by an array.
//! - The outcome is `error`, the complete message; `job`, complete; or `changes`, the differences from the last `job` of that model (`null` for an
//!   absent member).

use std::collections::HashMap;

use serde_json::{Map, Value, json};
use tollgate_core::{ErrorKind, TaskKind};
use tollgate_media::image::ImageSource;
use tollgate_media::{AnyFamily, Endpoint, Job, MediaJob as _, Submission, TaskModel, Units};

use crate::cases::check_cases;
use crate::{CATALOGUE, metadata};

#[test]
fn every_request_case_gives_its_job_or_error() {
    for family in AnyFamily::all() {
        let mut bases = HashMap::new();
        check_cases(&format!("requests/{}.jsonl", family.name()), |row| {
            run(row, family, &mut bases)
        });
    }
}

#[test]
fn a_stored_job_reads_back_only_as_its_kind() {
    let submission = crate::submit("veo-3.1-pro", &json!({ "image": "https://a/1" }));
    let job = submission.into_job(vec![ImageSource::Stored("f".to_owned())]);
    let text = job.to_text().unwrap();
    assert_eq!(Job::from_text(TaskKind::Video, &text).unwrap(), job);
    assert!(Job::from_text(TaskKind::Speech, &text).is_err());
}

/// The case with the actual outcome of its request.
fn run(row: &Value, family: AnyFamily, bases: &mut HashMap<String, Value>) -> Value {
    let models = row["models"].as_array().map_or(vec![None], |models| {
        models.iter().map(|id| id.as_str()).collect()
    });
    let mut real: Option<(String, Value)> = None;
    for id in models {
        let (mut name, mut value) = outcome(row, family, id);
        if name == "job" {
            let key = id
                .or(row["body"]["model"].as_str())
                .unwrap_or("")
                .to_owned();
            if row.get("job").is_some() || !bases.contains_key(&key) {
                bases.insert(key, value.clone());
            } else {
                name = "changes";
                value = difference(&bases[&key], &value);
            }
        }
        let found = (name.to_owned(), value);
        let first = real.get_or_insert_with(|| found.clone());
        assert_eq!(*first, found, "{row}: {id:?} differs from the first model");
    }
    let mut case = row.as_object().unwrap().clone();
    case.retain(|name, _| !["error", "job", "changes"].contains(&name.as_str()));
    case.extend(real);
    case.into()
}

/// `error` and its message, or `job` and the job with the values that accompany it.
fn outcome(row: &Value, family: AnyFamily, id: Option<&str>) -> (&'static str, Value) {
    let endpoint = row["path"].as_str().map_or(family.endpoint(), |path| {
        let aliases = family.endpoint().aliases().iter();
        *aliases
            .clone()
            .find(|alias| alias.path() == path)
            .expect(path)
    });
    let mut body = expand(&row["body"]).as_object().unwrap().clone();
    if id.is_some() {
        body.entry("prompt").or_insert_with(|| "a fox".into());
    }
    let strict = row["strict"] == true;
    match parse(&body, endpoint, id, strict).and_then(|(model, submission)| {
        assert_eq!(model.family, family, "{row}");
        render(row, model, submission)
    }) {
        Ok(job) => ("job", job),
        Err(error) => {
            assert_eq!(error.kind, ErrorKind::InvalidRequest, "{row}: {error}");
            assert!(error.message.chars().count() <= 330, "too long: {error}");
            assert!(!error.message.chars().any(char::is_control), "{error:?}");
            ("error", error.message.into())
        }
    }
}

type Rejected = tollgate_core::ApiError;

fn parse(
    body: &Map<String, Value>,
    endpoint: Endpoint,
    id: Option<&str>,
    strict: bool,
) -> Result<(&'static TaskModel, Submission), Rejected> {
    let model = match id {
        Some(id) => CATALOGUE.task_model(id, endpoint)?,
        None => CATALOGUE.requested_model(body, endpoint)?,
    };
    let layout = endpoint.request_layout();
    let submission = tollgate_media::parse_request(model, layout, body, strict)?;
    Ok((model, submission))
}

/// The job after the known references were applied, as JSON: pixels as text, input images as their fields. Values that are not sent to the provider
/// are added.
fn render(row: &Value, model: &TaskModel, submission: Submission) -> Result<Value, Rejected> {
    let (adjustments, callback) = (
        submission.adjustments.clone(),
        submission.callback_url.clone(),
    );
    let mut price = submission.price.clone();
    let inputs: Vec<_> = submission
        .inputs
        .iter()
        .map(|input| input.field.clone())
        .collect();
    let job = submission.job();
    assert_eq!(
        price.pixels,
        job.pixels().map(|size| size.to_string()),
        "{row}"
    );
    assert_eq!(price.resolution.as_deref(), job.tier(), "{row}");
    let mut job = submission.into_job(inputs.into_iter().map(ImageSource::Stored).collect());
    if let Some(references) = row["references"].as_array() {
        let side = |side: &Value| u32::try_from(side.as_u64().unwrap()).unwrap();
        let known = references.iter().map(|size| {
            let size = size.as_array();
            size.map(|size| metadata(side(&size[0]), side(&size[1])))
        });
        model
            .family
            .apply_reference_metadata(&mut job, &known.collect::<Vec<_>>())?;
        price.update_from(&job);
        // A known size stays unchanged when more metadata becomes known.
        let mut later = job.clone();
        let again = model
            .family
            .apply_reference_metadata(&mut later, &[Some(metadata(9000, 9000))]);
        assert!(
            job.pixels().is_none() || again.is_err() || later == job,
            "{row}"
        );
    }
    let text = job.to_text().unwrap();
    assert_eq!(
        Job::from_text(job.kind(), &text).unwrap(),
        job,
        "reads back"
    );
    let mut shown: Value = serde_json::from_str(&text).unwrap();
    let fields = shown.as_object_mut().unwrap();
    assert_eq!(fields.shift_remove("model").unwrap(), model.name.as_str());
    assert_eq!(fields.shift_remove("family").unwrap(), model.family.name());
    let units = match &job {
        Job::Image(image) => {
            assert_eq!(price.quality, image.quality, "{row}");
            Units::Images(image.n)
        }
        Job::Video(video) => Units::Seconds(video.seconds),
        Job::Speech(speech) => Units::Characters(speech.text.chars().count().try_into().unwrap()),
    };
    assert_eq!(job.units(), units, "{row}");
    if let Some(size) = fields.get_mut("size").and_then(Value::as_object_mut) {
        size["pixels"] = json!(price.pixels);
        size.retain(|_, value| !value.is_null());
    }
    for (_, image) in job.input_images() {
        assert_eq!(
            image.source,
            ImageSource::Stored(image.field.clone()),
            "{row}"
        );
    }
    for name in ["references", "images", "mask"] {
        match fields.get_mut(name) {
            Some(Value::Array(images)) => images.iter_mut().for_each(|i| *i = i["field"].take()),
            Some(image) => *image = image["field"].take(),
            None => {}
        }
    }
    for (name, beside) in [
        ("price_size", json!(price.size)),
        ("echoed_fields", job.echoed_fields().into()),
        ("callback_url", json!(callback)),
        ("adjustments", json!(adjustments)),
    ] {
        if ![json!(""), json!({}), json!(null), json!([])].contains(&beside) {
            fields.insert(name.to_owned(), beside);
        }
    }
    shorten(&mut shown);
    Ok(shown)
}

/// Writes long strings of one character as `{"repeat": …}`.
fn shorten(value: &mut Value) {
    match value {
        Value::String(text) => {
            let (count, first) = (text.chars().count(), text.chars().next());
            if count > 200 && text.chars().all(|c| Some(c) == first) {
                *value = json!({ "repeat": [first, count] });
            }
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        Value::Object(fields) => fields.values_mut().for_each(shorten),
        _ => {}
    }
}

/// The value with `repeat` and `copies` expanded.
fn expand(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(expand).collect(),
        Value::Object(fields) => {
            let count = |args: &Value| usize::try_from(args[1].as_u64().unwrap()).unwrap();
            match fields
                .iter()
                .next()
                .map(|(name, args)| (name.as_str(), args))
            {
                Some(("repeat", args)) => args[0].as_str().unwrap().repeat(count(args)).into(),
                Some(("copies", args)) => vec![args[0].clone(); count(args)].into(),
                _ => fields
                    .iter()
                    .map(|(name, value)| (name.clone(), expand(value)))
                    .collect(),
            }
        }
        other => other.clone(),
    }
}

/// The members that differ in `new`; `null` for an absent one.
fn difference(base: &Value, new: &Value) -> Value {
    let (Value::Object(old), Value::Object(fields)) = (base, new) else {
        return new.clone();
    };
    let changed = fields
        .iter()
        .filter(|(name, value)| old.get(*name) != Some(*value));
    let changed = changed.map(|(name, value)| {
        let before = old.get(name).unwrap_or(&Value::Null);
        (name.clone(), difference(before, value))
    });
    let gone = old.keys().filter(|name| !fields.contains_key(*name));
    changed
        .chain(gone.map(|name| (name.clone(), Value::Null)))
        .collect()
}
