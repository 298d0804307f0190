//! The contents: parts that hold one thing each, calls and responses in pairs, signatures.

use serde_json::Value;

use super::{BYPASS, SIGNATURE, SPEC, is_third};
use super::{invalid, violation};
use crate::chat_output::ChatPrompt;
use crate::encoding::{self, Attachment};
use crate::rejection::{Checked, OrRejected, Rejection};
use crate::tables::schema::{field, list_of, text_of};

/// The media types that are taken, by what they begin with.
const MEDIA: &[&str] = &[
    "image/png",
    "image/jpeg",
    "image/webp",
    "image/heic",
    "image/heif",
    "audio/",
    "video/",
    "application/pdf",
    "text/",
];

/// Checks the contents, and finds what the user said last.
pub(super) fn read(body: &Value, model: &str, prompt: &mut ChatPrompt) -> Checked {
    let contents = list_of(body, "contents");
    for (at, content) in contents.iter().enumerate() {
        if !matches!(role(content), "user" | "model") {
            let message = "Please use a valid role: user, model.";
            return Err(Box::new(invalid("role", message)));
        }
        let parts = list_of(content, "parts");
        if parts.is_empty() {
            let message = format!(
                "* GenerateContentRequest.contents[{at}].parts: contents.parts must not \
                    be empty.\n"
            );
            return Err(Box::new(invalid("empty-parts", message)));
        }
        let mut found = Content::default();
        for (index, part) in parts.iter().enumerate() {
            let place = format!("contents[{at}].parts[{index}]");
            read_part(part, model, &place, &mut found)?;
        }
        prompt.results = None;
        if role(content) == "user" {
            prompt.results = (!found.results.is_empty()).then(|| found.results.join(" "));
            if found.results.is_empty() || !found.texts.is_empty() {
                prompt.text = found.texts.join(" ");
                prompt.media = found.media;
            }
        }
    }
    order(contents)?;
    if is_third(model) {
        return signatures(contents);
    }
    Ok(())
}

#[derive(Default)]
struct Content {
    texts: Vec<String>,
    media: Vec<Attachment>,
    results: Vec<String>,
}

fn role(content: &Value) -> &str {
    text_of(content, "role").unwrap_or("user")
}

fn calls(content: &Value) -> Vec<&Value> {
    let parts = list_of(content, "parts").iter();
    parts
        .filter_map(|part| field(part, "functionCall"))
        .collect()
}

fn responses(content: &Value) -> Vec<&Value> {
    let parts = list_of(content, "parts").iter();
    parts
        .filter_map(|part| field(part, "functionResponse"))
        .collect()
}

fn read_part(part: &Value, model: &str, place: &str, found: &mut Content) -> Checked {
    let data = SPEC.tables["data"].as_array().into_iter().flatten();
    let data = data.filter_map(Value::as_str);
    let held = data.filter(|name| field(part, name).is_some()).count();
    if held == 0 && field(part, "thoughtSignature").is_none() {
        let message = format!(
            "* GenerateContentRequest.{place}.data: required oneof field 'data' must have one \
             initialized field\n"
        );
        return Err(Box::new(invalid("empty-part", message)));
    }
    if held > 1 {
        let what =
            format!("Invalid value at '{place}' (oneof), oneof field 'data' is already set.");
        return Err(Box::new(violation("two-in-a-part", place, &what)));
    }
    if let Some(signature) = text_of(part, "thoughtSignature") {
        known(signature, place)?;
    }
    let thought = field(part, "thought") == Some(&Value::Bool(true));
    if let Some(text) = text_of(part, "text").filter(|_| !thought) {
        found.texts.push(text.to_owned());
    }
    if let Some(blob) = field(part, "inlineData") {
        found.media.push(inline(blob, place)?);
    }
    if let Some(file) = field(part, "fileData") {
        found.media.push(by_address(file, model)?);
    }
    if let Some(response) = field(part, "functionResponse") {
        let name = text_of(response, "name").unwrap_or_default();
        if name.is_empty() {
            let message = format!(
                "* GenerateContentRequest.{place}.function_response.name: Name cannot be empty.\n"
            );
            return Err(Box::new(invalid("empty-name", message)));
        }
        let value = &response["response"];
        let text = text_of(value, "output").map(str::to_owned);
        found
            .results
            .push(text.unwrap_or_else(|| value.to_string()));
        for inner in list_of(response, "parts") {
            if let Some(blob) = field(inner, "inlineData") {
                found.results.push(inline(blob, place)?.acknowledge());
            }
        }
    }
    Ok(())
}

fn inline(blob: &Value, place: &str) -> OrRejected<Attachment> {
    let get = |name: &str| text_of(blob, name).unwrap_or_default();
    let what = get("mimeType");
    if !MEDIA.iter().any(|known| what.starts_with(known)) {
        let message = format!("Unsupported MIME type: {what}");
        return Err(Box::new(invalid("media-type", message)));
    }
    let Some(bytes) = encoding::decode_any(get("data")) else {
        let what = format!(
            "Invalid value at '{place}.inline_data.data' (TYPE_BYTES), Base64 decoding failed"
        );
        return Err(Box::new(violation("base64", place, &what)));
    };
    let image = what.starts_with("image/");
    let readable =
        encoding::sniff(&bytes).is_some_and(|s| s.starts_with("image/") && s != "image/gif");
    if image && !readable {
        let message = "Unable to process input image. Please retry or report in \
            https://developers.generativeai.google/guide/troubleshooting";
        return Err(Box::new(invalid("unreadable", message)));
    }
    Ok(Attachment {
        what: what.to_owned(),
        bytes: Some(bytes.len()),
    })
}

/// Files of the provider's own and videos; addresses of the web only on newer models.
fn by_address(file: &Value, model: &str) -> OrRejected<Attachment> {
    let uri = text_of(file, "fileUri").unwrap_or_default();
    let own = ["https://generativelanguage.googleapis.com/", "gs://"];
    let video = [
        "https://www.youtube.com/",
        "https://youtu.be/",
        "https://youtube.com/",
    ];
    let always = own.iter().chain(&video).any(|begin| uri.starts_with(begin));
    if always || (is_third(model) && encoding::is_web(uri)) {
        let what = format!("file {uri}");
        return Ok(Attachment { what, bytes: None });
    }
    let message = format!("Invalid or unsupported file uri: {uri}");
    Err(Box::new(invalid("file-uri", message)))
}

/// Calls follow a user's turn, and are followed by as many responses.
fn order(contents: &[Value]) -> Checked {
    for (at, content) in contents.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| &contents[before]);
        let called = calls(content);
        let answered = responses(content);
        if (!called.is_empty() && role(content) != "model")
            || (!answered.is_empty() && role(content) != "user")
        {
            let message = "Please ensure that function calls stand in turns of the model and \
                function responses in turns of the user.";
            return Err(Box::new(invalid("call-role", message)));
        }
        if !called.is_empty() && before.is_none_or(|before| role(before) != "user") {
            let message = "Please ensure that function call turn comes immediately after a user \
                turn or after a function response turn.";
            return Err(Box::new(invalid("call-turn", message)));
        }
        let expected = before.map_or(Vec::new(), calls);
        if expected.is_empty() && !answered.is_empty() {
            let message = "Please ensure that function response turn comes immediately after a \
                function call turn.";
            return Err(Box::new(invalid("orphan-result", message)));
        }
        if expected.len() != answered.len() {
            return Err(unequal());
        }
        let mut wanted: Vec<&str> = names(&expected);
        let mut given: Vec<&str> = names(&answered);
        wanted.sort_unstable();
        given.sort_unstable();
        if wanted != given {
            let message = "Please ensure that the names of the function response parts are those \
                of the function call parts of the function call turn.";
            return Err(Box::new(invalid("result-name", message)));
        }
    }
    let open = contents.last().is_some_and(|last| !calls(last).is_empty());
    if open { Err(unequal()) } else { Ok(()) }
}

fn names<'a>(functions: &[&'a Value]) -> Vec<&'a str> {
    functions
        .iter()
        .filter_map(|f| text_of(f, "name"))
        .collect()
}

fn unequal() -> Box<Rejection> {
    let message = "Please ensure that the number of function response parts is equal to the number \
        of function call parts of the function call turn.";
    Box::new(invalid("missing-result", message))
}

/// The signature is one that this fake made, or the documented bypass.
fn known(signature: &str, place: &str) -> Checked {
    if signature == BYPASS {
        return Ok(());
    }
    let Some(bytes) = encoding::decode_any(signature) else {
        let what = format!(
            "Invalid value at '{place}.thought_signature' (TYPE_BYTES), Base64 decoding failed"
        );
        return Err(Box::new(violation("base64", place, &what)));
    };
    if bytes.starts_with(SIGNATURE.as_bytes()) {
        return Ok(());
    }
    Err(Box::new(invalid(
        "signature",
        "Corrupted thought signature.",
    )))
}

/// The first call of every step of the current turn carries its signature.
fn signatures(contents: &[Value]) -> Checked {
    let last = contents
        .iter()
        .rposition(|content| role(content) == "user" && responses(content).is_empty());
    let current = last.map_or(0, |at| at + 1);
    for (at, content) in contents.iter().enumerate().skip(current) {
        let parts = list_of(content, "parts").iter();
        let first = parts
            .into_iter()
            .find(|part| field(part, "functionCall").is_some());
        let Some(part) = first.filter(|part| text_of(part, "thoughtSignature").is_none()) else {
            continue;
        };
        let name = field(part, "functionCall").and_then(|call| text_of(call, "name"));
        let name = name.unwrap_or_default();
        let message = format!(
            "Function call is missing a thought_signature in functionCall parts. This is required \
             for tools to work correctly, and missing thought_signature may lead to degraded model \
             performance. Additional data, function call `default_api:{name}` , position {at}."
        );
        return Err(Box::new(invalid("missing-signature", message)));
    }
    Ok(())
}
