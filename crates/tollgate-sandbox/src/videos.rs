//! The sandbox as a video provider: zooms slowly into a generated image or the first reference image.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use tollgate_media::image::{ImageFormat, ImageJob, Size};
use tollgate_media::video::VideoJob;

use crate::directives::Directives;
use crate::image::{ImageSpec, render_first_frame};
use crate::task::{Timer, run_attempt, run_on_cpu};
use crate::video::{ClipSpec, encode_clip};
use tollgate_upstream::channel::ChannelModel;
use tollgate_upstream::error::{ProviderError, UpstreamErrorKind};
use tollgate_upstream::provider::{
    Completed, ExecutionMode, InputFile, ResultData, Started, VideoCall, VideoProvider,
};

/// Frames per second.
const FPS: u32 = 24;

/// Generates videos from prompt, seed and reference images.
pub(super) struct SandboxVideos {
    /// The duration of a call without a `delay` directive.
    time: Duration,
}

impl SandboxVideos {
    pub(super) fn new(time: Duration) -> Self {
        Self { time }
    }

    /// Encodes and delivers the video, and returns when the configured time has passed.
    async fn generate(
        &self,
        call: &VideoCall<'_>,
        directives: &Directives,
        text: &str,
    ) -> Result<Completed, ProviderError> {
        let sink = call.attempt.sink;
        let timer = Timer::new(directives.delay.unwrap_or(self.time), sink, 1);
        if directives.partial == Some(0) {
            timer.wait(0).await;
            let message =
                "the directive makes the sandbox generate no video ([[sandbox:partial=0]])";
            let failures = vec![ProviderError::new(UpstreamErrorKind::Failed, message)];
            return Ok(Completed { failures });
        }
        let (job, text) = (call.job.clone(), text.to_owned());
        let images = call.images.to_vec();
        let cancel = CancelOnDrop::default();
        let cancelled = Arc::clone(&cancel.0);
        let video = run_on_cpu(move || generate_video(&job, &text, &images, &cancelled));
        let video = timer.during(0, video).await?;
        timer.wait(0).await;
        sink.deliver(ResultData::Bytes(video)).await?;
        Ok(Completed::default())
    }
}

#[async_trait]
impl VideoProvider for SandboxVideos {
    /// A video that a crash interrupts is generated again.
    fn execution_mode(&self, _: &ChannelModel) -> ExecutionMode {
        ExecutionMode::Direct
    }

    async fn start(&self, call: VideoCall<'_>) -> Result<Started, ProviderError> {
        let (directives, text) = Directives::parse(&call.job.prompt);
        run_attempt(
            &call.attempt,
            &directives,
            self.generate(&call, &directives, &text),
        )
        .await
    }
}

/// Signals the encoding thread to stop when the call's future is dropped.
#[derive(Default)]
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Renders the first frame and encodes the video. CPU-bound: not for an async thread.
fn generate_video(
    job: &VideoJob,
    text: &str,
    images: &[InputFile],
    cancelled: &AtomicBool,
) -> Result<Bytes, ProviderError> {
    let rejected = |why: &dyn std::fmt::Display| {
        ProviderError::new(
            UpstreamErrorKind::Rejected,
            format!("the sandbox cannot encode this video: {why}"),
        )
    };
    let size = job
        .size
        .pixels
        .ok_or_else(|| rejected(&"its size in pixels is unknown"))?;
    let first = render_first_frame(
        ImageSpec::without_references(first_frame_job(job), size, text),
        images.first(),
    )?;
    let clip = ClipSpec {
        first: &first,
        width: size.width,
        height: size.height,
        seconds: job.seconds,
        fps: FPS,
        seed: job.seed.unwrap_or_default().unsigned_abs(),
        caption: text.trim(),
    };
    let mut video = Vec::new();
    let on_frame = |_, _| match cancelled.load(Ordering::Relaxed) {
        false => ControlFlow::Continue(()),
        true => ControlFlow::Break(()),
    };
    encode_clip(&clip, &mut video, on_frame).map_err(|e| rejected(&e))?;
    Ok(video.into())
}

/// The image job that renders the first frame of `job`.
fn first_frame_job(job: &VideoJob) -> ImageJob {
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
