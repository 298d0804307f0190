//! The endpoints that models belong to, as error messages and documents name them.

use std::fmt;

/// Where a model is asked (SPEC.md › Endpoints). Displays as method and path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// Pictures from text, with or without references.
    ImageGenerations,
    /// Pictures changed.
    ImageEdits,
    /// Chat, the path that SPEC.md lists most chat models under.
    ChatCompletions,
    /// Chat models that SPEC.md lists only under the responses format.
    Responses,
    /// Video.
    VideoGenerations,
    /// Video, under the path of OpenAI's API.
    Videos,
    /// Speech.
    AudioSpeech,
    /// Speech, with a provider's own field names.
    NativeSpeech,
    /// Speech, as a task of a kind with its fields in `metadata`.
    MultimodalAudio,
}

/// How a request body is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RequestShape {
    /// As the family's section of SPEC.md has it.
    Usual,
    /// `{model_name, text, voice_id, voice_speed, voice_language}`.
    NativeSpeech,
    /// `{model, task_type: "tts", metadata: {text, voice_id, voice_language, voice_speed}}`.
    MultimodalSpeech,
}

impl RequestShape {
    /// The field that names the model.
    pub fn model_field(self) -> &'static str {
        match self {
            Self::Usual | Self::MultimodalSpeech => "model",
            Self::NativeSpeech => "model_name",
        }
    }
}

impl Endpoint {
    /// The path, such as `/v1/images/edits`. All are POST.
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

    /// The endpoint that its models belong to: itself, unless it is a further way in to another one.
    pub fn home(self) -> Self {
        match self {
            Self::Videos => Self::VideoGenerations,
            Self::NativeSpeech | Self::MultimodalAudio => Self::AudioSpeech,
            other => other,
        }
    }

    /// Further ways in to what this endpoint does.
    pub fn also(self) -> &'static [Self] {
        match self {
            Self::VideoGenerations => &[Self::Videos],
            Self::AudioSpeech => &[Self::NativeSpeech, Self::MultimodalAudio],
            _ => &[],
        }
    }

    /// How its request bodies are laid out.
    pub fn shape(self) -> RequestShape {
        match self {
            Self::NativeSpeech => RequestShape::NativeSpeech,
            Self::MultimodalAudio => RequestShape::MultimodalSpeech,
            _ => RequestShape::Usual,
        }
    }

    /// Whether its models chat.
    pub fn is_chat(self) -> bool {
        matches!(self, Self::ChatCompletions | Self::Responses)
    }

    /// What its models are, for a sentence: `image`, `video`, …
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
