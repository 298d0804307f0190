//! The registry of chat formats.

use crate::chat_completions::ChatCompletions;
use crate::format::Format;
use crate::generate_content::GenerateContent;
use crate::messages::Messages;
use crate::responses::Responses;

/// Every chat format: OpenAI's chat completions and responses, Anthropic's messages, Google's generateContent.
pub static FORMATS: &[&dyn Format] = &[&ChatCompletions, &Responses, &Messages, &GenerateContent];

/// The format whose [`Format::name`] is `name`.
pub fn by_name(name: &str) -> Option<&'static dyn Format> {
    FORMATS.iter().copied().find(|format| format.name() == name)
}
