//! Kling's video models: their names in the two kinds of APIs, and their capabilities
//! (<https://kling.ai/document-api/guides/capability-map/video>, 2026).

use crate::error::{ProviderError, UpstreamErrorKind};

/// A resolution tier.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Tier {
    /// The tier's name in requests and in the newer APIs.
    pub(super) name: &'static str,
    /// The value of the older APIs' `mode` for the tier; `None` if the model has only one tier.
    pub(super) mode: Option<&'static str>,
}

/// When a model supports a last frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LastFrame {
    Never,
    Always,
    /// At the highest tier, and without audio.
    AtBest,
    /// In videos of five seconds.
    InShortVideos,
}

/// When a model generates audio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AudioSupport {
    Never,
    /// If it is requested.
    IfRequested,
    /// Always; the API has no field for it.
    Always,
    /// At the highest tier.
    AtBest,
}

/// What a model supports.
#[derive(Debug)]
pub(super) struct Capabilities {
    /// Whether it generates videos from text alone. All models generate them from images.
    pub(super) from_text: bool,
    /// The lengths of videos in seconds.
    pub(super) seconds: &'static [u32],
    /// The model's tiers, the lowest first.
    pub(super) tiers: &'static [Tier],
    pub(super) last_frame: LastFrame,
    pub(super) audio: AudioSupport,
}

/// A model with its names in the newer and the older APIs; `None` for an API that lacks it.
struct Model {
    newer: Option<&'static str>,
    older: Option<&'static str>,
    capabilities: &'static Capabilities,
}

/// One of the provider's two kinds of APIs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Api {
    /// The newer APIs, with the model in the path. They do not accept signed tokens.
    Newer,
    /// The older APIs, with a `model_name`.
    Older,
}

/// The prefix of the models' names in the older APIs.
const OLDER_NAMES: &str = "kling-v";
const FIVE_OR_TEN: &[u32] = &[5, 10];
const UP_TO_FIFTEEN: &[u32] = &[3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15];

const fn tier(name: &'static str, mode: &'static str) -> Tier {
    let mode = Some(mode);
    Tier { name, mode }
}

const STD: Tier = tier("720p", "std");
const PRO: Tier = tier("1080p", "pro");

/// The capabilities that most models before 3.0 have in common.
const BASE: Capabilities = Capabilities {
    from_text: true,
    seconds: FIVE_OR_TEN,
    tiers: &[STD, PRO],
    last_frame: LastFrame::AtBest,
    audio: AudioSupport::Never,
};
static V1: Capabilities = Capabilities {
    // Both modes generate 720p.
    tiers: &[STD, tier("720p", "pro")],
    last_frame: LastFrame::InShortVideos,
    ..BASE
};
static V1_5_AND_2_1: Capabilities = Capabilities {
    from_text: false,
    ..BASE
};
static V1_6_AND_2_5: Capabilities = BASE;
static V2_MASTER: Capabilities = Capabilities {
    tiers: &[Tier {
        name: "720p",
        mode: None,
    }],
    last_frame: LastFrame::Never,
    ..BASE
};
static V2_1_MASTER: Capabilities = Capabilities {
    tiers: &[Tier {
        name: "1080p",
        mode: None,
    }],
    last_frame: LastFrame::Never,
    ..BASE
};
static V2_6: Capabilities = Capabilities {
    audio: AudioSupport::AtBest,
    ..BASE
};
static V3: Capabilities = Capabilities {
    seconds: UP_TO_FIFTEEN,
    tiers: &[STD, PRO, tier("4k", "4k")],
    last_frame: LastFrame::Always,
    audio: AudioSupport::IfRequested,
    ..BASE
};
static V3_TURBO: Capabilities = Capabilities {
    seconds: UP_TO_FIFTEEN,
    last_frame: LastFrame::Never,
    audio: AudioSupport::Always,
    ..BASE
};

static MODELS: &[Model] = &[
    model(Some("kling-3.0"), Some("kling-v3"), &V3),
    model(Some("kling-3.0-turbo"), None, &V3_TURBO),
    model(Some("kling-2.6"), Some("kling-v2-6"), &V2_6),
    model(
        Some("kling-2.5-turbo"),
        Some("kling-v2-5-turbo"),
        &V1_6_AND_2_5,
    ),
    model(None, Some("kling-v2-1-master"), &V2_1_MASTER),
    model(None, Some("kling-v2-1"), &V1_5_AND_2_1),
    model(None, Some("kling-v2-master"), &V2_MASTER),
    model(None, Some("kling-v1-6"), &V1_6_AND_2_5),
    model(None, Some("kling-v1-5"), &V1_5_AND_2_1),
    model(None, Some("kling-v1"), &V1),
];

const fn model(
    newer: Option<&'static str>,
    older: Option<&'static str>,
    capabilities: &'static Capabilities,
) -> Model {
    Model {
        newer,
        older,
        capabilities,
    }
}

/// The API for the model that the channel calls `upstream`, the model's name there, and its capabilities. A key that signs tokens is valid for the
/// older APIs only, whichever name is configured; any other key is valid for all, and the form of the name decides. A model that is not in the table
/// is requested by the configured name.
pub(super) fn choose(
    upstream: &str,
    is_signed: bool,
) -> Result<(Api, &str, &'static Capabilities), ProviderError> {
    let has_name = |model: &&Model| [model.newer, model.older].contains(&Some(upstream));
    let known = MODELS.iter().find(has_name);
    let capabilities = known.map_or_else(
        || assumed_capabilities(upstream),
        |model| model.capabilities,
    );
    if upstream.starts_with(OLDER_NAMES) {
        return Ok((Api::Older, upstream, capabilities));
    }
    if !is_signed {
        return Ok((Api::Newer, upstream, capabilities));
    }
    match known.map(|model| model.older) {
        Some(Some(older)) => Ok((Api::Older, older, capabilities)),
        Some(None) => {
            let message = format!(
                "{upstream} needs an API key of Kling's: an access key with its secret opens the older APIs, which do not have it"
            );
            Err(ProviderError::new(
                UpstreamErrorKind::ModelNotFound,
                message,
            ))
        }
        None => Ok((Api::Older, upstream, capabilities)),
    }
}

/// What a model that is not in the table is assumed to support.
fn assumed_capabilities(upstream: &str) -> &'static Capabilities {
    let version = upstream
        .trim_start_matches("kling-")
        .trim_start_matches('v');
    match version.starts_with(['1', '2']) {
        true => &V2_6,
        false => &V3,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_and_the_name_determine_the_api() {
        use Api::{Newer, Older};
        for (upstream, is_signed, expected) in [
            ("kling-3.0", false, Some((Newer, "kling-3.0"))),
            ("kling-3.0", true, Some((Older, "kling-v3"))),
            ("kling-3.0-turbo", false, Some((Newer, "kling-3.0-turbo"))),
            ("kling-3.0-turbo", true, None),
            ("kling-2.6", true, Some((Older, "kling-v2-6"))),
            ("kling-v2-6", false, Some((Older, "kling-v2-6"))),
            ("kling-v1-6", true, Some((Older, "kling-v1-6"))),
            ("kling-4.0", false, Some((Newer, "kling-4.0"))),
            ("kling-4.0", true, Some((Older, "kling-4.0"))),
            ("kling-v4", false, Some((Older, "kling-v4"))),
        ] {
            let chosen = choose(upstream, is_signed);
            let kind = chosen.as_ref().err().map(|error| error.kind);
            let chosen = chosen.ok().map(|(api, name, _)| (api, name));
            assert_eq!(chosen, expected, "{upstream} {is_signed}");
            assert!(kind.is_none_or(|kind| kind == UpstreamErrorKind::ModelNotFound));
        }
    }

    #[test]
    fn every_name_belongs_to_one_model() {
        let names = MODELS.iter().flat_map(|model| [model.newer, model.older]);
        let mut names: Vec<_> = names.flatten().collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
        for model in MODELS {
            let is_older = |name: &str| name.starts_with(OLDER_NAMES);
            assert!(model.older.is_none_or(is_older));
            assert!(!model.newer.is_some_and(is_older));
        }
    }
}
