//! Writes parts of turns as content blocks.

use serde_json::{Value, json};

use super::sources::{write_document, write_image_source};
use super::turn_order::Piece;
use super::writer::RequestWriter;
use crate::error::InvalidRequest;
use crate::hub::{Citation, Part, PartKind, RequestField, extract_text};
use crate::messages::block_write::arguments_to_input;
use crate::messages::citations::write_native_citation;
use crate::messages::constants::NAME;
use crate::messages::fields::write_extra_fields;

/// Content of the result that is added for a call without one.
const NO_RESULT: &str = "No result was given for this call.";

/// Appends the blocks of a piece.
pub(crate) fn write_piece(
    writer: &mut RequestWriter<'_>,
    piece: &Piece<'_>,
    blocks: &mut Vec<Value>,
) -> Result<(), InvalidRequest> {
    blocks.push(match piece {
        Piece::Text(text) => json!({"type": "text", "text": text}),
        Piece::Missing(id) => json!({
            "type": "tool_result", "tool_use_id": id, "content": NO_RESULT, "is_error": true,
        }),
        Piece::Call(part, id) => write_call(writer, part, id),
        Piece::Result(part, position, None) => {
            return write_unpaired_result(writer, part, *position, blocks);
        }
        Piece::Result(part, position, Some(id)) => write_result(writer, part, *position, id)?,
        Piece::Plain(part, position) => write_part(writer, part, *position)?,
    });
    Ok(())
}

fn write_call(writer: &mut RequestWriter<'_>, part: &Part, id: &str) -> Value {
    let PartKind::ToolCall {
        name,
        arguments,
        custom,
        ..
    } = &part.kind
    else {
        return Value::Null;
    };
    let name = writer.names.upstream_name(name).to_owned();
    let block = json!({
        "type": "tool_use", "id": id, "name": name, "input": arguments_to_input(arguments, *custom),
    });
    writer.finish_block(block, part)
}

fn write_result(
    writer: &mut RequestWriter<'_>,
    part: &Part,
    position: (usize, usize),
    upstream_id: &str,
) -> Result<Value, InvalidRequest> {
    let PartKind::ToolResult {
        content,
        plain,
        is_error,
        ..
    } = &part.kind
    else {
        return Ok(Value::Null);
    };
    let mut block = json!({"type": "tool_result", "tool_use_id": upstream_id});
    let blank =
        |part: &Part| matches!(&part.kind, PartKind::Text { text, .. } if text.trim().is_empty());
    let mut blocks = Vec::with_capacity(content.len());
    let keeps_blank = *plain || writer.is_native;
    for part in content.iter().filter(|part| keeps_blank || !blank(part)) {
        blocks.push(write_part(writer, part, position)?);
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
    Ok(writer.finish_block(block, part))
}

/// Writes a result without its call as text of the user, and its attachments after the text.
fn write_unpaired_result(
    writer: &mut RequestWriter<'_>,
    part: &Part,
    position: (usize, usize),
    blocks: &mut Vec<Value>,
) -> Result<(), InvalidRequest> {
    let PartKind::ToolResult { id, content, .. } = &part.kind else {
        return Ok(());
    };
    let (mut texts, mut attachments) = (Vec::new(), Vec::new());
    for part in content {
        match &part.kind {
            PartKind::Text { text, .. } | PartKind::Refusal(text) => texts.push(text.clone()),
            PartKind::FormatSpecific { value, .. } => match extract_text(value) {
                Some(text) => texts.push(text),
                None => writer.drop_field(RequestField::Parts),
            },
            _ => attachments.push(write_part(writer, part, position)?),
        }
    }
    let text = format!("Result of tool call {id}: {}", texts.join("\n"));
    blocks.push(writer.finish_block(json!({"type": "text", "text": text}), part));
    blocks.append(&mut attachments);
    Ok(())
}

fn write_part(
    writer: &mut RequestWriter<'_>,
    part: &Part,
    position: (usize, usize),
) -> Result<Value, InvalidRequest> {
    let block = match &part.kind {
        PartKind::Text {
            text, citations, ..
        } => {
            writer.drop_extra(&part.extra);
            return Ok(writer.write_text_block(text, citations, part));
        }
        PartKind::Refusal(text) => json!({"type": "text", "text": text}),
        PartKind::Image { source, detail } => {
            if detail.as_deref().is_some_and(|detail| detail != "auto") {
                writer.drop_name("detail");
            }
            json!({"type": "image", "source": write_image_source(writer, source, position)?})
        }
        PartKind::File { source, name } => {
            let mut block = write_document(writer, source, position)?;
            match name.as_ref().filter(|name| !name.is_empty()) {
                Some(name) if block["type"] == "document" => block["title"] = json!(name),
                // Images have no title.
                Some(_) => writer.drop_field(RequestField::FileName),
                None => {}
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
            return Err(
                writer.invalid_part(position, "is audio, which this model does not support")
            );
        }
        PartKind::Video { .. } => {
            return Err(
                writer.invalid_part(position, "is a video, which this model does not support")
            );
        }
        PartKind::FormatSpecific { .. }
        | PartKind::ToolCall { .. }
        | PartKind::ToolResult { .. } => {
            return Err(writer.invalid_part(position, "is of a type that is not allowed here"));
        }
    };
    Ok(writer.finish_block(block, part))
}

impl RequestWriter<'_> {
    /// A text block with its citations, `cache_control` and extra fields.
    pub(crate) fn write_text_block(
        &mut self,
        text: &str,
        citations: &[Citation],
        part: &Part,
    ) -> Value {
        let mut block = json!({"type": "text", "text": text});
        let written: Vec<Value> = citations.iter().filter_map(write_native_citation).collect();
        if written.len() < citations.len() {
            self.drop_field(RequestField::Citations);
        }
        if !written.is_empty() {
            block["citations"] = Value::Array(written);
        }
        self.finish_block(block, part)
    }

    /// Adds `cache_control` and the extra fields of its part to a block.
    fn finish_block(&mut self, mut block: Value, part: &Part) -> Value {
        let may_be_marked = !matches!(
            part.kind,
            PartKind::Reasoning { .. } | PartKind::RedactedReasoning(_)
        );
        if let Some(marker) =
            self.cache_control(part.cache_ttl.as_deref().filter(|_| may_be_marked))
        {
            block["cache_control"] = marker;
        }
        self.drop_extra(&part.extra);
        if let Value::Object(members) = &mut block {
            write_extra_fields(&part.extra, members);
        }
        block
    }
}
