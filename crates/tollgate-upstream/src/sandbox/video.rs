//! The sandbox as a provider of films: its picture, or the first reference, with a camera that moves over it.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tollgate_media::image::{ImageFormat, ImageJob, Size};
use tollgate_media::video::VideoJob;

use super::directives::Directives;
use super::film::{self, FilmOrder};
use super::picture::{Order, still};
use super::work::{Pace, draw, obey};
use crate::channel::ChannelModel;
use crate::provider::{
    Done, InputFile, Made, ProviderError, ProviderErrorKind, Started, Style, VideoCall,
    VideoProvider,
};

/// Pictures a second.
const FPS: u32 = 24;

/// Makes films from prompt, seed and references.
pub(super) struct SandboxVideos {
    /// How long a call takes where no directive says otherwise.
    time: Duration,
}

impl SandboxVideos {
    pub(super) fn new(time: Duration) -> Self {
        Self { time }
    }

    async fn work(
        &self,
        call: &VideoCall<'_>,
        directives: &Directives,
        text: &str,
    ) -> Result<Done, ProviderError> {
        let delivery = call.attempt.delivery;
        let pace = Pace::new(directives.delay.unwrap_or(self.time), delivery, 1);
        if directives.partial == Some(0) {
            pace.rest(0).await;
            let message = "the sandbox was told to make nothing ([[sandbox:partial=K]])";
            let refused = vec![ProviderError::new(ProviderErrorKind::Failed, message)];
            return Ok(Done { refused });
        }
        let (job, text) = (call.job.clone(), text.to_owned());
        let images = call.images.to_vec();
        let stop = Stop::default();
        let told = Arc::clone(&stop.0);
        let film = draw(move || shoot(&job, &text, &images, &told));
        let film = pace.during(0, film).await?;
        pace.rest(0).await;
        delivery.deliver(Made::Bytes(film)).await?;
        Ok(Done::default())
    }
}

#[async_trait]
impl VideoProvider for SandboxVideos {
    /// Work that is cut off is simply done again.
    fn style(&self, _: &ChannelModel) -> Style {
        Style::Direct
    }

    async fn start(&self, call: VideoCall<'_>) -> Result<Started, ProviderError> {
        let (directives, text) = Directives::parse(&call.job.prompt);
        obey(
            &call.attempt,
            &directives,
            self.work(&call, &directives, &text),
        )
        .await
    }
}

/// Tells the thread that films when nobody wants the film any more.
#[derive(Default)]
struct Stop(Arc<AtomicU32>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.store(1, Ordering::Relaxed);
    }
}

/// Draws the first picture and films it. Takes long: not for an async thread.
fn shoot(
    job: &VideoJob,
    text: &str,
    images: &[InputFile],
    stop: &AtomicU32,
) -> Result<Bytes, ProviderError> {
    let broken = |why: &dyn std::fmt::Display| {
        ProviderError::new(
            ProviderErrorKind::Rejected,
            format!("the sandbox cannot film this: {why}"),
        )
    };
    let size = job
        .size
        .pixels
        .ok_or_else(|| broken(&"its size is unknown"))?;
    let first = still(Order::of(still_job(job), size, text), images.first())?;
    let order = FilmOrder {
        first: &first,
        width: size.width,
        height: size.height,
        seconds: job.seconds,
        fps: FPS,
        seed: job.seed.unwrap_or_default().unsigned_abs(),
        caption: text.trim(),
    };
    let mut film = Vec::new();
    let watch = |_, _| match stop.load(Ordering::Relaxed) {
        0 => ControlFlow::Continue(()),
        _ => ControlFlow::Break(()),
    };
    film::make(&order, &mut film, watch).map_err(|e| broken(&e))?;
    Ok(film.into())
}

/// The film's first picture as a job of its own.
fn still_job(job: &VideoJob) -> ImageJob {
    ImageJob {
        model: job.model.clone(),
        family: job.family.clone(),
        prompt: job.prompt.clone(),
        negative_prompt: None,
        n: 1,
        size: Size {
            pixels: job.size.pixels,
            ratio: job.size.ratio.clone(),
            tier: job.size.resolution.clone(),
        },
        quality: None,
        output_format: ImageFormat::Png,
        output_compression: None,
        background: None,
        moderation: None,
        seed: job.seed.map(i64::unsigned_abs),
        watermark: job.watermark,
        references: Vec::new(),
        mask: None,
        extra: serde_json::Map::new(),
    }
}
