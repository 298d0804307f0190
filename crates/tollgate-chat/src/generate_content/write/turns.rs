//! Turns into contents: the system's text apart, speakers merged, every call answered at once and in its order.

use std::collections::VecDeque;

use serde_json::{Map, Value, json};

use super::super::{ids, sign};
use super::Writer;
use super::parts::{Answer, Piece};
use crate::error::Bad;
use crate::hub::{Role, Turn};

/// A content on its way.
struct Content {
    model: bool,
    pieces: Vec<Piece>,
}

impl Content {
    fn has_tools(&self) -> bool {
        self.pieces
            .iter()
            .any(|piece| !matches!(piece, Piece::Said(_)))
    }
}

impl Writer<'_> {
    /// The system's parts, and the contents.
    pub(super) fn conversation(&mut self) -> Result<(Vec<Value>, Vec<Value>), Bad> {
        let request = self.request;
        let (first, mut system) = (self.first_turn(), Vec::new());
        let mut contents: Vec<Content> = Vec::new();
        for (at, turn) in request.turns.iter().enumerate() {
            let pieces = self.pieces(at, turn)?;
            if at < first {
                system.extend(pieces.into_iter().filter_map(said));
            } else if !pieces.is_empty() {
                // The system's word in the middle has no place but the user's turn.
                let model = turn.role == Role::Assistant;
                self.add(&mut contents, Content { model, pieces });
            }
        }
        // Merged first, then answered: a result that comes in a turn of its own is not missing.
        let mut contents = answered(contents);
        if contents.is_empty() && !system.is_empty() {
            let pieces = system.drain(..).map(Piece::Said).collect();
            contents.push(Content {
                model: false,
                pieces,
            });
        }
        if !self.native && contents.first().is_some_and(|content| content.model) {
            // A conversation that the model begins is refused.
            let pieces = vec![Piece::Said(json!({"text": "."}))];
            contents.insert(
                0,
                Content {
                    model: false,
                    pieces,
                },
            );
        }
        if self.traits.needs_signatures {
            sign_calls(&mut contents);
        }
        Ok((system, contents.into_iter().map(written).collect()))
    }

    fn pieces(&mut self, at: usize, turn: &Turn) -> Result<Vec<Piece>, Bad> {
        self.drop_own(&turn.own);
        if turn.name.is_some() {
            self.drop_name("name");
        }
        let request = self.request;
        let mut pieces = Vec::with_capacity(turn.parts.len());
        for (number, part) in turn.parts.iter().enumerate() {
            let path = || request.path_of(at, number);
            pieces.extend(self.piece(part, turn.role, &path)?);
        }
        Ok(pieces)
    }

    /// Joins what one speaker says in several turns. Clients of this format keep their contents, but where tools need them joined.
    fn add(&self, contents: &mut Vec<Content>, content: Content) {
        match contents.last_mut() {
            Some(last)
                if last.model == content.model
                    && (!self.native || last.has_tools() || content.has_tools()) =>
            {
                last.pieces.extend(content.pieces);
            }
            _ => contents.push(content),
        }
    }
}

fn said(piece: Piece) -> Option<Value> {
    match piece {
        Piece::Said(value) => Some(value),
        _ => None,
    }
}

/// Every call answered in the content right behind it, in the calls' order; what is missing filled in, what answers nothing told as text.
fn answered(contents: Vec<Content>) -> Vec<Content> {
    let mut out: Vec<Content> = Vec::with_capacity(contents.len());
    let mut open: Vec<(String, String)> = Vec::new();
    for content in contents {
        if content.model {
            out.extend(unanswered(&mut open));
            open.extend(content.pieces.iter().filter_map(|piece| match piece {
                Piece::Call { id, name, .. } => Some((id.clone(), name.clone())),
                _ => None,
            }));
            out.push(content);
        } else {
            let pieces = answers_first(content.pieces, std::mem::take(&mut open));
            out.push(Content {
                model: false,
                pieces,
            });
        }
    }
    out.extend(unanswered(&mut open));
    out
}

/// The content that is missing behind calls.
fn unanswered(open: &mut Vec<(String, String)>) -> Option<Content> {
    let pieces: Vec<Piece> = open
        .drain(..)
        .map(|(id, name)| Piece::Answer(no_answer(id, name)))
        .collect();
    (!pieces.is_empty()).then_some(Content {
        model: false,
        pieces,
    })
}

fn no_answer(id: String, name: String) -> Answer {
    Answer {
        id,
        name,
        response: json!({"error": "no result given"}),
        rest: Map::new(),
        behind: Vec::new(),
    }
}

fn answers_first(pieces: Vec<Piece>, calls: Vec<(String, String)>) -> Vec<Piece> {
    let mut answers: VecDeque<Answer> = VecDeque::new();
    let mut others = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Answer(answer) => answers.push_back(answer),
            other => others.push(other),
        }
    }
    let (mut out, mut behind) = (Vec::new(), Vec::new());
    for (id, name) in calls {
        let at = answers.iter().position(|answer| answer.id == id);
        let mut answer = match at.and_then(|at| answers.remove(at)) {
            Some(answer) => answer,
            None => no_answer(id, String::new()),
        };
        // The call knows its name better than the result.
        answer.name = name;
        behind.append(&mut answer.behind);
        out.push(Piece::Answer(answer));
    }
    for orphan in answers {
        let words = match &orphan.response["output"] {
            Value::String(text) => text.clone(),
            _ => orphan.response.to_string(),
        };
        behind.push(json!({"text": format!("Tool result: {words}")}));
        behind.extend(orphan.behind);
    }
    out.extend(behind.into_iter().map(Piece::Said));
    out.extend(others);
    out
}

/// The first call of each of the model's contents must be signed; what never was, says so.
fn sign_calls(contents: &mut [Content]) {
    for content in contents {
        let first = content.pieces.iter_mut().find_map(|piece| match piece {
            Piece::Call { part, .. } => Some(part),
            _ => None,
        });
        if let Some(part) = first.filter(|part| part.get("thoughtSignature").is_none()) {
            part["thoughtSignature"] = json!(sign::SKIP);
        }
    }
}

fn written(content: Content) -> Value {
    let parts: Vec<Value> = content.pieces.into_iter().map(part).collect();
    let role = if content.model { "model" } else { "user" };
    json!({"role": role, "parts": parts})
}

fn part(piece: Piece) -> Value {
    let answer = match piece {
        Piece::Said(part) | Piece::Call { part, .. } => return part,
        Piece::Answer(answer) => answer,
    };
    let mut response = Map::new();
    if !ids::is_minted(&answer.id) {
        response.insert("id".to_owned(), json!(answer.id));
    }
    response.insert("name".to_owned(), json!(answer.name));
    if !answer.response.is_null() {
        response.insert("response".to_owned(), answer.response);
    }
    response.extend(answer.rest);
    json!({"functionResponse": response})
}
