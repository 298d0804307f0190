//! Reads a client's request.

use serde_json::{Map, Value, json};

use super::{thinking, tools};
use crate::error::InvalidRequest;
use crate::hub::{ExtraFields, OutputFormat, Part, PartKind, Request, Role, Turn};
use crate::messages::blocks::content;
use crate::messages::fields::{Fields, Path};
use crate::messages::glance::glance;
use crate::messages::wire::NAME;

/// The note on a system turn that stands among the messages, not before them.
pub(super) const AMONG_MESSAGES: &str = ".among_messages";

/// Reads a request; see [`crate::Format::read_request`].
pub(in crate::messages) fn read(body: &[u8]) -> Result<Request, InvalidRequest> {
    let seen = glance(body)?;
    let value: Value = serde_json::from_slice(body)
        .map_err(|error| InvalidRequest::body(format!("the body must be valid JSON: {error}")))?;
    let mut fields = Fields::of(value, &Path::Root)?;
    let mut turns = Vec::from_iter(system(&mut fields)?);
    messages(&mut fields, &mut turns)?;
    let (tool_choice, parallel_tools) = tools::read_choice(&mut fields)?;
    let mut output_config = take_object(&mut fields, "output_config");
    let output = output(&mut fields, &mut output_config)?;
    let reasoning = thinking::read(take_object(&mut fields, "thinking"), &mut output_config);
    let mut metadata = take_object(&mut fields, "metadata");
    metadata.shift_remove("user_id");
    for (name, left) in [("metadata", metadata), ("output_config", output_config)] {
        if !left.is_empty() {
            fields.keep(name, Value::Object(left));
        }
    }
    let stop = fields.list("stop_sequences")?.unwrap_or_default();
    // The scalars' types and ranges have been checked by the glance.
    let mut number = |name| fields.take(name).and_then(|value| value.as_f64());
    let (temperature, top_p) = (number("temperature"), number("top_p"));
    let top_k = fields.take("top_k").and_then(|value| value.as_u64());
    for known in ["model", "max_tokens", "stream"] {
        fields.take(known);
    }
    Ok(Request {
        client_format: NAME,
        model: seen.model.unwrap_or_default(),
        turns,
        max_tokens: seen.max_tokens,
        temperature,
        top_p,
        top_k,
        stop: stop
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect(),
        output,
        tools: tools::read(&mut fields)?,
        tool_choice,
        parallel_tools,
        reasoning,
        user: seen.user,
        service_tier: fields.text("service_tier")?,
        stream: seen.stream,
        extra: fields.rest(),
        ..Request::default()
    })
}

/// A member that is an object, empty where it is absent.
fn take_object(fields: &mut Fields<'_>, name: &str) -> Map<String, Value> {
    match fields.take(name) {
        Some(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

fn system(fields: &mut Fields<'_>) -> Result<Option<Turn>, InvalidRequest> {
    let at = Path::Member(&Path::Root, "system");
    let Some(value) = fields.take("system") else {
        return Ok(None);
    };
    only_text(&value, &at)?;
    let (parts, plain) = content(value, &at)?;
    let turn = Turn {
        plain,
        ..Turn::new(Role::System, parts)
    };
    Ok((!turn.parts.is_empty()).then_some(turn))
}

/// System text is text.
fn only_text(value: &Value, at: &Path<'_>) -> Result<(), InvalidRequest> {
    for (index, block) in value.as_array().into_iter().flatten().enumerate() {
        if block.get("type").is_none_or(|kind| kind != "text") {
            let item = Path::Item(at, index);
            return Err(Path::Member(&item, "type").bad("must be `text`"));
        }
    }
    Ok(())
}

fn messages(fields: &mut Fields<'_>, turns: &mut Vec<Turn>) -> Result<(), InvalidRequest> {
    let list = Path::Member(&Path::Root, "messages");
    let before = turns.len();
    for (index, message) in fields
        .list("messages")?
        .unwrap_or_default()
        .into_iter()
        .enumerate()
    {
        turns.push(message_turn(message, &Path::Item(&list, index))?);
    }
    let is_blank =
        |part: &Part| matches!(&part.kind, PartKind::Text { text, .. } if text.trim().is_empty());
    if turns[before..]
        .iter()
        .all(|turn| turn.parts.iter().all(is_blank))
    {
        return Err(list.bad("must not all be empty"));
    }
    Ok(())
}

fn message_turn(message: Value, at: &Path<'_>) -> Result<Turn, InvalidRequest> {
    let mut fields = Fields::of(message, at)?;
    let role = match fields.needed_text("role")?.as_str() {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "system" => Role::System,
        _ => return Err(fields.bad("role", "must be `user`, `assistant` or `system`")),
    };
    let at = Path::Member(at, "content");
    let value = fields
        .take("content")
        .ok_or_else(|| at.bad("is required"))?;
    blocks_fit(role, &value, &at)?;
    let (parts, plain) = content(value, &at)?;
    if role == Role::System {
        fields.keep(AMONG_MESSAGES, json!(true));
    }
    Ok(Turn {
        role,
        parts,
        plain,
        name: None,
        extra: fields.rest(),
    })
}

/// Calls and thinking are the model's, results the user's; system turns have text.
fn blocks_fit(role: Role, content: &Value, at: &Path<'_>) -> Result<(), InvalidRequest> {
    if role == Role::System {
        return only_text(content, at);
    }
    let (wrong, owner): (&[&str], _) = match role {
        Role::Assistant => (&["tool_result"], "user"),
        _ => (&["tool_use", "thinking", "redacted_thinking"], "assistant"),
    };
    for (index, block) in content.as_array().into_iter().flatten().enumerate() {
        let kind = block
            .get("type")
            .and_then(Value::as_str)
            .unwrap_or_default();
        if wrong.contains(&kind) {
            let why = format!("must not be `{kind}` here: it stands in {owner} turns only");
            return Err(Path::Member(&Path::Item(at, index), "type").bad(why));
        }
    }
    Ok(())
}

/// `output_config.format`, or `output_format` as it was once called.
fn output(
    fields: &mut Fields<'_>,
    output_config: &mut Map<String, Value>,
) -> Result<Option<OutputFormat>, InvalidRequest> {
    let config = Path::Member(&Path::Root, "output_config");
    let (now, once) = (
        Path::Member(&config, "format"),
        Path::Member(&Path::Root, "output_format"),
    );
    let (value, at) = match output_config.shift_remove("format") {
        Some(value) => (Some(value), now),
        None => (fields.take("output_format"), once),
    };
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let mut format = Fields::of(value, &at)?;
    if format.text("type")?.as_deref() != Some("json_schema") {
        return Err(format.bad("type", "must be `json_schema`"));
    }
    match format.take("schema") {
        Some(schema @ Value::Object(_)) => Ok(Some(OutputFormat::Schema {
            name: format.text("name")?,
            description: None,
            schema,
            strict: None,
        })),
        _ => Err(format.bad("schema", "is required and must be a JSON schema")),
    }
}

/// Whether `turn` is a system turn among the messages of a client of this format.
pub(super) fn is_among_messages(turn: &Turn) -> bool {
    has_note(&turn.extra, AMONG_MESSAGES)
}

/// Whether `own` has this note of ours.
pub(super) fn has_note(extra: &ExtraFields, note: &str) -> bool {
    extra
        .for_format(NAME)
        .is_some_and(|members| members.contains_key(note))
}
