//! The endpoints to which requests for models are sent, and the JSON layouts of their request bodies.

use std::fmt;

/// An endpoint that accepts requests for models. Displays as method and path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// Generates images from text, with or without reference images.
    ImageGenerations,
    /// Edits images.
    ImageEdits,
    /// Chat completions, the main endpoint of most chat models.
    ChatCompletions,
    /// Chat models whose main endpoint is the Responses API.
    Responses,
    /// Generates videos.
    VideoGenerations,
    /// Generates videos, at the path of OpenAI's API.
    Videos,
    /// Generates speech.
    AudioSpeech,
    /// Generates speech, with the field names of `/native/v1/audio/tts`.
    NativeSpeech,
    /// Generates speech, with `task_type: "tts"` and its fields in `metadata`.
    MultimodalAudio,
}

/// The JSON layout of a request body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestLayout {
    /// As in the first field table of the family's page in docs/models.
    Standard,
    /// `{model_name, text, voice_id, voice_speed, voice_language}`.
    NativeSpeech,
    /// `{model, task_type: "tts", metadata: {text, voice_id, voice_language, voice_speed}}`.
    MultimodalSpeech,
}

impl RequestLayout {
    /// The field that names the model.
    pub fn model_field(self) -> &'static str {
        match self {
            Self::Standard | Self::MultimodalSpeech => "model",
            Self::NativeSpeech => "model_name",
        }
    }
}

impl Endpoint {
    /// The path, such as `/v1/images/edits`. The method of all is POST.
    pub fn path(self) -> &'static str {
        match self {
            Self::ImageGenerations => "/v1/images/generations",
            Self::ImageEdits => "/v1/images/edits",
            Self::ChatCompletions => "/api/v1/chat/completions",
            Self::Responses => "/v1/responses",
            Self::VideoGenerations => "/v1/video/generations",
            Self::Videos => "/v1/videos",
            Self::AudioSpeech => "/v1/audio/speech",
            Self::NativeSpeech => "/native/v1/audio/tts",
            Self::MultimodalAudio => "/v1/multimodal/audio/generations",
        }
    }

    /// The endpoint of which this one is an alias; the endpoint itself if it is not an alias.
    pub fn canonical(self) -> Self {
        match self {
            Self::Videos => Self::VideoGenerations,
            Self::NativeSpeech | Self::MultimodalAudio => Self::AudioSpeech,
            other => other,
        }
    }

    /// Other endpoints for the same models.
    pub fn aliases(self) -> &'static [Self] {
        match self {
            Self::VideoGenerations => &[Self::Videos],
            Self::AudioSpeech => &[Self::NativeSpeech, Self::MultimodalAudio],
            _ => &[],
        }
    }

    /// The layout of the endpoint's request bodies.
    pub fn request_layout(self) -> RequestLayout {
        match self {
            Self::NativeSpeech => RequestLayout::NativeSpeech,
            Self::MultimodalAudio => RequestLayout::MultimodalSpeech,
            _ => RequestLayout::Standard,
        }
    }

    /// Whether the endpoint serves chat models.
    pub fn is_chat(self) -> bool {
        matches!(self, Self::ChatCompletions | Self::Responses)
    }

    /// The kind of the endpoint's models, for error messages: `image`, `video`, …
    pub fn noun(self) -> &'static str {
        match self {
            Self::ImageGenerations => "image",
            Self::ImageEdits => "image editing",
            Self::ChatCompletions | Self::Responses => "chat",
            Self::VideoGenerations | Self::Videos => "video",
            Self::AudioSpeech | Self::NativeSpeech | Self::MultimodalAudio => "speech",
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "POST {}", self.path())
    }
}
