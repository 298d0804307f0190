//! The fields of fal's models that are well known.
//!
//! As the models' pages have them, as far as known on 20 November 2026; they could not be tried. A channel's entry may say
//! others.

use crate::mapped::Preset;

/// Fields of models that need no options.
pub(super) static PRESETS: &[Preset] = &[
    Preset {
        id: "fal-ai/bytedance/seedance/v1/lite/text-to-video",
        serves: &["seedance-1.0-mini"],
        options: r#"{ "input": {
            "prompt": "prompt", "first_frame": "image_url", "last_frame": "end_image_url",
            "seconds": { "to": "duration", "as": "{}", "of": [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12] },
            "resolution": { "to": "resolution", "of": ["480p", "720p", "1080p"] },
            "size": { "to": "aspect_ratio", "of": ["21:9", "16:9", "4:3", "1:1", "3:4", "9:16"] },
            "camera_fixed": "camera_fixed", "seed": "seed" },
            "with_images": { "upstream": "fal-ai/bytedance/seedance/v1/lite/image-to-video" } }"#,
    },
    Preset {
        id: "fal-ai/bytedance/seedance/v1/pro/fast/text-to-video",
        serves: &["seedance-1.0-fast"],
        options: r#"{ "input": {
            "prompt": "prompt", "first_frame": "image_url",
            "seconds": { "to": "duration", "as": "{}", "of": [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12] },
            "resolution": { "to": "resolution", "of": ["480p", "720p", "1080p"] },
            "size": { "to": "aspect_ratio", "of": ["21:9", "16:9", "4:3", "1:1", "3:4", "9:16"] },
            "camera_fixed": "camera_fixed", "seed": "seed" },
            "with_images": { "upstream": "fal-ai/bytedance/seedance/v1/pro/fast/image-to-video" } }"#,
    },
    Preset {
        id: "fal-ai/bytedance/seedance/v1/pro/text-to-video",
        serves: &["seedance-1.0-pro"],
        options: r#"{ "input": {
            "prompt": "prompt", "first_frame": "image_url", "last_frame": "end_image_url",
            "seconds": { "to": "duration", "as": "{}", "of": [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12] },
            "resolution": { "to": "resolution", "of": ["480p", "720p", "1080p"] },
            "size": { "to": "aspect_ratio", "of": ["21:9", "16:9", "4:3", "1:1", "3:4", "9:16"] },
            "camera_fixed": "camera_fixed", "seed": "seed" },
            "with_images": { "upstream": "fal-ai/bytedance/seedance/v1/pro/image-to-video" } }"#,
    },
    Preset {
        id: "fal-ai/bytedance/seedream/v4.5/text-to-image",
        serves: &[
            "doubao-seedance-4-5",
            "Doubao-Seedream-4.5",
            "doubao-seedream-4.5",
            "doubao-seedream-4-5",
        ],
        options: r#"{ "input": {
            "prompt": "prompt", "references": "image_urls", "size": { "to": "image_size", "as": "object" },
            "n": { "to": "max_images", "most": 6 } },
            "with_images": { "upstream": "fal-ai/bytedance/seedream/v4.5/edit" } }"#,
    },
    Preset {
        id: "fal-ai/imagen4/preview",
        serves: &["imagen-4.0-partner"],
        options: r#"{ "input": {
            "prompt": "prompt", "n": { "to": "num_images", "most": 4 },
            "size": { "to": "aspect_ratio", "of": ["1:1", "16:9", "9:16", "3:4", "4:3"] } } }"#,
    },
    Preset {
        id: "fal-ai/minimax/speech-02-hd",
        serves: &["native-v3"],
        options: r#"{ "input": {
            "prompt": "text", "voice": "voice_setting.voice_id", "speed": "voice_setting.speed",
            "language": { "to": "language_boost", "values": { "zh": "Chinese", "en": "English" } } },
            "constants": { "output_format": "url" } }"#,
    },
    Preset {
        id: "fal-ai/nano-banana",
        serves: &[
            "gemini-2.5-flash-image-preview",
            "gemini-2.5-flash-image-preview-official",
        ],
        options: r#"{ "input": {
            "prompt": "prompt", "references": "image_urls", "n": { "to": "num_images", "most": 4 },
            "size": { "to": "aspect_ratio", "of": ["21:9", "16:9", "3:2", "4:3", "5:4", "1:1", "4:5", "3:4", "2:3", "9:16"] },
            "output_format": { "to": "output_format", "of": ["png", "jpeg", "webp"] } },
            "with_images": { "upstream": "fal-ai/nano-banana/edit" } }"#,
    },
    Preset {
        id: "fal-ai/nano-banana-pro",
        serves: &[
            "gemini-3-pro-image-preview",
            "gemini-3-pro-image-preview-official",
        ],
        options: r#"{ "input": {
            "prompt": "prompt", "references": "image_urls", "n": { "to": "num_images", "most": 4 },
            "size": { "to": "aspect_ratio", "of": ["21:9", "16:9", "3:2", "4:3", "5:4", "1:1", "4:5", "3:4", "2:3", "9:16"] },
            "resolution": { "to": "resolution", "of": ["1K", "2K", "4K"] },
            "output_format": { "to": "output_format", "of": ["png", "jpeg", "webp"] } },
            "with_images": { "upstream": "fal-ai/nano-banana-pro/edit" } }"#,
    },
    Preset {
        id: "fal-ai/veo3.1",
        serves: &["veo-3.1-pro"],
        options: r#"{ "input": {
            "prompt": "prompt", "negative_prompt": "negative_prompt", "first_frame": "image_url",
            "seconds": { "to": "duration", "as": "{}s", "of": [4, 6, 8] },
            "resolution": { "to": "resolution", "of": ["720p", "1080p"] },
            "size": { "to": "aspect_ratio", "of": ["16:9", "9:16"] },
            "generate_audio": "generate_audio", "seed": "seed" },
            "with_images": { "upstream": "fal-ai/veo3.1/image-to-video" } }"#,
    },
    Preset {
        id: "fal-ai/veo3.1/fast",
        serves: &["veo-3.1-flash"],
        options: r#"{ "input": {
            "prompt": "prompt", "negative_prompt": "negative_prompt", "first_frame": "image_url",
            "seconds": { "to": "duration", "as": "{}s", "of": [4, 6, 8] },
            "resolution": { "to": "resolution", "of": ["720p", "1080p"] },
            "size": { "to": "aspect_ratio", "of": ["16:9", "9:16"] },
            "generate_audio": "generate_audio", "seed": "seed" },
            "with_images": { "upstream": "fal-ai/veo3.1/fast/image-to-video" } }"#,
    },
    Preset {
        id: "xai/grok-imagine-image",
        serves: &["grok-imagine-1.0-partner"],
        options: r#"{ "input": {
            "prompt": "prompt", "n": { "to": "num_images", "most": 4 },
            "size": { "to": "aspect_ratio", "of": ["16:9", "3:2", "1:1", "2:3", "9:16"] } } }"#,
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::channel::{Channel, ChannelModel};

    #[test]
    fn every_preset_is_well_formed_and_no_model_has_two() {
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
            ..Channel::new("main", "fal")
        };
        assert_eq!(super::super::check(&channel), Ok(()));
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
