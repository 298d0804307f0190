//! Replicate's models: the paths for their predictions, and presets of the input fields of well-known ones.
//!
//! Each preset names the source from which its id, every field and every value were read, on 21 November 2026: `studio` is
//! <https://github.com/GoRenku/studio> at 6b91dfb (21 August 2026), whose `packages/engines/catalog/models/replicate/` contains the models' input schemas as Replicate
//! returns them (`GET /models/OWNER/NAME`, `latest_version.openapi_schema`). The presets were not tested against Replicate itself. A channel's entry
//! can configure other fields.

use crate::adapter::percent_encode;
use crate::mapped::Preset;

/// The path for predictions of `upstream`, and the version to name: `owner/name` of an official model,
/// `owner/name:version` or a bare version, `deployments/owner/name`.
pub(super) fn prediction_path(upstream: &str) -> (String, Option<String>) {
    let plain = |path: &str| -> String {
        let segments: Vec<String> = path.split('/').map(percent_encode).collect();
        segments.join("/")
    };
    if upstream.contains(':') || !upstream.contains('/') {
        return ("/predictions".to_owned(), Some(upstream.to_owned()));
    }
    let folder = if upstream.starts_with("deployments/") {
        ""
    } else {
        "models/"
    };
    (format!("/{folder}{}/predictions", plain(upstream)), None)
}

/// The input fields of well-known models.
pub(super) static PRESETS: &[Preset] = &[
    Preset {
        // studio: video/bytedance-seedance-1-lite.json.
        id: "bytedance/seedance-1-lite",
        serves: &["seedance-1.0-mini"],
        options: r#"{ "input": {
            "prompt": "prompt", "first_frame": "image", "last_frame": "last_frame_image",
            "references": { "to": "reference_images", "most": 4 },
            "seconds": { "to": "duration", "between": [2, 12] },
            "resolution": { "to": "resolution", "of": ["480p", "720p", "1080p"] },
            "size": { "to": "aspect_ratio", "of": ["16:9", "4:3", "1:1", "3:4", "9:16", "21:9", "9:21"] },
            "camera_fixed": "camera_fixed", "seed": "seed" } }"#,
    },
    Preset {
        // Fields: the model's own llms.txt; their values: docs.skills.video/api-reference/seedance-1-pro, which repeats them.
        id: "bytedance/seedance-1-pro",
        serves: &["seedance-1.0-pro"],
        options: r#"{ "input": {
            "prompt": "prompt", "first_frame": "image", "last_frame": "last_frame_image",
            "seconds": { "to": "duration", "between": [2, 12] },
            "resolution": { "to": "resolution", "of": ["480p", "720p", "1080p"] },
            "size": { "to": "aspect_ratio", "of": ["16:9", "4:3", "1:1", "3:4", "9:16", "21:9"] },
            "camera_fixed": "camera_fixed", "seed": "seed" } }"#,
    },
    Preset {
        // studio: video/bytedance-seedance-1-pro-fast.json.
        id: "bytedance/seedance-1-pro-fast",
        serves: &["seedance-1.0-fast"],
        options: r#"{ "input": {
            "prompt": "prompt", "first_frame": "image",
            "seconds": { "to": "duration", "between": [2, 12] },
            "resolution": { "to": "resolution", "of": ["480p", "720p", "1080p"] },
            "size": { "to": "aspect_ratio", "of": ["16:9", "4:3", "1:1", "3:4", "9:16", "21:9", "9:21"] },
            "camera_fixed": "camera_fixed", "seed": "seed" } }"#,
    },
    Preset {
        // studio: image/bytedance-seedream-4-5.json. `max_images` applies to a group only, which `n` above 1 always requests.
        id: "bytedance/seedream-4.5",
        serves: &[
            "doubao-seedance-4-5",
            "Doubao-Seedream-4.5",
            "doubao-seedream-4.5",
            "doubao-seedream-4-5",
        ],
        options: r#"{ "input": {
            "prompt": "prompt", "references": { "to": "image_input", "most": 14 },
            "resolution": { "to": "size", "of": ["2K", "4K"] },
            "size": { "to": "aspect_ratio", "of": ["1:1", "4:3", "3:4", "16:9", "9:16", "3:2", "2:3", "21:9"] },
            "extra.sequential_image_generation": { "to": "sequential_image_generation", "of": ["disabled", "auto"] },
            "n": { "to": "max_images", "most": 15 } },
            "implied": ["extra.sequential_image_generation_options"] }"#,
    },
    Preset {
        // studio: image/google-imagen-4.json.
        id: "google/imagen-4",
        serves: &["imagen-4.0-partner"],
        options: r#"{ "input": {
            "prompt": "prompt",
            "size": { "to": "aspect_ratio", "of": ["1:1", "9:16", "16:9", "3:4", "4:3"] },
            "output_format": { "to": "output_format", "values": { "png": "png", "jpeg": "jpg" } } } }"#,
    },
    Preset {
        // studio: image/google-nano-banana.json.
        id: "google/nano-banana",
        serves: &[
            "gemini-2.5-flash-image-preview",
            "gemini-2.5-flash-image-preview-official",
        ],
        options: r#"{ "input": {
            "prompt": "prompt", "references": "image_input",
            "size": { "to": "aspect_ratio", "of": ["1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9"] },
            "output_format": { "to": "output_format", "values": { "png": "png", "jpeg": "jpg" } } } }"#,
    },
    Preset {
        // studio: image/google-nano-banana-pro.json.
        id: "google/nano-banana-pro",
        serves: &[
            "gemini-3-pro-image-preview",
            "gemini-3-pro-image-preview-official",
        ],
        options: r#"{ "input": {
            "prompt": "prompt", "references": { "to": "image_input", "most": 14 },
            "size": { "to": "aspect_ratio", "of": ["1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9"] },
            "resolution": { "to": "resolution", "of": ["1K", "2K", "4K"] },
            "output_format": { "to": "output_format", "values": { "png": "png", "jpeg": "jpg" } } } }"#,
    },
    Preset {
        // Fields: https://replicate.com/google/veo-3.1, version ed5b1767…; values: https://api.core.today/v1/models/google/veo-3.1/llms.txt, which
        // resells Replicate's models. Its `reference_images` require 16:9 and 8 seconds, which no family with references guarantees.
        id: "google/veo-3.1",
        serves: &["veo-3.1-pro"],
        options: r#"{ "input": {
            "prompt": "prompt", "negative_prompt": "negative_prompt", "first_frame": "image", "last_frame": "last_frame",
            "seconds": { "to": "duration", "of": [4, 6, 8] },
            "resolution": { "to": "resolution", "of": ["720p", "1080p"] },
            "size": { "to": "aspect_ratio", "of": ["16:9", "9:16"] },
            "generate_audio": "generate_audio", "seed": "seed" } }"#,
    },
    Preset {
        // studio: video/google-veo-3-1-fast.json.
        id: "google/veo-3.1-fast",
        serves: &["veo-3.1-flash"],
        options: r#"{ "input": {
            "prompt": "prompt", "negative_prompt": "negative_prompt", "first_frame": "image", "last_frame": "last_frame",
            "seconds": { "to": "duration", "of": [4, 6, 8] },
            "resolution": { "to": "resolution", "of": ["720p", "1080p"] },
            "size": { "to": "aspect_ratio", "of": ["16:9", "9:16"] },
            "generate_audio": "generate_audio", "seed": "seed" } }"#,
    },
    Preset {
        // studio: audio/minimax-speech-02-hd.json.
        id: "minimax/speech-02-hd",
        serves: &["native-v3"],
        options: r#"{ "input": {
            "prompt": "text", "voice": "voice_id", "speed": { "to": "speed", "between": [0.5, 2] },
            "language": { "to": "language_boost", "values": {
                "zh": "Chinese", "yue": "Chinese,Yue", "en": "English", "ar": "Arabic", "ru": "Russian", "es": "Spanish",
                "fr": "French", "pt": "Portuguese", "de": "German", "tr": "Turkish", "nl": "Dutch", "uk": "Ukrainian",
                "vi": "Vietnamese", "id": "Indonesian", "ja": "Japanese", "it": "Italian", "ko": "Korean", "th": "Thai",
                "pl": "Polish", "ro": "Romanian", "el": "Greek", "cs": "Czech", "fi": "Finnish", "hi": "Hindi" } } } }"#,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::{Channel, ChannelModel};

    #[test]
    fn every_preset_is_valid_and_no_model_has_two() {
        let mut names: Vec<&str> = Vec::new();
        for preset in PRESETS {
            let known: serde_json::Value = serde_json::from_str(preset.options).expect(preset.id);
            assert!(known["input"].is_object(), "{}", preset.id);
            names.push(preset.id);
            names.extend(preset.serves);
        }
        let models = names.iter().map(|name| ChannelModel::new(*name, *name));
        let channel = Channel {
            models: models.collect(),
            ..Channel::new("main", "replicate")
        };
        assert_eq!(crate::mapped::check(&channel, PRESETS), Ok(()));
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
