//! What the sandbox tests share: jobs, calls, and a delivery that keeps what comes.

use std::io::Cursor;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use image::{DynamicImage, RgbaImage};
use tokio_util::sync::CancellationToken;
use tollgate_core::Adjustment;
use tollgate_media::image::{ImageFormat, ImageJob, PixelSize, Size, facts};
use tollgate_upstream::channel::ChannelModel;
use tollgate_upstream::egress::{Client, ClientOptions};
use tollgate_upstream::provider::{Attempt as Try, Done, Made, Provider, Settings, Started};
use tollgate_upstream::{Channel, Delivery, ImageCall, InputFile, PROVIDERS, ProviderError};

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
    let entry = PROVIDERS.iter().find(|entry| entry.kind == "sandbox");
    let egress = Client::new(ClientOptions::default());
    let settings = Settings {
        sandbox_image: time,
        ..Settings::default()
    };
    (entry.expect("it is registered").open)(&channel, &settings, &egress)
}

/// One attempt and what is special about it.
#[derive(Default)]
pub(crate) struct Attempt {
    pub(crate) time: Duration,
    pub(crate) failed_attempts: u32,
    pub(crate) references: Vec<InputFile>,
    pub(crate) mask: Option<InputFile>,
    pub(crate) cancel: CancellationToken,
}

/// A delivered picture.
#[derive(Debug, Clone)]
pub(crate) struct Picture {
    pub(crate) bytes: Bytes,
    pub(crate) format: ImageFormat,
}

/// What came of an attempt.
pub(crate) struct Outcome {
    pub(crate) done: Result<Done, ProviderError>,
    pub(crate) pictures: Vec<Picture>,
    pub(crate) progress: Vec<u8>,
}

impl Outcome {
    /// The only picture of a call that went well.
    pub(crate) fn picture(self) -> Picture {
        self.done.expect("it succeeds");
        let [picture] = <[Picture; 1]>::try_from(self.pictures).expect("one picture");
        picture
    }
}

impl Attempt {
    pub(crate) async fn run(&self, job: &ImageJob) -> Outcome {
        let kept = Kept::default();
        let model = ChannelModel::new(&job.model, &job.model);
        let call = ImageCall {
            attempt: Try {
                task_id: "task",
                external_id: "task-1",
                model: &model,
                key: None,
                failed_attempts: self.failed_attempts,
                delivery: &kept,
                cancel: self.cancel.clone(),
            },
            job,
            references: &self.references,
            mask: self.mask.as_ref(),
        };
        let images = provider(self.time).image.expect("it makes pictures");
        let done = images.start(call).await.map(|started| match started {
            Started::Done(done) => done,
            Started::Accepted(_) => panic!("the sandbox has no queue"),
        });
        Outcome {
            done,
            pictures: kept.pictures.into_inner().unwrap(),
            progress: kept.progress.into_inner().unwrap(),
        }
    }
}

/// Makes the one picture of `job`.
pub(crate) async fn make(job: &ImageJob) -> Picture {
    Attempt::default().run(job).await.picture()
}

#[derive(Default)]
struct Kept {
    pictures: Mutex<Vec<Picture>>,
    progress: Mutex<Vec<u8>>,
}

#[async_trait]
impl Delivery for Kept {
    async fn deliver(&self, made: Made) -> Result<(), ProviderError> {
        let Made::Bytes(bytes) = made else {
            panic!("the sandbox hands its pictures over whole");
        };
        let found = facts::read(Cursor::new(&bytes), bytes.len() as u64);
        let format = found.expect("it is a picture").format;
        self.pictures
            .lock()
            .unwrap()
            .push(Picture { bytes, format });
        Ok(())
    }

    fn progress(&self, percent: u8) {
        self.progress.lock().unwrap().push(percent);
    }

    fn adjusted(&self, adjustment: Adjustment) {
        panic!("the sandbox makes everything as asked: {adjustment:?}");
    }
}

/// Decodes a picture, which must be what it says it is.
pub(crate) fn decode(picture: &Picture) -> DynamicImage {
    let guessed = image::guess_format(&picture.bytes).expect("a known format");
    assert_eq!(guessed.to_mime_type(), picture.format.media_type());
    image::load_from_memory(&picture.bytes).expect("it decodes")
}

/// A PNG on disk as an input.
pub(crate) fn png(name: &str, picture: &RgbaImage) -> InputFile {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.png"));
    picture.save(&path).unwrap();
    file(name, path, ImageFormat::Png, picture.dimensions())
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
