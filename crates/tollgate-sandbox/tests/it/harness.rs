//! Helpers for the tests: jobs, calls, and a result sink that records what it receives.

use std::io::Cursor;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::HeaderMap;
use image::{DynamicImage, RgbaImage};
use tokio_util::sync::CancellationToken;
use tollgate_chat::Format;
use tollgate_core::Adjustment;
use tollgate_media::image::{ImageFormat, ImageJob, ImageMetadata, PixelSize, Size};
use tollgate_upstream::channel::ChannelModel;
use tollgate_upstream::egress::{Client, ClientOptions};
use tollgate_upstream::provider::{
    Attempt as Try, Completed, Provider, ResultData, Settings, Started,
};
use tollgate_upstream::{
    Channel, ChatBody, ChatCall, ChatProvider, ChatTimeouts, ImageCall, InputFile, ProviderError,
    ResultSink,
};

/// A job for one PNG.
pub(crate) fn job(prompt: &str, width: u32, height: u32) -> ImageJob {
    ImageJob {
        model: "test-model".into(),
        family: "test".into(),
        prompt: prompt.into(),
        negative_prompt: None,
        n: 1,
        size: Size {
            pixels: Some(PixelSize::new(width, height)),
            ratio: None,
            tier: None,
        },
        quality: None,
        output_format: ImageFormat::Png,
        output_compression: None,
        background: None,
        moderation: None,
        seed: None,
        watermark: None,
        references: Vec::new(),
        mask: None,
        extra: serde_json::Map::new(),
    }
}

/// The sandbox as the registry opens it.
pub(crate) fn provider(time: Duration) -> Provider {
    let channel = Arc::new(Channel::new("sandbox", "sandbox"));
    let egress = Client::new(ClientOptions::default());
    let settings = Settings {
        sandbox_image: time,
        ..Settings::default()
    };
    tollgate_sandbox::open(&channel, &settings, &egress)
}

/// One attempt, with the parts that tests vary.
#[derive(Default)]
pub(crate) struct Attempt {
    pub(crate) time: Duration,
    pub(crate) failed_attempts: u32,
    pub(crate) references: Vec<InputFile>,
    pub(crate) mask: Option<InputFile>,
    pub(crate) cancel: CancellationToken,
}

/// A delivered image.
#[derive(Debug, Clone)]
pub(crate) struct GeneratedImage {
    pub(crate) bytes: Bytes,
    pub(crate) format: ImageFormat,
}

/// The outcome of an attempt.
pub(crate) struct Outcome {
    pub(crate) result: Result<Completed, ProviderError>,
    pub(crate) images: Vec<GeneratedImage>,
    pub(crate) progress: Vec<u8>,
}

impl Outcome {
    /// The only image of a successful call.
    pub(crate) fn image(self) -> GeneratedImage {
        self.result.expect("it succeeds");
        let [image] = <[GeneratedImage; 1]>::try_from(self.images).expect("one image");
        image
    }
}

impl Attempt {
    pub(crate) async fn run(&self, job: &ImageJob) -> Outcome {
        let recorded = RecordedResults::default();
        let model = ChannelModel::new(&job.model, &job.model);
        let call = ImageCall {
            attempt: Try {
                task_id: "task",
                external_id: "task-1",
                model: &model,
                key: None,
                failed_attempts: self.failed_attempts,
                trace: None,
                sink: &recorded,
                cancel: self.cancel.clone(),
            },
            job,
            references: &self.references,
            mask: self.mask.as_ref(),
        };
        let images = provider(self.time)
            .image
            .expect("the sandbox supports images");
        let result = images.start(call).await.map(|started| match started {
            Started::Completed(completed) => completed,
            Started::Accepted(_) => panic!("the sandbox has no queue"),
        });
        Outcome {
            result,
            images: recorded.images.into_inner().unwrap(),
            progress: recorded.progress.into_inner().unwrap(),
        }
    }
}

/// Generates the one image of `job`.
pub(crate) async fn make(job: &ImageJob) -> GeneratedImage {
    Attempt::default().run(job).await.image()
}

#[derive(Default)]
struct RecordedResults {
    images: Mutex<Vec<GeneratedImage>>,
    progress: Mutex<Vec<u8>>,
}

#[async_trait]
impl ResultSink for RecordedResults {
    async fn deliver(&self, result: ResultData) -> Result<(), ProviderError> {
        let ResultData::Bytes(bytes) = result else {
            panic!("the sandbox returns complete images");
        };
        let found = ImageMetadata::read(Cursor::new(&bytes), bytes.len() as u64);
        let format = found.expect("it is an image").format;
        self.images
            .lock()
            .unwrap()
            .push(GeneratedImage { bytes, format });
        Ok(())
    }

    fn progress(&self, percent: u8) {
        self.progress.lock().unwrap().push(percent);
    }

    fn record_adjustment(&self, adjustment: Adjustment) {
        panic!("the sandbox makes everything as asked: {adjustment:?}");
    }
}

/// Decodes an image and asserts that its format is the declared one.
pub(crate) fn decode(image: &GeneratedImage) -> DynamicImage {
    let guessed = image::guess_format(&image.bytes).expect("a known format");
    assert_eq!(guessed.to_mime_type(), image.format.media_type());
    image::load_from_memory(&image.bytes).expect("it decodes")
}

/// A PNG on disk as an input.
pub(crate) fn png(name: &str, image: &RgbaImage) -> InputFile {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.png"));
    image.save(&path).unwrap();
    file(name, path, ImageFormat::Png, image.dimensions())
}

pub(crate) fn file(
    field: &str,
    path: PathBuf,
    format: ImageFormat,
    (width, height): (u32, u32),
) -> InputFile {
    InputFile {
        field: field.into(),
        bytes: std::fs::metadata(&path).map_or(0, |data| data.len()),
        path,
        format,
        size: PixelSize::new(width, height),
    }
}

/// The sandbox's chat provider for `channel`.
pub(crate) fn chat_provider(channel: Channel, time: Duration) -> Arc<dyn ChatProvider> {
    let egress = Client::new(ClientOptions::default());
    let settings = Settings {
        sandbox_chat: time,
        ..Settings::default()
    };
    let provider = tollgate_sandbox::open(&Arc::new(channel), &settings, &egress);
    provider.chat.expect("the sandbox supports chats")
}

/// One chat call, with the parts that tests vary.
#[derive(Clone)]
pub(crate) struct Chat {
    pub(crate) format: &'static dyn Format,
    pub(crate) stream: bool,
    pub(crate) body: Bytes,
    pub(crate) failed_attempts: u32,
    pub(crate) first_byte: Duration,
}

impl Chat {
    pub(crate) fn new(format: &'static dyn Format, stream: bool, body: impl Into<Bytes>) -> Self {
        Self {
            format,
            stream,
            body: body.into(),
            failed_attempts: 0,
            first_byte: Duration::from_secs(5),
        }
    }

    pub(crate) async fn send(
        &self,
        provider: &dyn ChatProvider,
    ) -> Result<ChatBody, ProviderError> {
        let call = ChatCall {
            format: self.format,
            model: "gpt-5",
            stream: self.stream,
            body: self.body.clone(),
            key: None,
            headers: &HeaderMap::new(),
            request_id: "req-1",
            trace: None,
            failed_attempts: self.failed_attempts,
            timeouts: ChatTimeouts {
                connect: Duration::from_secs(5),
                first_byte: self.first_byte,
                idle: Duration::from_secs(5),
            },
        };
        provider.send(call).await
    }

    /// The error of a call that fails.
    pub(crate) async fn error(&self, provider: &dyn ChatProvider) -> ProviderError {
        let outcome = self.send(provider).await;
        outcome.err().expect("the call fails")
    }
}
