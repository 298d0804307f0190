//! Turns and their parts, from the hub to blocks.

use serde_json::{Map, Value, json};

use super::conversation::{Piece, Said, arrange, wire_id};
use super::draft::Draft;
use super::read::is_among_messages;
use super::sources::{document, image_source};
use crate::error::InvalidRequest;
use crate::hub::{Citation, Opaque, Part, PartKind, RequestField, Role, Turn};
use crate::messages::blocks::{input_of, write_own_citation};
use crate::messages::fields::put_back;
use crate::messages::wire::{NAME, VENDOR};

/// What stands in for the result of a call that nobody gave one.
const NO_RESULT: &str = "No result was given for this call.";

/// The conversation as written.
pub(super) struct Conversation {
    pub(super) system: Option<Value>,
    pub(super) messages: Vec<Value>,
    /// Whether the model is to go on with a turn that it has begun.
    pub(super) is_prefilled: bool,
    /// Whether a call of the turn in progress stands without the thinking that led to it.
    pub(super) lacks_thinking: bool,
}

/// Writes system text and turns. `line` is an instruction of ours behind the system text.
pub(super) fn write(
    draft: &mut Draft<'_>,
    line: Option<&str>,
) -> Result<Conversation, InvalidRequest> {
    let turns: Vec<(usize, &Turn)> = draft.request.turns.iter().enumerate().collect();
    let (system, said): (Vec<_>, Vec<_>) = turns
        .into_iter()
        .partition(|(_, turn)| turn.role == Role::System && !is_among_messages(turn));
    let system = write_system(draft, &system, line)?;
    let mut turns = Vec::with_capacity(said.len());
    for (at, turn) in said {
        turns.push(pieces_of(draft, at, turn)?);
    }
    turns.retain(|turn| !turn.pieces.is_empty());
    if turns.is_empty() && system.is_none() {
        let turns = draft.request.client_field_name(RequestField::Turns);
        return Err(InvalidRequest::new(
            turns,
            "must hold at least one turn with content",
        ));
    }
    // The vendor's own clients may leave turns apart and answer for their order themselves.
    let turns = match draft.is_native {
        true if !turns.is_empty() => turns,
        _ => arrange(turns),
    };
    let is_prefilled = turns
        .last()
        .is_some_and(|turn| turn.role == Role::Assistant);
    let lacks_thinking = lacks_thinking(&turns);
    let last = turns.len().saturating_sub(1);
    let mut messages = Vec::with_capacity(turns.len());
    for (at, turn) in turns.iter().enumerate() {
        messages.extend(write_turn(draft, turn, is_prefilled && at == last)?);
    }
    Ok(Conversation {
        system,
        messages,
        is_prefilled,
        lacks_thinking,
    })
}

/// Turns since the user last spoke are in progress: those with calls must begin with thinking, if the model thinks.
fn lacks_thinking(turns: &[Said<'_>]) -> bool {
    let is_speech = |turn: &&Said<'_>| {
        let answers = |piece: &Piece<'_>| matches!(piece, Piece::Result(..) | Piece::Missing(_));
        turn.role == Role::User && !turn.pieces.iter().any(answers)
    };
    let in_progress = turns.iter().rev().take_while(|turn| !is_speech(turn));
    in_progress
        .filter(|turn| turn.pieces.iter().any(|p| matches!(p, Piece::Call(..))))
        .any(|turn| {
            !matches!(turn.pieces.first(), Some(Piece::Plain(part, _))
                if matches!(part.kind, PartKind::Reasoning { .. } | PartKind::RedactedReasoning(_)))
        })
}

fn write_system(
    draft: &mut Draft<'_>,
    turns: &[(usize, &Turn)],
    line: Option<&str>,
) -> Result<Option<Value>, InvalidRequest> {
    let mut blocks = Vec::new();
    for (at, turn) in turns {
        draft.lose_own(&turn.extra);
        for (index, part) in turn.parts.iter().enumerate() {
            let PartKind::Text { text, .. } = &part.kind else {
                let why = "must be text: system text has nothing else in this model's format";
                return Err(draft.bad((*at, index), why));
            };
            if draft.is_native || !text.trim().is_empty() {
                draft.lose_own(&part.extra);
                blocks.push(draft.text_block(text, &[], part));
            }
        }
    }
    if let (
        None,
        [
            (
                _,
                Turn {
                    plain: true, parts, ..
                },
            ),
        ],
        [_],
    ) = (line, turns, &blocks[..])
        && let [
            Part {
                kind: PartKind::Text { text, .. },
                cache_ttl: None,
                ..
            },
        ] = &parts[..]
    {
        return Ok(Some(json!(text)));
    }
    blocks.extend(line.map(|line| json!({"type": "text", "text": line})));
    Ok((!blocks.is_empty()).then_some(Value::Array(blocks)))
}

/// The pieces of a turn that the vendor takes at all.
fn pieces_of<'a>(
    draft: &mut Draft<'a>,
    at: usize,
    turn: &'a Turn,
) -> Result<Said<'a>, InvalidRequest> {
    draft.lose_own(&turn.extra);
    if turn.name.is_some() {
        let turns = draft.request.client_field_name(RequestField::Turns);
        draft.lose(format!("{turns}[{at}].name"));
    }
    let mut pieces = Vec::with_capacity(turn.parts.len());
    for (index, part) in turn.parts.iter().enumerate() {
        let place = (at, index);
        match &part.kind {
            PartKind::Text { text, .. } | PartKind::Refusal(text) => {
                // Blank text is refused, and a sentence in its place would be answered.
                if draft.is_native || !text.trim().is_empty() {
                    pieces.push(Piece::Plain(part, place));
                }
            }
            PartKind::Reasoning { signature, .. } => match signature {
                Some(Opaque { vendor, .. }) if vendor == VENDOR => {
                    pieces.push(Piece::Plain(part, place));
                }
                _ => draft.lose_field(RequestField::PastReasoning),
            },
            PartKind::RedactedReasoning(data) if data.vendor != VENDOR => {
                draft.lose_field(RequestField::PastReasoning);
            }
            PartKind::FormatSpecific { format, value } if *format != NAME => {
                // A record of what the vendor's own tools did can go; what stands for a piece of the conversation cannot.
                let stands_for_more = value["type"] == "item_reference";
                if turn.role != Role::Assistant || stands_for_more {
                    return Err(draft.bad(place, "is of a type that only its own vendor can read"));
                }
                let path = draft.request.client_part_path(at, index);
                draft.lose(path);
            }
            PartKind::ToolCall { id, .. } => pieces.push(Piece::Call(part, wire_id(id))),
            PartKind::ToolResult { id, .. } => {
                let wire = draft.is_native.then(|| wire_id(id));
                pieces.push(Piece::Result(part, place, wire));
            }
            _ => pieces.push(Piece::Plain(part, place)),
        }
    }
    Ok(Said {
        role: turn.role,
        pieces,
        plain: turn.plain,
        turn: Some(at),
    })
}

fn write_turn(
    draft: &mut Draft<'_>,
    turn: &Said<'_>,
    is_prefill: bool,
) -> Result<Option<Value>, InvalidRequest> {
    let mut blocks = Vec::with_capacity(turn.pieces.len());
    for piece in &turn.pieces {
        blocks.push(write_piece(draft, piece)?);
    }
    if is_prefill && !draft.is_native {
        trim_end(&mut blocks);
    }
    if blocks.is_empty() {
        return Ok(None);
    }
    let content = match &blocks[..] {
        [Value::Object(block)] if turn.plain && block.len() == 2 && block["type"] == "text" => {
            block["text"].clone()
        }
        _ => Value::Array(blocks),
    };
    let role = match turn.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
    };
    let mut out = Map::new();
    out.insert("role".to_owned(), json!(role));
    out.insert("content".to_owned(), content);
    if let Some(at) = turn.turn {
        put_back(&draft.request.turns[at].extra, &mut out);
    }
    Ok(Some(Value::Object(out)))
}

/// A turn that the model is to go on with must not end in white space.
fn trim_end(blocks: &mut Vec<Value>) {
    if let Some(Value::String(text)) = blocks.last_mut().and_then(|block| block.get_mut("text")) {
        text.truncate(text.trim_end().len());
        if text.is_empty() {
            blocks.pop();
        }
    }
}

fn write_piece(draft: &mut Draft<'_>, piece: &Piece<'_>) -> Result<Value, InvalidRequest> {
    match piece {
        Piece::Text(text) => Ok(json!({"type": "text", "text": text})),
        Piece::Missing(id) => Ok(json!({
            "type": "tool_result", "tool_use_id": id, "content": NO_RESULT, "is_error": true,
        })),
        Piece::Call(part, id) => Ok(write_call(draft, part, id)),
        Piece::Result(part, place, id) => write_result(draft, part, *place, id.as_deref()),
        Piece::Plain(part, place) => write_part(draft, part, *place),
    }
}

fn write_call(draft: &mut Draft<'_>, part: &Part, id: &str) -> Value {
    let PartKind::ToolCall {
        name,
        arguments,
        custom,
        ..
    } = &part.kind
    else {
        return Value::Null;
    };
    let name = draft.names.upstream_name(name).to_owned();
    let block = json!({
        "type": "tool_use", "id": id, "name": name, "input": input_of(arguments, *custom),
    });
    draft.finished(block, part)
}

fn write_result(
    draft: &mut Draft<'_>,
    part: &Part,
    place: (usize, usize),
    wire: Option<&str>,
) -> Result<Value, InvalidRequest> {
    let PartKind::ToolResult {
        id,
        content,
        plain,
        is_error,
        ..
    } = &part.kind
    else {
        return Ok(Value::Null);
    };
    let Some(wire) = wire else {
        // A result of no call: what it says is kept as what the user says.
        let texts = content.iter().filter_map(|part| match &part.kind {
            PartKind::Text { text, .. } => Some(text.as_str()),
            _ => None,
        });
        let text: String = texts.collect::<Vec<_>>().join("\n");
        return Ok(json!({"type": "text", "text": format!("Result of tool call {id}: {text}")}));
    };
    let mut block = json!({"type": "tool_result", "tool_use_id": wire});
    let blank =
        |part: &Part| matches!(&part.kind, PartKind::Text { text, .. } if text.trim().is_empty());
    let mut blocks = Vec::with_capacity(content.len());
    let keeps_blank = *plain || draft.is_native;
    for part in content.iter().filter(|part| keeps_blank || !blank(part)) {
        blocks.push(write_part(draft, part, place)?);
    }
    match &blocks[..] {
        [] if *plain => block["content"] = json!(""),
        [] => {}
        [only] if *plain && only["type"] == "text" => block["content"] = only["text"].clone(),
        _ => block["content"] = Value::Array(blocks),
    }
    if *is_error {
        block["is_error"] = json!(true);
    }
    Ok(draft.finished(block, part))
}

fn write_part(
    draft: &mut Draft<'_>,
    part: &Part,
    place: (usize, usize),
) -> Result<Value, InvalidRequest> {
    let block = match &part.kind {
        PartKind::Text {
            text, citations, ..
        } => {
            draft.lose_own(&part.extra);
            return Ok(draft.text_block(text, citations, part));
        }
        PartKind::Refusal(text) => json!({"type": "text", "text": text}),
        PartKind::Image { source, detail } => {
            if detail.as_deref().is_some_and(|detail| detail != "auto") {
                draft.lose("detail");
            }
            json!({"type": "image", "source": image_source(draft, source, place)?})
        }
        PartKind::File { source, name } => {
            let mut block = document(draft, source, place)?;
            if let Some(name) = name.as_ref().filter(|name| !name.is_empty()) {
                block["title"] = json!(name);
            }
            block
        }
        PartKind::Reasoning {
            text, signature, ..
        } => {
            let signature = signature.as_ref().map_or("", |signature| &signature.data);
            json!({"type": "thinking", "thinking": text, "signature": signature})
        }
        PartKind::RedactedReasoning(data) => {
            json!({"type": "redacted_thinking", "data": data.data})
        }
        PartKind::FormatSpecific { format, value } if *format == NAME => return Ok(value.clone()),
        PartKind::Audio { .. } => {
            return Err(draft.bad(place, "is sound, which this model does not take"));
        }
        PartKind::Video { .. } => {
            return Err(draft.bad(place, "is a film, which this model does not take"));
        }
        PartKind::FormatSpecific { .. }
        | PartKind::ToolCall { .. }
        | PartKind::ToolResult { .. } => {
            return Err(draft.bad(place, "is of a type that cannot stand here"));
        }
    };
    Ok(draft.finished(block, part))
}

impl Draft<'_> {
    /// A text block with its citations, marker and own members.
    fn text_block(&mut self, text: &str, citations: &[Citation], part: &Part) -> Value {
        let mut block = json!({"type": "text", "text": text});
        let written: Vec<Value> = citations.iter().filter_map(write_own_citation).collect();
        if written.len() < citations.len() {
            self.lose_field(RequestField::Citations);
        }
        if !written.is_empty() {
            block["citations"] = Value::Array(written);
        }
        self.finished(block, part)
    }

    /// A block with the marker and the own members of its part.
    fn finished(&mut self, mut block: Value, part: &Part) -> Value {
        let may_be_marked = !matches!(
            part.kind,
            PartKind::Reasoning { .. } | PartKind::RedactedReasoning(_)
        );
        if let Some(marker) = self.marker(part.cache_ttl.as_deref().filter(|_| may_be_marked)) {
            block["cache_control"] = marker;
        }
        self.lose_own(&part.extra);
        if let Value::Object(members) = &mut block {
            put_back(&part.extra, members);
        }
        block
    }
}
