//! A provider of media on this machine that answers by what it is asked, and what calls of it need: jobs, pictures on
//! disk, a delivery that remembers.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt as _;
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tollgate_core::{Adjustment, Secret, TaskKind};
use tollgate_fakes::{Fake, Options, Provider as FakeKind};
use tollgate_media::image::{ImageFormat, ImageJob, PixelSize};
use tollgate_media::speech::SpeechJob;
use tollgate_media::video::VideoJob;
use tollgate_media::{AnyFamily, Job, RequestLayout};
use tollgate_upstream::channel::ChannelModel;
use tollgate_upstream::egress::{Client, ClientOptions};
use tollgate_upstream::provider::{Provider, Settings};
use tollgate_upstream::{
    Attempt, Channel, Completed, FindCall, Found, ImageCall, InputFile, Link, PROVIDERS, Polled,
    ProviderError, QueueCall, ResultData, ResultSink, SpeechCall, Started, UpstreamErrorKind,
    VideoCall,
};

pub(crate) const KEY: &str = "sk-test-0123456789abcdef";
/// Our id of every attempt.
pub(crate) const EXTERNAL_ID: &str = "ext-1";

/// What was asked.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// Method and path with query.
    pub(crate) line: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl Asked {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).expect("the body is JSON")
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// An answer; none cuts the connection.
pub(crate) type Reply = Option<Response<Full<Bytes>>>;

/// An answer of JSON.
pub(crate) fn reply(status: u16, json: Value) -> Reply {
    raw(status, "application/json", json.to_string())
}

/// An answer of anything.
pub(crate) fn raw(status: u16, kind: &str, body: impl Into<Bytes>) -> Reply {
    let response = Response::builder()
        .status(status)
        .header("content-type", kind);
    Some(response.body(Full::new(body.into())).unwrap())
}

/// The same answer with a header.
pub(crate) fn with_header(reply: Reply, name: &'static str, value: &str) -> Reply {
    let mut reply = reply?;
    reply.headers_mut().insert(name, value.parse().unwrap());
    Some(reply)
}

/// The provider's side.
pub(crate) struct Desk {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Desk {
    /// Answers every request with what `answer` makes of it.
    pub(crate) async fn answering(
        answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (notes, answer) = (asked.clone(), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (notes, answer) = (notes.clone(), answer.clone());
                let service = service_fn(move |request: Request<Incoming>| {
                    let (notes, answer) = (notes.clone(), answer.clone());
                    async move {
                        let (head, body) = request.into_parts();
                        let body = body.collect().await.unwrap().to_bytes();
                        let asked = Asked {
                            line: format!("{} {}", head.method, head.uri),
                            headers: head.headers,
                            body,
                        };
                        notes.lock().unwrap().push(asked.clone());
                        answer(&asked).ok_or_else(|| std::io::Error::other("cut off"))
                    }
                });
                let serving = hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service);
                tokio::spawn(serving);
            }
        });
        Self { address, asked }
    }

    /// Gives these answers in order, the last one for ever.
    pub(crate) async fn saying(replies: impl IntoIterator<Item = Reply>) -> Self {
        let replies: Mutex<VecDeque<Reply>> = Mutex::new(replies.into_iter().collect());
        Self::answering(move |_| {
            let mut replies = replies.lock().unwrap();
            match replies.len() {
                0 | 1 => replies.front().cloned().flatten(),
                _ => replies.pop_front().flatten(),
            }
        })
        .await
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    /// The lines of all that was asked.
    pub(crate) fn lines(&self) -> Vec<String> {
        self.asked().into_iter().map(|asked| asked.line).collect()
    }
}

/// A channel at `base` that serves `name`, called `upstream` there.
pub(crate) fn channel(kind: &str, base: String, name: &str, upstream: &str) -> Channel {
    Channel {
        base_url: Some(base),
        api_keys: vec![Secret::new(KEY)],
        models: vec![ChannelModel::new(name, upstream)],
        ..Channel::new("main", kind)
    }
}

/// What the check of the channel's kind says.
pub(crate) fn check(channel: &Channel) -> Result<(), String> {
    let entry = PROVIDERS.iter().find(|entry| entry.kind == channel.kind);
    (entry.expect("the kind is registered").check)(channel)
}

/// Whether the kind says of every field of its families, and of no other, what becomes of it.
pub(crate) fn says_all(kind: &str) {
    let entry = PROVIDERS.iter().find(|entry| entry.kind == kind).unwrap();
    assert!(!entry.field_support.is_empty());
    for carries in entry.field_support {
        let family = AnyFamily::by_name(carries.family).expect(carries.family);
        let said: Vec<&str> = carries.fields.iter().map(|(name, _)| *name).collect();
        let fields = family.fields(RequestLayout::Standard).iter();
        let there: Vec<&str> = fields.map(|field| field.name).collect();
        assert_eq!(
            said, there,
            "{kind}, in the order of the family's declaration"
        );
    }
}

/// An opened channel, and what it delivered.
pub(crate) struct Desktop {
    pub(crate) provider: Provider,
    pub(crate) model: ChannelModel,
    pub(crate) key: Secret,
    pub(crate) shelf: Shelf,
}

impl Desktop {
    /// Opens a checked channel as the server does, and takes its first model.
    pub(crate) fn open(channel: Channel) -> Self {
        check(&channel).expect("the channel is well configured");
        let entry = PROVIDERS.iter().find(|entry| entry.kind == channel.kind);
        let allowed = ClientOptions {
            allow_private: vec!["127.0.0.0/8".parse().unwrap()],
            ..ClientOptions::default()
        };
        let egress = Client::new(allowed);
        let model = channel.models[0].clone();
        let key = channel.api_keys[0].clone();
        let open = entry.expect("the kind is registered").open;
        Self {
            provider: open(&Arc::new(channel), &Settings::default(), &egress),
            model,
            key,
            shelf: Shelf::default(),
        }
    }

    fn attempt(&self) -> Attempt<'_> {
        Attempt {
            task_id: "task_1",
            external_id: EXTERNAL_ID,
            model: &self.model,
            key: Some(&self.key),
            failed_attempts: 0,
            sink: &self.shelf,
            cancel: CancellationToken::new(),
        }
    }

    pub(crate) async fn image(
        &self,
        job: &ImageJob,
        references: &[InputFile],
        mask: Option<&InputFile>,
    ) -> Result<Started, ProviderError> {
        let call = ImageCall {
            attempt: self.attempt(),
            job,
            references,
            mask,
        };
        self.provider.image.as_ref().unwrap().start(call).await
    }

    pub(crate) async fn video(
        &self,
        job: &VideoJob,
        images: &[InputFile],
    ) -> Result<Started, ProviderError> {
        let call = VideoCall {
            attempt: self.attempt(),
            job,
            images,
        };
        self.provider.video.as_ref().unwrap().start(call).await
    }

    pub(crate) async fn speech(&self, job: &SpeechJob) -> Result<Started, ProviderError> {
        let call = SpeechCall {
            attempt: self.attempt(),
            job,
        };
        self.provider.speech.as_ref().unwrap().start(call).await
    }

    fn question<'a>(
        &'a self,
        provider_job_id: &'a str,
        kind: TaskKind,
        asked: u32,
    ) -> QueueCall<'a> {
        QueueCall {
            task_id: "task_1",
            kind,
            provider_job_id,
            requested: asked,
            model: &self.model,
            key: Some(&self.key),
            sink: &self.shelf,
        }
    }

    pub(crate) async fn poll(
        &self,
        provider_job_id: &str,
        kind: TaskKind,
        asked: u32,
    ) -> Result<Polled, ProviderError> {
        let queue = self.provider.queue.as_ref().unwrap();
        queue
            .poll(self.question(provider_job_id, kind, asked))
            .await
    }

    /// Asks until it is no longer waiting.
    pub(crate) async fn end(
        &self,
        provider_job_id: &str,
        kind: TaskKind,
        asked: u32,
    ) -> Result<Polled, ProviderError> {
        loop {
            match self.poll(provider_job_id, kind, asked).await {
                Ok(Polled::Pending(_)) => {}
                ended => return ended,
            }
        }
    }

    pub(crate) async fn cancel(
        &self,
        provider_job_id: &str,
        kind: TaskKind,
    ) -> Result<(), ProviderError> {
        let queue = self.provider.queue.as_ref().unwrap();
        queue.cancel(self.question(provider_job_id, kind, 1)).await
    }

    pub(crate) async fn find(&self, job: &Job) -> Result<Found, ProviderError> {
        let queue = self.provider.queue.as_ref().unwrap();
        let call = FindCall {
            job,
            external_id: EXTERNAL_ID,
            model: &self.model,
            key: Some(&self.key),
            sink: &self.shelf,
        };
        queue.find(call).await
    }
}

/// The provider job id of accepted work.
pub(crate) fn provider_job_id(started: Result<Started, ProviderError>) -> String {
    match started {
        Ok(Started::Accepted(provider_job_id)) => provider_job_id,
        other => panic!("it was not accepted: {other:?}"),
    }
}

/// What was refused of finished work.
pub(crate) fn refused(polled: Result<Polled, ProviderError>) -> Vec<UpstreamErrorKind> {
    match polled {
        Ok(Polled::Completed(Completed { failures: refused })) => {
            refused.into_iter().map(|e| e.kind).collect()
        }
        other => panic!("it is not done: {other:?}"),
    }
}

/// Why work ended without a result.
pub(crate) fn failure(polled: Result<Polled, ProviderError>) -> ProviderError {
    match polled {
        Ok(Polled::Failed(error)) => error,
        other => panic!("it did not fail: {other:?}"),
    }
}

/// A delivery that remembers, and refuses links that hold `gone`.
#[derive(Default)]
pub(crate) struct Shelf {
    links: Mutex<Vec<Link>>,
    files: Mutex<Vec<Vec<u8>>>,
    progress: Mutex<Vec<u8>>,
    adjustments: Mutex<Vec<Adjustment>>,
}

impl Shelf {
    pub(crate) fn links(&self) -> Vec<String> {
        let links = self.links.lock().unwrap();
        links.iter().map(|link| link.url.clone()).collect()
    }

    pub(crate) fn files(&self) -> Vec<Vec<u8>> {
        self.files.lock().unwrap().clone()
    }

    /// What was adjusted, as `field: asked → used`, in that order.
    pub(crate) fn record_adjustment(&self) -> Vec<String> {
        let adjustments = self.adjustments.lock().unwrap();
        let text = |a: &Adjustment| format!("{}: {} → {}", a.field, a.asked, a.used);
        adjustments.iter().map(text).collect()
    }
}

#[async_trait]
impl ResultSink for Shelf {
    async fn deliver(&self, made: ResultData) -> Result<(), ProviderError> {
        match made {
            ResultData::Link(link) if link.url.contains("gone") => Err(ProviderError::new(
                UpstreamErrorKind::Unavailable,
                "the result cannot be fetched",
            )),
            ResultData::Link(link) => {
                self.links.lock().unwrap().push(link);
                Ok(())
            }
            ResultData::Bytes(bytes) => {
                self.files.lock().unwrap().push(bytes.to_vec());
                Ok(())
            }
            ResultData::Stream(mut parts) => {
                let mut file = Vec::new();
                while let Some(part) = parts.next().await {
                    file.extend_from_slice(&part?);
                }
                self.files.lock().unwrap().push(file);
                Ok(())
            }
        }
    }

    fn progress(&self, percent: u8) {
        self.progress.lock().unwrap().push(percent);
    }

    fn record_adjustment(&self, adjustment: Adjustment) {
        self.adjustments.lock().unwrap().push(adjustment);
    }
}

/// A fake that takes [`KEY`], and the rules by which it refused what it was asked.
pub(crate) async fn fake(provider: FakeKind, options: Options) -> Fake {
    let keys = vec![KEY.to_owned()];
    let options = Options { keys, ..options };
    tollgate_fakes::start(provider, options).await.unwrap()
}

pub(crate) fn rules_broken(fake: &Fake) -> Vec<&'static str> {
    let requests = fake.requests().into_iter();
    requests.filter_map(|seen| seen.rejected_by).collect()
}

/// A job with `given` in it.
pub(crate) fn image_job(given: Value) -> ImageJob {
    let whole = json!({
        "model": "m", "family": "f", "prompt": "a red boat", "n": 1, "output_format": "png",
        "size": { "pixels": { "width": 1024, "height": 1024 }, "ratio": "1:1", "tier": "1K" },
    });
    serde_json::from_value(merged(whole, given)).unwrap()
}

/// A film's job with `given` in it.
pub(crate) fn video_job(given: Value) -> VideoJob {
    let whole = json!({
        "model": "m", "family": "f", "prompt": "a red boat", "seconds": 5, "images": [], "extra": {},
        "size": { "pixels": { "width": 1280, "height": 720 }, "ratio": "16:9", "resolution": "720p" },
    });
    serde_json::from_value(merged(whole, given)).unwrap()
}

/// A speech's job with `given` in it.
pub(crate) fn speech_job(given: Value) -> SpeechJob {
    let whole =
        json!({ "model": "native-v3", "family": "native-v3", "text": "Hello.", "extra": {} });
    serde_json::from_value(merged(whole, given)).unwrap()
}

fn merged(mut whole: Value, given: Value) -> Value {
    let fields = given.as_object().cloned().unwrap_or_default();
    whole.as_object_mut().unwrap().extend(fields);
    whole
}

/// Pictures on disk, removed with the folder that the test holds.
pub(crate) struct Pictures(PathBuf);

impl Pictures {
    pub(crate) fn new() -> Self {
        let name = tollgate_core::id::short_id("tollgate-desk-");
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir(&folder).unwrap();
        Self(folder)
    }

    /// A picture that every provider takes: its sides are long enough.
    pub(crate) fn real(&self, field: &str) -> InputFile {
        let mut png = std::io::Cursor::new(Vec::new());
        let picture = image::RgbImage::new(320, 320);
        picture.write_to(&mut png, image::ImageFormat::Png).unwrap();
        self.file(field, png.get_ref())
    }

    /// `bytes` as a file that came in `field`.
    pub(crate) fn file(&self, field: &str, bytes: &[u8]) -> InputFile {
        let path = self.0.join(tollgate_core::id::short_id("f-"));
        std::fs::write(&path, bytes).unwrap();
        InputFile {
            field: field.to_owned(),
            path,
            format: ImageFormat::Png,
            size: PixelSize::new(320, 240),
            bytes: bytes.len() as u64,
        }
    }
}

impl Drop for Pictures {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
