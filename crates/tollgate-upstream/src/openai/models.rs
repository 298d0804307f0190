//! OpenAI's ids of the catalogue's image, video and speech models, and the capabilities of its image models.

use tollgate_media::image::ImageJob;

/// The catalogue's ids and OpenAI's, as of 20 Nov 2026. A configured `upstream` of an entry overrides them.
pub(super) const IDS: &[(&str, &str)] = &[
    ("gpt-image-2-official", "gpt-image-2"),
    // gpt-image-1 was shut down on 23 Oct 2026; gpt-image-1.5 will be shut down on 1 Dec.
    ("gpt-image-1-official", "gpt-image-2"),
    ("gpt-image-1.5-official", "gpt-image-1.5"),
    // There is no plain 2.5: "flare" is the fast model, "sunburst" the best.
    ("gpt-image-2.5-async", "gpt-image-2.5-flare"),
    // OpenAI shut Sora down on 24 Sep 2026; the entry is for compatible servers.
    ("sora-2", "sora-2"),
    // All of OpenAI's speech models are to be shut down on 6 Jan 2027.
    ("native-v3", "gpt-4o-mini-tts"),
    ("kling-v3", "gpt-4o-mini-tts"),
];

/// Families whose fields are those of OpenAI's image models.
const GPT_FAMILIES: &[&str] = &["gpt-image-1", "gpt-image-2", "gpt-image-2.5-async"];

/// Which fields an image model supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// All fields of OpenAI's own models.
    Gpt(GptModel),
    /// The fields of every compatible server: `prompt`, `n`, `size`.
    Generic,
}

/// What one of OpenAI's GPT image models supports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct GptModel {
    /// Whether it supports any size, not only three.
    pub(super) any_size: bool,
    /// Whether it supports the qualities `xhigh` and `max`.
    pub(super) fine_quality: bool,
}

/// A model that supports everything.
const NEWEST: GptModel = GptModel {
    any_size: true,
    fine_quality: true,
};

/// The dialect of a request for `job` to the model `id`. The channel's option `images` decides; without it OpenAI's own ids are
/// known, and for other models the job's family decides.
pub(super) fn dialect(id: &str, job: &ImageJob, option: Option<&str>) -> Dialect {
    let known = gpt_model(id);
    match (option, known) {
        (Some("generic"), _) => Dialect::Generic,
        (_, Some(model)) => Dialect::Gpt(model),
        (Some(_), None) => Dialect::Gpt(NEWEST),
        (None, None) if GPT_FAMILIES.contains(&job.family.as_str()) => Dialect::Gpt(NEWEST),
        (None, None) => Dialect::Generic,
    }
}

/// The GPT image model with that id (`gpt-image-…`, `chatgpt-image…`). `None` for every other model, `dall-e-3` included.
fn gpt_model(id: &str) -> Option<GptModel> {
    let id = id.rsplit('/').next().unwrap_or(id).to_ascii_lowercase();
    let old = GptModel {
        any_size: false,
        fine_quality: false,
    };
    if id.starts_with("chatgpt-image") {
        return Some(old);
    }
    let version = id.strip_prefix("gpt-image-")?;
    if version.starts_with('1') {
        return Some(old);
    }
    let is_second = version == "2" || version.starts_with("2-");
    Some(GptModel {
        fine_quality: !is_second,
        ..NEWEST
    })
}

/// Whether a video model supports only the four sizes of Sora.
pub(super) fn is_sora(id: &str) -> bool {
    let id = id.rsplit('/').next().unwrap_or(id);
    id.to_ascii_lowercase().starts_with("sora-2")
}

/// Whether a speech model supports `instructions`.
pub(super) fn supports_instructions(id: &str) -> bool {
    let id = id.rsplit('/').next().unwrap_or(id);
    !matches!(id, "tts-1" | "tts-1-hd")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_models_are_known_by_their_ids() {
        let model = |any_size, fine_quality| {
            Some(GptModel {
                any_size,
                fine_quality,
            })
        };
        for (id, expected) in [
            ("gpt-image-1", model(false, false)),
            ("gpt-image-1.5", model(false, false)),
            ("gpt-image-1-mini", model(false, false)),
            ("chatgpt-image-latest", model(false, false)),
            ("gpt-image-2", model(true, false)),
            ("openai/gpt-image-2-2026-04-21", model(true, false)),
            ("gpt-image-2.5-flare", model(true, true)),
            ("gpt-image-2.6-sunburst-2026-11-01", model(true, true)),
            ("flux-1-dev", None),
            ("dall-e-3", None),
        ] {
            assert_eq!(gpt_model(id), expected, "{id}");
        }
    }

    #[test]
    fn the_dialect_is_determined_by_option_then_id_then_family() {
        let job = |family: &str| -> ImageJob {
            let job = serde_json::json!({
                "model": "m", "family": family, "prompt": "p", "n": 1, "output_format": "png",
                "size": {"pixels": null, "ratio": null, "tier": null},
            });
            serde_json::from_value(job).unwrap()
        };
        for (id, family, option, is_gpt) in [
            ("gpt-image-2", "seedream-4.5", None, true),
            ("gpt-image-2", "gpt-image-2", Some("generic"), false),
            ("my-deployment", "gpt-image-2", None, true),
            ("flux", "seedream-4.5", None, false),
            ("flux", "seedream-4.5", Some("gpt"), true),
        ] {
            let dialect = dialect(id, &job(family), option);
            assert_eq!(matches!(dialect, Dialect::Gpt(_)), is_gpt, "{id} {family}");
        }
    }

    #[test]
    fn videos_and_speech_are_known_by_their_ids() {
        assert!(is_sora("sora-2") && is_sora("openai/sora-2-pro-2025-10-06"));
        assert!(!is_sora("veo-3.1-pro"));
        assert!(!supports_instructions("tts-1-hd") && !supports_instructions("openai/tts-1"));
        assert!(supports_instructions("gpt-4o-mini-tts"));
    }
}
