//! The input items of a responses request: what each may hold, and calls and outputs in pairs.

use serde_json::Value;

use crate::chat_output::ChatPrompt;
use crate::encoding::Attachment;
use crate::openai::{SPEC, check, content, invalid, invalid_value, known_for, tools, unsupported};
use crate::rejection::{Checked, OrRejected};
use crate::tables::path::JsonPath;
use crate::tables::schema::{list_of, text_of};

/// What the encrypted content of this fake's reasoning begins with.
pub(super) const ENCRYPTED: &str = "enc_fake_";

/// Checks the items, and finds what was said last.
pub(super) fn read(
    items: &[Value],
    place: &JsonPath,
    stateful: bool,
    prompt: &mut ChatPrompt,
) -> Checked {
    let mut results = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let place = place.at(at);
        let kind = kind(item);
        if is_listed("other_items", kind) {
            continue;
        }
        fields(item, kind, &place)?;
        match kind {
            "message" => {
                let role = text_of(item, "role").unwrap_or_default();
                let (text, media) = parts(&item["content"], role == "assistant", &place)?;
                results.clear();
                if role == "user" {
                    prompt.text = text;
                    prompt.media = media;
                }
            }
            "function_call" => {
                results.clear();
                let name = text_of(item, "name").unwrap_or_default();
                tools::name(name, &place.field("name").write())?;
            }
            "function_call_output" | "custom_tool_call_output" => {
                results.push(output(&item["output"], &place)?);
            }
            "reasoning" => reasoning(item, items.get(at + 1), &place)?,
            _ => {}
        }
    }
    prompt.results = (!results.is_empty()).then(|| results.join(" "));
    if stateful {
        return Ok(());
    }
    paired(items)
}

/// The type of an item: one without a type is a message.
fn kind(item: &Value) -> &str {
    match text_of(item, "type") {
        Some(kind) => kind,
        None if item.get("role").is_none() && item.get("id").is_some() => "item_reference",
        None => "message",
    }
}

fn fields(item: &Value, kind: &str, place: &JsonPath) -> Checked {
    let items = SPEC.tables["items"].as_object();
    let Some(prefix) = items.and_then(|items| items.get(kind)?.as_str()) else {
        let known: Vec<&str> = items
            .into_iter()
            .flatten()
            .map(|(name, _)| name.as_str())
            .collect();
        return Err(unsupported(
            "item-type",
            &place.field("type").write(),
            kind,
            &known,
        ));
    };
    check(&format!("item_{kind}"), item, place)?;
    let id = text_of(item, "id").unwrap_or(prefix);
    if id.starts_with(prefix) {
        return Ok(());
    }
    let at = place.field("id").write();
    let message = format!("Invalid '{at}': '{id}'. Expected an ID that begins with '{prefix}'.");
    Err(Box::new(invalid_value("item-id", &at, message)))
}

/// The text and the media of a content.
fn parts(content: &Value, model: bool, place: &JsonPath) -> OrRejected<(String, Vec<Attachment>)> {
    if let Some(text) = content.as_str() {
        return Ok((text.to_owned(), Vec::new()));
    }
    let place = place.field("content");
    let mut texts = Vec::new();
    let mut media = Vec::new();
    for (at, part) in content.as_array().into_iter().flatten().enumerate() {
        let place = place.at(at);
        let kind = text_of(part, "type").unwrap_or_default();
        let known = known_for("item_parts", if model { "assistant" } else { "user" });
        if !known.contains(&kind) {
            return Err(unsupported(
                "part-type",
                &place.field("type").write(),
                kind,
                &known,
            ));
        }
        check(&format!("part_{kind}"), part, &place)?;
        match kind {
            "input_text" | "output_text" => texts.push(text_of(part, "text").unwrap_or_default()),
            "refusal" => {}
            _ => media.push(medium(part, kind, &place.write())?),
        }
    }
    Ok((texts.join(" "), media))
}

fn medium(part: &Value, kind: &str, param: &str) -> OrRejected<Attachment> {
    let get = |name: &str| text_of(part, name);
    if let Some(id) = get("file_id") {
        let what = format!("file {id}");
        return Ok(Attachment { what, bytes: None });
    }
    match (kind, get("image_url"), get("file_url"), get("file_data")) {
        ("input_image", Some(url), _, _) => content::image(url, &format!("{param}.image_url")),
        ("input_file", _, Some(url), _) => {
            let what = format!("file {url}");
            Ok(Attachment { what, bytes: None })
        }
        ("input_file", _, _, Some(data)) => content::file(data, param),
        _ => {
            let message = format!("Missing required parameter: '{param}'.");
            Err(Box::new(invalid_value("missing-field", param, message)))
        }
    }
}

/// The text of an output.
fn output(output: &Value, place: &JsonPath) -> OrRejected<String> {
    let (text, media) = parts(output, false, place)?;
    let media: String = media.iter().map(Attachment::acknowledge).collect();
    Ok(text + &media)
}

/// Reasoning is followed by what it led to, and its encrypted content is this fake's.
fn reasoning(item: &Value, next: Option<&Value>, place: &JsonPath) -> Checked {
    let id = text_of(item, "id").unwrap_or_default();
    if next.is_none_or(|next| text_of(next, "role") == Some("user")) {
        let message = format!(
            "Item '{id}' of type 'reasoning' was provided without its required following item."
        );
        return Err(Box::new(invalid("lone-reasoning", message).param("input")));
    }
    let foreign = text_of(item, "encrypted_content").is_some_and(|c| !c.starts_with(ENCRYPTED));
    if foreign {
        let at = place.write();
        let message = format!(
            "The encrypted content for item {id} could not be verified. Reason: Encrypted content \
             could not be decrypted or parsed."
        );
        let rejection = invalid("encrypted-content", message).code("invalid_encrypted_content");
        return Err(Box::new(rejection.param(at)));
    }
    Ok(())
}

/// Every call has an output further on, every output a call before it.
fn paired(items: &[Value]) -> Checked {
    let mut called: Vec<&str> = Vec::new();
    let mut open: Vec<&str> = Vec::new();
    for item in items {
        let id = text_of(item, "call_id").unwrap_or_default();
        match kind(item) {
            "function_call" | "custom_tool_call" => {
                if called.contains(&id) {
                    let message = format!("Duplicate function call with call_id {id}.");
                    return Err(Box::new(invalid("duplicate-id", message).param("input")));
                }
                called.push(id);
                open.push(id);
            }
            "function_call_output" | "custom_tool_call_output" => {
                let Some(at) = open.iter().position(|known| *known == id) else {
                    let message =
                        format!("No tool call found for function call output with call_id {id}.");
                    return Err(Box::new(invalid("orphan-result", message).param("input")));
                };
                open.remove(at);
            }
            _ => {}
        }
    }
    let Some(id) = open.first() else {
        return Ok(());
    };
    let message = format!("No tool output found for function call {id}.");
    Err(Box::new(invalid("missing-result", message).param("input")))
}

/// Whether a list of the tables has this name.
pub(super) fn is_listed(table: &str, name: &str) -> bool {
    SPEC.tables[table]
        .as_array()
        .is_some_and(|list| list.iter().any(|known| known == name))
}

/// Whether the items point into state that the provider keeps.
pub(super) fn refers(items: &[Value]) -> bool {
    items.iter().any(|item| kind(item) == "item_reference")
}

/// The input as items; a text is one message.
pub(super) fn of(body: &Value) -> Vec<Value> {
    match body.get("input") {
        Some(Value::String(text)) => vec![serde_json::json!({"role": "user", "content": text})],
        _ => list_of(body, "input").to_vec(),
    }
}
