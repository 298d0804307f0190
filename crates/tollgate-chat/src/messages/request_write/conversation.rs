//! Writes the conversation: `system` and `messages`.

use serde_json::{Map, Value, json};

use super::parts::write_piece;
use super::turn_order::{OutgoingTurn, Piece, order_turns};
use super::writer::RequestWriter;
use crate::error::InvalidRequest;
use crate::hub::{Opaque, Part, PartKind, RequestField, Role, Turn, is_essential_item};
use crate::messages::constants::{NAME, VENDOR};
use crate::messages::fields::write_extra_fields;
use crate::messages::ids::sanitize_call_id;
use crate::messages::notes::is_among_messages;

/// The written conversation.
pub(crate) struct Conversation {
    pub(crate) system: Option<Value>,
    pub(crate) messages: Vec<Value>,
    /// Whether the last turn is the beginning of the model's response.
    pub(crate) is_prefilled: bool,
    /// Whether a tool call since the last user text has no thinking before it.
    pub(crate) lacks_thinking: bool,
}

/// Writes system text and turns. `instruction` is appended to the system text.
pub(crate) fn write_conversation(
    writer: &mut RequestWriter<'_>,
    instruction: Option<&str>,
) -> Result<Conversation, InvalidRequest> {
    let turns: Vec<(usize, &Turn)> = writer.request.turns.iter().enumerate().collect();
    let (system, others): (Vec<_>, Vec<_>) = turns
        .into_iter()
        .partition(|(_, turn)| turn.role == Role::System && !is_among_messages(turn));
    let system = write_system(writer, &system, instruction)?;
    let mut turns = Vec::with_capacity(others.len());
    for (at, turn) in others {
        turns.push(turn_pieces(writer, at, turn)?);
    }
    turns.retain(|turn| !turn.pieces.is_empty());
    if turns.is_empty() && system.is_none() {
        let turns = writer.request.client_field_name(RequestField::Turns);
        return Err(InvalidRequest::new(
            turns,
            "must hold at least one turn with content",
        ));
    }
    // The order of a native client's turns is kept.
    let turns = match writer.is_native {
        true if !turns.is_empty() => turns,
        _ => order_turns(turns),
    };
    let is_prefilled = turns
        .last()
        .is_some_and(|turn| turn.role == Role::Assistant);
    let lacks_thinking = lacks_thinking(&turns);
    let last = turns.len().saturating_sub(1);
    let mut messages = Vec::with_capacity(turns.len());
    for (at, turn) in turns.iter().enumerate() {
        messages.extend(write_turn(writer, turn, is_prefilled && at == last)?);
    }
    Ok(Conversation {
        system,
        messages,
        is_prefilled,
        lacks_thinking,
    })
}

/// Whether one of the turns with tool calls since the last user text does not begin with thinking. A model that thinks requires it.
fn lacks_thinking(turns: &[OutgoingTurn<'_>]) -> bool {
    let is_user_text = |turn: &&OutgoingTurn<'_>| {
        let is_result = |piece: &Piece<'_>| matches!(piece, Piece::Result(..) | Piece::Missing(_));
        turn.role == Role::User && !turn.pieces.iter().any(is_result)
    };
    let in_progress = turns.iter().rev().take_while(|turn| !is_user_text(turn));
    in_progress
        .filter(|turn| turn.pieces.iter().any(|p| matches!(p, Piece::Call(..))))
        .any(|turn| {
            !matches!(turn.pieces.first(), Some(Piece::Plain(part, _))
                if matches!(part.kind, PartKind::Reasoning { .. } | PartKind::RedactedReasoning(_)))
        })
}

fn write_system(
    writer: &mut RequestWriter<'_>,
    turns: &[(usize, &Turn)],
    instruction: Option<&str>,
) -> Result<Option<Value>, InvalidRequest> {
    let mut blocks = Vec::new();
    for (at, turn) in turns {
        writer.drop_extra(&turn.extra);
        for (index, part) in turn.parts.iter().enumerate() {
            let PartKind::Text { text, .. } = &part.kind else {
                let why = "must be text: system messages of this model contain only text";
                return Err(writer.invalid_part((*at, index), why));
            };
            if writer.is_native || !text.trim().is_empty() {
                writer.drop_extra(&part.extra);
                blocks.push(writer.write_text_block(text, &[], part));
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
    ) = (instruction, turns, &blocks[..])
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
    blocks.extend(instruction.map(|instruction| json!({"type": "text", "text": instruction})));
    Ok((!blocks.is_empty()).then_some(Value::Array(blocks)))
}

/// The pieces of a turn, without parts that the API rejects.
fn turn_pieces<'a>(
    writer: &mut RequestWriter<'a>,
    at: usize,
    turn: &'a Turn,
) -> Result<OutgoingTurn<'a>, InvalidRequest> {
    writer.drop_extra(&turn.extra);
    if turn.name.is_some() {
        let turns = writer.request.client_field_name(RequestField::Turns);
        writer.drop_name(format!("{turns}[{at}].name"));
    }
    let mut pieces = Vec::with_capacity(turn.parts.len());
    for (index, part) in turn.parts.iter().enumerate() {
        let position = (at, index);
        match &part.kind {
            PartKind::Text { text, .. } | PartKind::Refusal(text) => {
                // The API rejects blank text, and the model would react to a placeholder.
                if writer.is_native || !text.trim().is_empty() {
                    pieces.push(Piece::Plain(part, position));
                }
            }
            PartKind::Reasoning { signature, .. } => match signature {
                Some(Opaque { vendor, .. }) if vendor == VENDOR => {
                    pieces.push(Piece::Plain(part, position));
                }
                _ => writer.drop_field(RequestField::PastReasoning),
            },
            PartKind::RedactedReasoning(data) if data.vendor != VENDOR => {
                writer.drop_field(RequestField::PastReasoning);
            }
            PartKind::FormatSpecific { format, value } if *format != NAME => {
                // Records of another vendor's hosted tools can be dropped.
                if turn.role != Role::Assistant || is_essential_item(value) {
                    return Err(writer
                        .invalid_part(position, "is of a type that only its own vendor can read"));
                }
                let path = writer.request.client_part_path(at, index);
                writer.drop_name(path);
            }
            PartKind::ToolCall { id, .. } => pieces.push(Piece::Call(part, sanitize_call_id(id))),
            PartKind::ToolResult { id, .. } => {
                let sent_id = writer.is_native.then(|| sanitize_call_id(id));
                pieces.push(Piece::Result(part, position, sent_id));
            }
            _ => pieces.push(Piece::Plain(part, position)),
        }
    }
    Ok(OutgoingTurn {
        role: turn.role,
        pieces,
        plain: turn.plain,
        turn: Some(at),
    })
}

fn write_turn(
    writer: &mut RequestWriter<'_>,
    turn: &OutgoingTurn<'_>,
    is_prefill: bool,
) -> Result<Option<Value>, InvalidRequest> {
    let mut blocks = Vec::with_capacity(turn.pieces.len());
    for piece in &turn.pieces {
        write_piece(writer, piece, &mut blocks)?;
    }
    if is_prefill && !writer.is_native {
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
        write_extra_fields(&writer.request.turns[at].extra, &mut out);
    }
    Ok(Some(Value::Object(out)))
}

/// Removes white space at the end: the API rejects it at the end of a last assistant turn.
fn trim_end(blocks: &mut Vec<Value>) {
    if let Some(Value::String(text)) = blocks.last_mut().and_then(|block| block.get_mut("text")) {
        text.truncate(text.trim_end().len());
        if text.is_empty() {
            blocks.pop();
        }
    }
}
