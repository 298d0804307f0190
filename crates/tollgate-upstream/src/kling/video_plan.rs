//! Plans the request: the video nearest to the job that the model supports.

use tollgate_media::video::{ImageUse, VideoJob};

use super::models::{Api, AudioSupport, Capabilities, LastFrame, Tier};
use crate::adapter::{Adjustments, nearest_ratio};
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::provider::InputFile;

/// The ratios of videos from text alone.
const RATIOS: &[&str] = &["16:9", "9:16", "1:1"];
/// The shorter side in pixels of each named tier.
const LINES: &[(&str, u32)] = &[("720p", 720), ("1080p", 1080), ("4k", 2160)];
/// The only length of videos with a last frame, for models that support one in short videos only.
const SHORT: u32 = 5;

/// A request for a video.
pub(super) struct VideoRequest<'a> {
    pub(super) job: &'a VideoJob,
    pub(super) plan: &'a Plan,
    /// The model's name in the API.
    pub(super) name: &'a str,
    /// The first frame and the last, if there are any.
    pub(super) images: &'a [InputFile],
    pub(super) external_id: &'a str,
}

/// The properties of the video to request.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) tier: &'static Tier,
    pub(super) seconds: u32,
    /// Whether to generate audio. `None` if there is no field for it.
    pub(super) audio: Option<bool>,
    /// The ratio. `None` if the video has the first frame's ratio.
    pub(super) ratio: Option<&'static str>,
}

impl Plan {
    /// Plans the video of a `job` with `images` images, and lists the differences from the job. Returns an error if the model supports no similar
    /// video.
    pub(super) fn new(
        job: &VideoJob,
        images: usize,
        capabilities: &'static Capabilities,
        api: Api,
    ) -> Result<(Self, Adjustments), ProviderError> {
        check_supported(job, images, capabilities)?;
        let mut changes = Adjustments::for_unsupported_fields(job, supported_fields(api));
        let has_last_frame = images == 2;
        let audio = audio(job, has_last_frame, capabilities, &mut changes);
        let tier = tier(job, has_last_frame, audio, capabilities, &mut changes);
        let seconds = seconds(job, has_last_frame, capabilities, &mut changes);
        let ratio = match images {
            0 => nearest_text_ratio(job, &mut changes),
            _ => {
                if let Some(requested) = &job.size.ratio {
                    let why = "the video has the first frame's ratio";
                    changes.drop_field("size", requested.as_str(), why);
                }
                None
            }
        };
        let plan = Self {
            tier,
            seconds,
            audio,
            ratio,
        };
        Ok((plan, changes))
    }
}

/// The fields, in addition to length and size, that an API supports.
fn supported_fields(api: Api) -> &'static [&'static str] {
    match api {
        Api::Newer => &["generate_audio", "watermark"],
        Api::Older => &["generate_audio", "watermark", "negative_prompt"],
    }
}

fn check_supported(
    job: &VideoJob,
    images: usize,
    capabilities: &Capabilities,
) -> Result<(), ProviderError> {
    let unsupported = |message: String| {
        Err(ProviderError::new(
            UpstreamErrorKind::UnsupportedByChannel,
            message,
        ))
    };
    let are_frames = job.image_use != Some(ImageUse::References);
    if images > 2 || !are_frames {
        return unsupported(format!(
            "the channel's model accepts a first and a last frame and no other images, got {images}"
        ));
    }
    if images == 2 && capabilities.last_frame == LastFrame::Never {
        return unsupported("the channel's model accepts a first frame only, got 2 images".into());
    }
    if images == 0 && !capabilities.from_text {
        return unsupported(
            "the channel's model generates videos from images only, got none".into(),
        );
    }
    Ok(())
}

fn audio(
    job: &VideoJob,
    has_last_frame: bool,
    capabilities: &Capabilities,
    changes: &mut Adjustments,
) -> Option<bool> {
    let requested = job.generate_audio?;
    let (used, why) = match capabilities.audio {
        AudioSupport::Never => (false, "the provider's model generates no audio"),
        AudioSupport::Always => (
            true,
            "the provider's model generates no video without audio",
        ),
        AudioSupport::AtBest if has_last_frame && capabilities.last_frame == LastFrame::AtBest => (
            false,
            "the provider's model generates no audio with a last frame",
        ),
        AudioSupport::AtBest | AudioSupport::IfRequested => (requested, ""),
    };
    changes.replace_value("generate_audio", requested, used, why);
    let has_choice = matches!(
        capabilities.audio,
        AudioSupport::AtBest | AudioSupport::IfRequested
    );
    has_choice.then_some(used)
}

/// The requested tier, found by its name or by the shorter side, or else the nearest.
fn tier(
    job: &VideoJob,
    has_last_frame: bool,
    audio: Option<bool>,
    capabilities: &'static Capabilities,
    changes: &mut Adjustments,
) -> &'static Tier {
    let requested = job.size.resolution.as_deref();
    let named = requested.and_then(|requested| {
        let mut names = LINES.iter().map(|(name, _)| *name);
        names.position(|name| name.eq_ignore_ascii_case(requested))
    });
    let request = named.unwrap_or_else(|| {
        let side = job.size.pixels.map_or(0, |p| p.width.min(p.height));
        let at_least = LINES.iter().position(|(_, lines)| side <= *lines);
        at_least.unwrap_or(LINES.len() - 1)
    });
    let best = capabilities.tiers.len() - 1;
    let (at, why) = match request {
        _ if has_last_frame && capabilities.last_frame == LastFrame::AtBest => (
            best,
            "the provider's model supports a last frame only with this value",
        ),
        _ if audio == Some(true) && capabilities.audio == AudioSupport::AtBest => (
            best,
            "the provider's model generates audio only with this value",
        ),
        request => (
            request.min(best),
            "the provider's model does not support this value: the nearest that it supports",
        ),
    };
    let tier = &capabilities.tiers[at];
    if let Some(requested) =
        requested.filter(|requested| !requested.eq_ignore_ascii_case(tier.name))
    {
        changes.replace_value("resolution", requested, tier.name, why);
    }
    tier
}

/// The nearest length that the model supports.
fn seconds(
    job: &VideoJob,
    has_last_frame: bool,
    capabilities: &Capabilities,
    changes: &mut Adjustments,
) -> u32 {
    let (lengths, why) = match capabilities.last_frame {
        LastFrame::InShortVideos if has_last_frame => (
            &[SHORT] as &[u32],
            "the provider's model supports a last frame only in videos of this length",
        ),
        _ => (
            capabilities.seconds,
            "the provider's model does not support this length: the nearest that it supports",
        ),
    };
    let off = |seconds: &u32| seconds.abs_diff(job.seconds);
    let nearest = lengths.iter().copied().min_by_key(off).unwrap_or(SHORT);
    changes.replace_value("seconds", job.seconds, nearest, why);
    nearest
}

fn nearest_text_ratio(job: &VideoJob, changes: &mut Adjustments) -> Option<&'static str> {
    let named = job.size.ratio.as_deref();
    let nearest = nearest_ratio(named, job.size.pixels, RATIOS).unwrap_or(RATIOS[0]);
    changes.ratio(named, job.size.pixels, nearest);
    Some(nearest)
}
