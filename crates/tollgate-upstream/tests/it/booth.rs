//! What the tests of media adapters share: attempts at jobs on a channel, and a delivery that keeps what comes.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use http::HeaderMap;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use tollgate_core::{Adjustment, Secret, TaskKind};
use tollgate_media::image::{ImageFormat, ImageJob, PixelSize};
use tollgate_media::speech::SpeechJob;
use tollgate_media::video::VideoJob;
use tollgate_upstream::channel::ChannelModel;
use tollgate_upstream::egress::{Client, ClientOptions};
use tollgate_upstream::provider::{Provider, Settings};
use tollgate_upstream::{
    Attempt, Channel, ImageCall, InputFile, PROVIDERS, Polled, ProviderError, QueueCall,
    ResultData, ResultSink, SpeechCall, Started, UpstreamErrorKind, VideoCall,
};

use crate::vendor::{KEY, Reply, Seen, Vendor, answer, channel};

/// A provider of one kind on a vendor of the test's, and what is asked of it.
pub(crate) struct Booth {
    provider: Provider,
    pub(crate) model: ChannelModel,
    /// What was delivered.
    pub(crate) kept: Kept,
    pub(crate) references: Vec<InputFile>,
    pub(crate) mask: Option<InputFile>,
    pub(crate) cancel: CancellationToken,
    pub(crate) key: Secret,
    /// How many attempts at the same task are said to have failed.
    pub(crate) failed_attempts: u32,
}

impl Booth {
    /// A channel of that kind at `vendor`'s `/v1`, whose entry for `name` gives no id of the provider's.
    pub(crate) fn at(vendor: &Vendor, kind: &str, name: &str) -> Self {
        let channel = channel(kind, vendor.url("/v1"));
        Self::of(channel, ChannelModel::new(name, name))
    }

    pub(crate) fn of(channel: Channel, model: ChannelModel) -> Self {
        Self::through(&Client::new(ClientOptions::default()), channel, model)
    }

    /// The same, with an HTTP client of the test's.
    pub(crate) fn through(egress: &Client, channel: Channel, model: ChannelModel) -> Self {
        let entry = PROVIDERS.iter().find(|entry| entry.kind == channel.kind);
        let entry = entry.expect("the kind is registered");
        (entry.check)(&channel).expect("its options are good");
        Self {
            provider: (entry.open)(&Arc::new(channel), &Settings::default(), egress),
            model,
            kept: Kept::default(),
            references: Vec::new(),
            mask: None,
            cancel: CancellationToken::new(),
            key: Secret::new(KEY),
            failed_attempts: 0,
        }
    }

    fn attempt(&self) -> Attempt<'_> {
        Attempt {
            task_id: "task_1",
            external_id: "a-1",
            model: &self.model,
            key: Some(&self.key),
            failed_attempts: self.failed_attempts,
            sink: &self.kept,
            cancel: self.cancel.clone(),
        }
    }

    /// Makes pictures, within the call.
    pub(crate) async fn draw(
        &self,
        job: &ImageJob,
    ) -> Result<Vec<UpstreamErrorKind>, ProviderError> {
        let images = self.provider.image.as_ref().expect("it makes pictures");
        let call = ImageCall {
            attempt: self.attempt(),
            job,
            references: &self.references,
            mask: self.mask.as_ref(),
        };
        match images.start(call).await? {
            Started::Completed(done) => Ok(done.failures.iter().map(|error| error.kind).collect()),
            Started::Accepted(provider_job_id) => panic!("{provider_job_id} was accepted"),
        }
    }

    /// Begins a film; its provider job id.
    pub(crate) async fn film(&self, job: &VideoJob) -> Result<String, ProviderError> {
        let videos = self.provider.video.as_ref().expect("it makes films");
        let call = VideoCall {
            attempt: self.attempt(),
            job,
            images: &self.references,
        };
        match videos.start(call).await? {
            Started::Accepted(provider_job_id) => Ok(provider_job_id),
            Started::Completed(_) => panic!("it is done at once"),
        }
    }

    /// Asks how far a film is.
    pub(crate) async fn poll(&self, provider_job_id: &str) -> Result<Polled, ProviderError> {
        let queue = self.provider.queue.as_ref().expect("it has a queue");
        queue.poll(self.question(provider_job_id)).await
    }

    /// Why a film came to nothing.
    pub(crate) async fn failure(&self, provider_job_id: &str) -> ProviderError {
        match self.poll(provider_job_id).await {
            Ok(Polled::Failed(error)) => error,
            other => panic!("it did not fail: {other:?}"),
        }
    }

    /// Calls a film off.
    pub(crate) async fn call_off(&self, provider_job_id: &str) -> Result<(), ProviderError> {
        let queue = self.provider.queue.as_ref().expect("it has a queue");
        queue.cancel(self.question(provider_job_id)).await
    }

    fn question<'a>(&'a self, provider_job_id: &'a str) -> QueueCall<'a> {
        QueueCall {
            task_id: "task_1",
            kind: TaskKind::Video,
            provider_job_id,
            requested: 1,
            model: &self.model,
            key: Some(&self.key),
            sink: &self.kept,
        }
    }

    /// Speaks.
    pub(crate) async fn speak(&self, job: &SpeechJob) -> Result<(), ProviderError> {
        let speech = self.provider.speech.as_ref().expect("it speaks");
        let call = SpeechCall {
            attempt: self.attempt(),
            job,
        };
        match speech.start(call).await? {
            Started::Completed(done) => assert!(done.failures.is_empty()),
            Started::Accepted(provider_job_id) => panic!("{provider_job_id} was accepted"),
        }
        Ok(())
    }
}

/// Something delivered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Thing {
    Bytes(Bytes),
    Link {
        url: String,
        headers: HeaderMap,
        is_own: bool,
    },
}

/// Keeps what is delivered, or refuses the first so many things, or those before for reasons of their own.
#[derive(Default)]
pub(crate) struct Kept {
    things: Mutex<Vec<Thing>>,
    progress: Mutex<Vec<u8>>,
    adjustments: Mutex<Vec<Adjustment>>,
    pub(crate) refuses: Mutex<u32>,
    pub(crate) reasons: Mutex<Vec<ProviderError>>,
}

impl Kept {
    pub(crate) fn things(&self) -> Vec<Thing> {
        self.things.lock().unwrap().clone()
    }

    /// What was adjusted, as `field: asked → used`, in that order.
    pub(crate) fn record_adjustment(&self) -> Vec<String> {
        let adjustments = self.adjustments.lock().unwrap();
        let text = |a: &Adjustment| format!("{}: {} → {}", a.field, a.asked, a.used);
        adjustments.iter().map(text).collect()
    }

    /// What was said of the progress.
    pub(crate) fn progress_seen(&self) -> Vec<u8> {
        self.progress.lock().unwrap().clone()
    }

    /// The links' URLs, in their order.
    pub(crate) fn urls(&self) -> Vec<String> {
        let url = |thing| match thing {
            Thing::Link { url, .. } => url,
            Thing::Bytes(_) => panic!("it came as bytes"),
        };
        self.things().into_iter().map(url).collect()
    }

    /// The files, without links, in order of their bytes: calls end in any order.
    pub(crate) fn files(&self) -> Vec<Bytes> {
        let mut files: Vec<_> = self
            .things()
            .into_iter()
            .map(|thing| match thing {
                Thing::Bytes(bytes) => bytes,
                Thing::Link { url, .. } => panic!("{url} is a link"),
            })
            .collect();
        files.sort();
        files
    }
}

#[async_trait]
impl ResultSink for Kept {
    async fn deliver(&self, made: ResultData) -> Result<(), ProviderError> {
        let thing = match made {
            ResultData::Bytes(bytes) => Thing::Bytes(bytes),
            ResultData::Link(link) => Thing::Link {
                url: link.url,
                headers: link.headers,
                is_own: link.is_own,
            },
            ResultData::Stream(mut parts) => {
                let mut all = Vec::new();
                while let Some(part) = parts.next().await {
                    all.extend_from_slice(&part?);
                }
                Thing::Bytes(all.into())
            }
        };
        if let Some(reason) = self.reasons.lock().unwrap().pop() {
            return Err(reason);
        }
        let mut refuses = self.refuses.lock().unwrap();
        if *refuses > 0 {
            *refuses -= 1;
            return Err(ProviderError::new(
                UpstreamErrorKind::Failed,
                "no such file",
            ));
        }
        drop(refuses);
        self.things.lock().unwrap().push(thing);
        Ok(())
    }

    fn progress(&self, percent: u8) {
        self.progress.lock().unwrap().push(percent);
    }

    fn record_adjustment(&self, adjustment: Adjustment) {
        self.adjustments.lock().unwrap().push(adjustment);
    }
}

/// A job for pictures as a family's validation makes it, with `more` fields.
pub(crate) fn picture(family: &str, n: u32, more: Value) -> ImageJob {
    let job = json!({
        "model": family, "family": family, "prompt": "a cat, 猫", "n": n, "output_format": "png",
        "size": {"pixels": {"width": 1024, "height": 1024}, "ratio": "1:1", "tier": null},
    });
    serde_json::from_value(with(job, more)).unwrap()
}

/// A job for one picture of that size.
pub(crate) fn picture_of(family: &str, prompt: &str, (width, height): (u32, u32)) -> ImageJob {
    let size = json!({"pixels": {"width": width, "height": height}, "ratio": null, "tier": null});
    picture(family, 1, json!({"prompt": prompt, "size": size}))
}

/// The members of an object.
pub(crate) fn members(value: Value) -> Map<String, Value> {
    value.as_object().expect("an object").clone()
}

/// A job for a film of 1280x720.
pub(crate) fn film(family: &str, more: Value) -> VideoJob {
    let job = json!({
        "model": family, "family": family, "prompt": "a cat runs", "seconds": 8, "images": [], "extra": {},
        "size": {"pixels": {"width": 1280, "height": 720}, "ratio": "16:9", "resolution": "720p"},
    });
    serde_json::from_value(with(job, more)).unwrap()
}

/// A job for speech.
pub(crate) fn speech(more: Value) -> SpeechJob {
    let job = json!({"model": "native-v3", "family": "native-v3", "text": "Hello.", "extra": {}});
    serde_json::from_value(with(job, more)).unwrap()
}

fn with(mut all: Value, more: Value) -> Value {
    for (name, value) in more.as_object().unwrap() {
        all[name] = value.clone();
    }
    all
}

/// A file on disk as a reference.
pub(crate) fn reference(name: &str, format: ImageFormat, (width, height): (u32, u32)) -> InputFile {
    let name = format!("booth-{name}.{}", format.extension());
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(&name);
    let picture = image::RgbaImage::from_pixel(width, height, image::Rgba([20, 90, 160, 255]));
    let picture = image::DynamicImage::from(picture);
    match format {
        ImageFormat::Jpeg => picture.into_rgb8().save(&path).unwrap(),
        _ => picture.save(&path).unwrap(),
    }
    InputFile {
        field: "image_urls[0]".into(),
        bytes: std::fs::metadata(&path).unwrap().len(),
        path,
        format,
        size: PixelSize::new(width, height),
    }
}

/// A file with just these bytes as a reference.
pub(crate) fn raw(name: &str, format: ImageFormat, bytes: &[u8]) -> InputFile {
    let name = format!("booth-{name}.{}", format.extension());
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, bytes).unwrap();
    InputFile {
        field: "image_urls[0]".into(),
        path,
        format,
        size: PixelSize::new(64, 64),
        bytes: bytes.len() as u64,
    }
}

pub(crate) fn bytes_of(file: &InputFile) -> Bytes {
    std::fs::read(&file.path).unwrap().into()
}

pub(crate) fn json_of(seen: &Seen) -> Value {
    assert_eq!(seen.headers["content-type"], "application/json");
    seen.json()
}

/// An answer of JSON.
pub(crate) fn says(status: u16, json: &Value) -> Reply {
    answer(status, "application/json", json.to_string())
}

/// The beginning of an answer of JSON, then the end of the connection.
pub(crate) fn breaks_off(beginning: String) -> Reply {
    let cut = async {
        // What was written before is on its way by then.
        tokio::time::sleep(Duration::from_millis(100)).await;
        Err(std::io::Error::other("cut off"))
    };
    let parts = stream::once(async { Ok(Bytes::from(beginning)) }).chain(stream::once(cut));
    let mut reply = answer(200, "application/json", "");
    *reply.body_mut() = parts.boxed();
    reply
}

pub(crate) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// One part of a form.
#[derive(Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) name: String,
    pub(crate) file_name: Option<String>,
    pub(crate) content_type: Option<String>,
    pub(crate) bytes: Bytes,
}

impl Part {
    pub(crate) fn text(name: &str, text: &str) -> Self {
        Self {
            name: name.into(),
            file_name: None,
            content_type: None,
            bytes: Bytes::copy_from_slice(text.as_bytes()),
        }
    }

    pub(crate) fn file(name: &str, file_name: &str, content_type: &str, bytes: Bytes) -> Self {
        Self {
            name: name.into(),
            file_name: Some(file_name.into()),
            content_type: Some(content_type.into()),
            bytes,
        }
    }
}

/// The parts of a form, read as a server reads them.
pub(crate) fn form_of(seen: &Seen) -> Vec<Part> {
    let content_type = seen.headers["content-type"].to_str().unwrap();
    let boundary = content_type
        .strip_prefix("multipart/form-data; boundary=")
        .expect("a form");
    let mark = format!("--{boundary}");
    let mut rest = seen.body.clone();
    let mut parts = Vec::new();
    loop {
        assert!(rest.starts_with(mark.as_bytes()));
        let _ = rest.split_to(mark.len());
        if rest.as_ref() == b"--\r\n" {
            return parts;
        }
        let head_end = find(&rest, b"\r\n\r\n");
        let head = String::from_utf8(rest.split_to(head_end).to_vec()).unwrap();
        let _ = rest.split_to(4);
        let end = find(&rest, format!("\r\n{mark}").as_bytes());
        let bytes = rest.split_to(end);
        let _ = rest.split_to(2);
        parts.push(part(&head, bytes));
    }
}

fn find(text: &[u8], what: &[u8]) -> usize {
    let found = text.windows(what.len()).position(|at| at == what);
    found.expect("the form is whole")
}

fn part(head: &str, bytes: Bytes) -> Part {
    let mut headers: Map<String, Value> = Map::new();
    for line in head.trim_start().lines() {
        let (name, value) = line.split_once(": ").unwrap();
        headers.insert(name.to_ascii_lowercase(), value.into());
    }
    let disposition = headers["content-disposition"].as_str().unwrap().to_owned();
    let named = |name: &str| {
        let (_, rest) = disposition.split_once(&format!("; {name}=\""))?;
        Some(rest.split('"').next().unwrap().to_owned())
    };
    Part {
        name: named("name").unwrap(),
        file_name: named("filename"),
        content_type: headers
            .get("content-type")
            .map(|value| value.as_str().unwrap().to_owned()),
        bytes,
    }
}
