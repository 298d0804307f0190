//! Writes the turns as `contents`: system text is separated, consecutive turns of one role are merged, and every call is paired with a result.

use std::collections::VecDeque;

use serde_json::{Map, Value, json};

use super::parts::{Piece, ToolResult};
use super::writer::RequestWriter;
use crate::error::InvalidRequest;
use crate::generate_content::{call_ids, signatures};
use crate::hub::{Role, Turn};

/// A content under construction.
struct Content {
    model: bool,
    pieces: Vec<Piece>,
}

impl Content {
    fn has_tools(&self) -> bool {
        self.pieces
            .iter()
            .any(|piece| !matches!(piece, Piece::Part(_)))
    }
}

impl RequestWriter<'_> {
    /// Writes the parts of `systemInstruction`, and `contents`.
    pub(crate) fn write_contents(&mut self) -> Result<(Vec<Value>, Vec<Value>), InvalidRequest> {
        let request = self.request;
        let (first, mut system) = (self.count_system_turns(), Vec::new());
        let mut contents: Vec<Content> = Vec::new();
        for (at, turn) in request.turns.iter().enumerate() {
            let pieces = self.turn_pieces(at, turn)?;
            if at < first {
                system.extend(pieces.into_iter().filter_map(into_part));
            } else if !pieces.is_empty() {
                // A system turn in the middle of the conversation becomes a user turn.
                let model = turn.role == Role::Assistant;
                self.add_content(&mut contents, Content { model, pieces });
            }
        }
        // Results are paired after merging: a result in a turn of its own is not missing.
        let mut contents = pair_calls_with_results(contents);
        if contents.is_empty() && !system.is_empty() {
            let pieces = system.drain(..).map(Piece::Part).collect();
            contents.push(Content {
                model: false,
                pieces,
            });
        }
        if !self.is_native_client && contents.first().is_some_and(|content| content.model) {
            // The API rejects a conversation that begins with the model.
            let pieces = vec![Piece::Part(json!({"text": "."}))];
            contents.insert(
                0,
                Content {
                    model: false,
                    pieces,
                },
            );
        }
        if self.capabilities.requires_signatures {
            add_missing_signatures(&mut contents);
        }
        Ok((system, contents.into_iter().map(content_json).collect()))
    }

    fn turn_pieces(&mut self, at: usize, turn: &Turn) -> Result<Vec<Piece>, InvalidRequest> {
        self.drop_extra(&turn.extra);
        if turn.name.is_some() {
            self.drop_name("name");
        }
        let request = self.request;
        let mut pieces = Vec::with_capacity(turn.parts.len());
        for (number, part) in turn.parts.iter().enumerate() {
            let path = || request.client_part_path(at, number);
            pieces.extend(self.piece(part, turn.role, &path)?);
        }
        Ok(pieces)
    }

    /// Merges consecutive contents of one role. Contents of clients of this format are merged only
    /// if they hold calls or results.
    fn add_content(&self, contents: &mut Vec<Content>, content: Content) {
        match contents.last_mut() {
            Some(last)
                if last.model == content.model
                    && (!self.is_native_client || last.has_tools() || content.has_tools()) =>
            {
                last.pieces.extend(content.pieces);
            }
            _ => contents.push(content),
        }
    }
}

fn into_part(piece: Piece) -> Option<Value> {
    match piece {
        Piece::Part(value) => Some(value),
        _ => None,
    }
}

/// Puts the results of all calls into the content right after them, in the order of the calls.
/// Missing results are filled in; results without a call become text.
fn pair_calls_with_results(contents: Vec<Content>) -> Vec<Content> {
    let mut out: Vec<Content> = Vec::with_capacity(contents.len());
    let mut open: Vec<(String, String)> = Vec::new();
    for content in contents {
        if content.model {
            out.extend(missing_results_content(&mut open));
            open.extend(content.pieces.iter().filter_map(|piece| match piece {
                Piece::Call { id, name, .. } => Some((id.clone(), name.clone())),
                _ => None,
            }));
            out.push(content);
        } else {
            let pieces = order_results(content.pieces, std::mem::take(&mut open));
            out.push(Content {
                model: false,
                pieces,
            });
        }
    }
    out.extend(missing_results_content(&mut open));
    out
}

/// A content with results for all open calls. `None` if none is open.
fn missing_results_content(open: &mut Vec<(String, String)>) -> Option<Content> {
    let pieces: Vec<Piece> = open
        .drain(..)
        .map(|(id, name)| Piece::Result(missing_result(id, name)))
        .collect();
    (!pieces.is_empty()).then_some(Content {
        model: false,
        pieces,
    })
}

fn missing_result(id: String, name: String) -> ToolResult {
    ToolResult {
        id,
        name,
        response: json!({"error": "no result given"}),
        rest: Map::new(),
        trailing_parts: Vec::new(),
    }
}

fn order_results(pieces: Vec<Piece>, calls: Vec<(String, String)>) -> Vec<Piece> {
    let mut results: VecDeque<ToolResult> = VecDeque::new();
    let mut others = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Result(result) => results.push_back(result),
            other => others.push(other),
        }
    }
    let (mut out, mut trailing_parts) = (Vec::new(), Vec::new());
    for (id, name) in calls {
        let at = results.iter().position(|result| result.id == id);
        let mut result = match at.and_then(|at| results.remove(at)) {
            Some(result) => result,
            None => missing_result(id, String::new()),
        };
        // The call always has the name; a result may lack it.
        result.name = name;
        trailing_parts.append(&mut result.trailing_parts);
        out.push(Piece::Result(result));
    }
    for orphan in results {
        let text = match &orphan.response["output"] {
            Value::String(text) => text.clone(),
            _ => orphan.response.to_string(),
        };
        trailing_parts.push(json!({"text": format!("Tool result: {text}")}));
        trailing_parts.extend(orphan.trailing_parts);
    }
    out.extend(trailing_parts.into_iter().map(Piece::Part));
    out.extend(others);
    out
}

/// The first call of each model content needs a signature; one that never had any gets
/// [`signatures::SKIP_VALIDATOR`].
fn add_missing_signatures(contents: &mut [Content]) {
    for content in contents {
        let first = content.pieces.iter_mut().find_map(|piece| match piece {
            Piece::Call { part, .. } => Some(part),
            _ => None,
        });
        if let Some(part) = first.filter(|part| part.get("thoughtSignature").is_none()) {
            part["thoughtSignature"] = json!(signatures::SKIP_VALIDATOR);
        }
    }
}

fn content_json(content: Content) -> Value {
    let parts: Vec<Value> = content.pieces.into_iter().map(piece_json).collect();
    let role = if content.model { "model" } else { "user" };
    json!({"role": role, "parts": parts})
}

fn piece_json(piece: Piece) -> Value {
    let result = match piece {
        Piece::Part(part) | Piece::Call { part, .. } => return part,
        Piece::Result(result) => result,
    };
    let mut response = Map::new();
    if !call_ids::is_generated(&result.id) {
        response.insert("id".to_owned(), json!(result.id));
    }
    response.insert("name".to_owned(), json!(result.name));
    if !result.response.is_null() {
        response.insert("response".to_owned(), result.response);
    }
    response.extend(result.rest);
    json!({"functionResponse": response})
}
