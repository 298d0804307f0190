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
    /// Speech.
    AudioSpeech,
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
            Self::AudioSpeech => "/v1/audio/speech",
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
            Self::VideoGenerations => "video",
            Self::AudioSpeech => "speech",
        }
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "POST {}", self.path())
    }
}
