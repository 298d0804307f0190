//! Presets of the input fields of fal's well-known models.
//!
//! Each preset names the source from which its id, every field and every value were read, on 21 November 2026: `types` is
//! `libs/client/src/types/endpoints.ts` of <https://github.com/fal-ai/fal-js> at 381105e (2 August 2026), which fal generates from its endpoints'
//! schemas; `studio` is `packages/engines/catalog/models/fal-ai/` of <https://github.com/GoRenku/studio> at 6b91dfb (21 August 2026), the schemas
//! themselves, which contain the bounds of numbers too. The presets were not tested against fal itself. A channel's entry can configure other fields.
//!
//! `fal-ai/imagen4/preview` and `fal-ai/bytedance/seedance/v1/lite` were removed from those types in August 2026: they are not built in.

use crate::mapped::Preset;

/// The input fields of well-known models.
pub(super) static PRESETS: &[Preset] = &[
    Preset {
        // types: BytedanceSeedanceV1ProFast{Text,Image}ToVideoInput; studio: video/bytedance-seedance-v1-pro-fast-*.json.
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
        // types: BytedanceSeedanceV1ProTextToVideoInput. Text to video only: fal has redirected pro/image-to-video to pro fast, which ignores the
        // last frame (types: SeedanceImageToVideoInput).
        id: "fal-ai/bytedance/seedance/v1/pro/text-to-video",
        serves: &["seedance-1.0-pro"],
        options: r#"{ "input": {
            "prompt": "prompt",
            "seconds": { "to": "duration", "as": "{}", "of": [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12] },
            "resolution": { "to": "resolution", "of": ["480p", "720p", "1080p"] },
            "size": { "to": "aspect_ratio", "of": ["21:9", "16:9", "4:3", "1:1", "3:4", "9:16"] },
            "camera_fixed": "camera_fixed", "seed": "seed" } }"#,
    },
    Preset {
        // types: BytedanceSeedreamV45{TextToImage,Edit}Input; studio: image/bytedance-seedream-v4-5-*.json. A value of `max_images` above 1 requests
        // a group, as `n` above 1 does.
        id: "fal-ai/bytedance/seedream/v4.5/text-to-image",
        serves: &[
            "doubao-seedance-4-5",
            "Doubao-Seedream-4.5",
            "doubao-seedream-4.5",
            "doubao-seedream-4-5",
        ],
        options: r#"{ "input": {
            "prompt": "prompt", "references": { "to": "image_urls", "most": 10 },
            "size": { "to": "image_size", "as": "object" }, "n": { "to": "max_images", "most": 6 } },
            "implied": ["extra.sequential_image_generation", "extra.sequential_image_generation_options"],
            "with_images": { "upstream": "fal-ai/bytedance/seedream/v4.5/edit" } }"#,
    },
    Preset {
        // types: MinimaxSpeech02HdInput, VoiceSetting; studio: audio/minimax-speech-02-hd.json.
        id: "fal-ai/minimax/speech-02-hd",
        serves: &["native-v3"],
        options: r#"{ "input": {
            "prompt": "text", "voice": "voice_setting.voice_id",
            "speed": { "to": "voice_setting.speed", "between": [0.5, 2] },
            "language": { "to": "language_boost", "values": {
                "zh": "Chinese", "yue": "Chinese,Yue", "en": "English", "ar": "Arabic", "ru": "Russian", "es": "Spanish",
                "fr": "French", "pt": "Portuguese", "de": "German", "tr": "Turkish", "nl": "Dutch", "uk": "Ukrainian",
                "vi": "Vietnamese", "id": "Indonesian", "ja": "Japanese", "it": "Italian", "ko": "Korean", "th": "Thai",
                "pl": "Polish", "ro": "Romanian", "el": "Greek", "cs": "Czech", "fi": "Finnish", "hi": "Hindi" } } },
            "constants": { "output_format": "url" } }"#,
    },
    Preset {
        // types: NanoBanana{,Edit}Input; https://fal.ai/docs/model-api-reference/image-generation-api/nano-banana: 1 to 4.
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
        // types: NanoBananaPro{,Edit}Input; studio: image/nano-banana-pro{,-edit}.json.
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
        // types: Veo31Input, Veo31ImageToVideoInput.
        id: "fal-ai/veo3.1",
        serves: &["veo-3.1-pro"],
        options: r#"{ "input": {
            "prompt": "prompt", "negative_prompt": "negative_prompt", "first_frame": "image_url",
            "seconds": { "to": "duration", "as": "{}s", "of": [4, 6, 8] },
            "resolution": { "to": "resolution", "of": ["720p", "1080p", "4k"] },
            "size": { "to": "aspect_ratio", "of": ["16:9", "9:16"] },
            "generate_audio": "generate_audio", "seed": "seed" },
            "with_images": { "upstream": "fal-ai/veo3.1/image-to-video" } }"#,
    },
    Preset {
        // types: Veo31FastInput, Veo31FastImageToVideoInput, the same as above.
        id: "fal-ai/veo3.1/fast",
        serves: &["veo-3.1-flash"],
        options: r#"{ "input": {
            "prompt": "prompt", "negative_prompt": "negative_prompt", "first_frame": "image_url",
            "seconds": { "to": "duration", "as": "{}s", "of": [4, 6, 8] },
            "resolution": { "to": "resolution", "of": ["720p", "1080p", "4k"] },
            "size": { "to": "aspect_ratio", "of": ["16:9", "9:16"] },
            "generate_audio": "generate_audio", "seed": "seed" },
            "with_images": { "upstream": "fal-ai/veo3.1/fast/image-to-video" } }"#,
    },
    Preset {
        // types: XAIImageInput; studio: image/xai-grok-imagine-image.json.
        id: "xai/grok-imagine-image",
        serves: &["grok-imagine-1.0-partner"],
        options: r#"{ "input": {
            "prompt": "prompt", "n": { "to": "num_images", "most": 4 },
            "size": { "to": "aspect_ratio",
                "of": ["2:1", "20:9", "19.5:9", "16:9", "4:3", "3:2", "1:1", "2:3", "3:4", "9:16", "9:19.5", "9:20", "1:2"] } } }"#,
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
            ..Channel::new("main", "fal")
        };
        assert_eq!(crate::mapped::check(&channel, PRESETS), Ok(()));
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
