//! Finds the endpoint of a path.

use tollgate_chat::generate_content::path::{self, Method};
use tollgate_media::Endpoint as TaskEndpoint;

use super::result::QuoteError;
use crate::chat::endpoint::{CHAT_PATHS, ChatOperation, ChatPath, Endpoint as ChatEndpoint};

/// The endpoints of tasks; one of them has a second path.
const TASK_PATHS: [TaskEndpoint; 7] = [
    TaskEndpoint::ImageGenerations,
    TaskEndpoint::ImageEdits,
    TaskEndpoint::VideoGenerations,
    TaskEndpoint::Videos,
    TaskEndpoint::AudioSpeech,
    TaskEndpoint::NativeSpeech,
    TaskEndpoint::MultimodalAudio,
];
const NATIVE_SPEECH_ALIAS: &str = "/kling/v1/audio/tts";
/// The parameter in paths that contain a model.
const MODEL_PARAMETER: &str = "{*named}";

/// An endpoint whose requests have a price.
pub enum QuotedEndpoint {
    /// Submits an image, video or speech task.
    Task(TaskEndpoint),
    /// A chat, and the model if the path contains it.
    Chat(ChatEndpoint, Option<String>),
}

impl QuotedEndpoint {
    /// The endpoint of a path.
    ///
    /// # Errors
    /// 400 if there is no such endpoint, or its requests cost nothing.
    pub fn from_path(path: &str) -> Result<Self, QuoteError> {
        let mut tasks = TASK_PATHS.into_iter();
        if let Some(endpoint) = tasks.find(|endpoint| endpoint.path() == path) {
            return Ok(Self::Task(endpoint));
        }
        if path == NATIVE_SPEECH_ALIAS {
            return Ok(Self::Task(TaskEndpoint::NativeSpeech));
        }
        let mut chats = CHAT_PATHS.iter();
        chats
            .find_map(|chat| match_chat(chat, path))
            .ok_or_else(unknown_endpoint)
    }
}

/// The chat endpoint if the path generates a chat response.
fn match_chat(chat: &ChatPath, path: &str) -> Option<QuotedEndpoint> {
    let model = match chat.operation {
        ChatOperation::ModelInBody if chat.path == path => None,
        ChatOperation::ModelInPath => {
            let named = path.strip_prefix(chat.path.strip_suffix(MODEL_PARAMETER)?)?;
            let call = path::parse_method_path(named).ok()?;
            (call.method != Method::Count).then_some(())?;
            Some(call.model)
        }
        ChatOperation::ModelInBody | ChatOperation::CountTokens => return None,
    };
    Some(QuotedEndpoint::Chat(chat.endpoint, model))
}

fn unknown_endpoint() -> QuoteError {
    let tasks = TASK_PATHS.into_iter().map(|endpoint| endpoint.path());
    let chats = CHAT_PATHS.iter().filter_map(|chat| match chat.operation {
        ChatOperation::ModelInBody => Some(chat.path.to_owned()),
        ChatOperation::ModelInPath => {
            Some(chat.path.replace(MODEL_PARAMETER, "MODEL:generateContent"))
        }
        ChatOperation::CountTokens => None,
    });
    let paths: Vec<String> = tasks.map(str::to_owned).chain(chats).collect();
    QuoteError::Field {
        field: "endpoint",
        message: format!("must be one of {}", paths.join(", ")),
    }
}
