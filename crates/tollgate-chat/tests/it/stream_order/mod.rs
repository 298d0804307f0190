//! Independent checks that a written stream is one that the official SDKs of its format accept, whatever events it was written from.

pub(crate) mod chat_completions;
pub(crate) mod generate_content;
pub(crate) mod messages;
pub(crate) mod responses;

use serde_json::Value;

/// Checks a complete stream of `format`, written with `options`. `failed`: it was ended by an error.
pub(crate) fn check(format: &str, stream: &[u8], options: &Value, failed: bool) {
    match format {
        "chat-completions" => {
            chat_completions::check(stream, options["include_usage"] == true, failed)
        }
        "messages" => messages::check(stream, failed),
        "responses" => responses::check(stream, failed),
        "generate-content" => {
            generate_content::check(stream, options["json_array"] == true, failed)
        }
        other => panic!("no check of a stream of {other}"),
    }
}
