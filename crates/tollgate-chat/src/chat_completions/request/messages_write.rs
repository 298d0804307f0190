//! The conversation, written.
//!
//! Turns of the model that follow each other and call tools become one message. Behind it come the results, one message each and
//! nothing between them: first those that are there, then an error for every call that has none. What else the
//! turns until the model's next one hold comes after.

use std::collections::HashSet;
use std::ops::Range;

use serde_json::{Map, Value, json};

use super::super::wire::{CALL_ID_MAX, NAME};
use super::parts;
use super::tools::put;
use super::write::Dropped;
use crate::error::Bad;
use crate::hub::{
    Field, Kind, ModelTraits, Opaque, Part, Request, Role, ToolNames, Turn, fitting_id, text_in,
};

/// Writes `messages`.
pub(super) fn write(
    request: &Request,
    names: &ToolNames,
    traits: &ModelTraits,
    dropped: &mut Dropped,
) -> Result<Vec<Value>, Bad> {
    check_history(request)?;
    let mut writer = Writer {
        request,
        names,
        traits,
        dropped,
        is_ours: request.client == NAME,
        out: Vec::new(),
        waiting: Vec::new(),
        pictures: Vec::new(),
    };
    let turns = &request.turns;
    let mut at = 0;
    while at < turns.len() {
        let is_model = |turn: &Turn| turn.role == Role::Assistant;
        let same = |turn: &&Turn| is_model(turn) == is_model(&turns[at]);
        let end = at + turns[at..].iter().take_while(same).count();
        if is_model(&turns[at]) {
            writer.assistant_run(at..end);
        } else {
            writer.user_run(at..end)?;
        }
        at = end;
    }
    writer.no_result_given();
    writer.flush_pictures();
    Ok(writer.out)
}

/// Refuses pieces that stand for a part of the conversation which only their vendor has.
fn check_history(request: &Request) -> Result<(), Bad> {
    for (at, turn) in request.turns.iter().enumerate() {
        for (place, part) in turn.parts.iter().enumerate() {
            let kind = match &part.kind {
                Kind::Foreign { value, .. } => value["type"].as_str().unwrap_or_default(),
                _ => continue,
            };
            if ["item_reference", "compaction"].contains(&kind) {
                return Err(Bad::new(
                    request.path_of(at, place),
                    format!("is {kind:?}, which this model's provider cannot read"),
                ));
            }
        }
    }
    Ok(())
}

struct Writer<'a> {
    request: &'a Request,
    names: &'a ToolNames,
    traits: &'a ModelTraits,
    dropped: &'a mut Dropped,
    /// Whether the client speaks this format too: then shapes are kept.
    is_ours: bool,
    out: Vec<Value>,
    /// Calls without a result so far: (the hub's id, the id as sent).
    waiting: Vec<(&'a str, String)>,
    /// Parts that messages of role `tool` and `assistant` cannot hold; they follow in a user message.
    pictures: Vec<Value>,
}

impl<'a> Writer<'a> {
    fn assistant_run(&mut self, run: Range<usize>) {
        let turns = &self.request.turns[run];
        let is_call = |part: &Part| matches!(part.kind, Kind::ToolCall { .. });
        let calls = |turns: &[Turn]| turns.iter().any(|turn| turn.parts.iter().any(is_call));
        // What this format's own client sent apart stays apart, unless results would be torn from their calls.
        let torn = turns.split_last().is_some_and(|(_, before)| calls(before));
        if torn || (!self.is_ours && calls(turns)) {
            self.assistant(turns);
        } else {
            turns
                .iter()
                .for_each(|turn| self.assistant(std::slice::from_ref(turn)));
        }
    }

    /// One message of one or more turns.
    fn assistant(&mut self, turns: &'a [Turn]) {
        let mut content = Content::default();
        let mut calls = Vec::new();
        let mut ids = HashSet::new();
        for turn in turns {
            content.next_turn();
            for part in &turn.parts {
                self.note_cache(part);
                match &part.kind {
                    Kind::ToolCall { .. } => calls.extend(self.call(&part.kind, &mut ids)),
                    _ => self.assistant_part(part, &mut content),
                }
            }
        }
        let mut message = Map::from_iter([("role".to_owned(), Value::from("assistant"))]);
        let has_calls = !calls.is_empty();
        if !self.is_ours && content.list.is_empty() && !has_calls {
            // Thinking alone, or what only another format knows.
            if !content.reasoning.is_empty() {
                let lost = self.request.name_of(Field::PastReasoning);
                self.dropped.push(lost);
            }
            return;
        }
        let plain = !self.is_ours || turns.iter().all(|turn| turn.plain);
        let said = content.value(plain, has_calls);
        let refusal = std::mem::take(&mut content.refusal);
        let apart = !said.is_array() && !refusal.is_empty();
        message.insert("content".to_owned(), said);
        put(&mut message, "refusal", apart.then_some(refusal));
        self.put_reasoning(&mut message, content, has_calls);
        if has_calls {
            message.insert("tool_calls".to_owned(), calls.into());
        }
        for turn in turns {
            put(
                &mut message,
                "name",
                turn.name.clone().filter(|_| self.is_ours),
            );
            message.extend(turn.own.for_format(NAME).cloned().unwrap_or_default());
        }
        self.out.push(message.into());
    }

    /// Other formats' markers have no place here.
    fn note_cache(&mut self, part: &Part) {
        if part.cache.is_some() && !self.is_ours {
            self.dropped.push(self.request.name_of(Field::Cache));
        }
    }

    fn assistant_part(&mut self, part: &Part, content: &mut Content) {
        match &part.kind {
            Kind::Text {
                text, citations, ..
            } => {
                if !citations.is_empty() {
                    self.dropped.push(self.request.name_of(Field::Citations));
                }
                content.text(text);
                content.cache(part, self.is_ours);
            }
            Kind::Refusal(text) => content.refuse(text),
            Kind::Reasoning {
                text, signature, ..
            } => {
                content.signed |= signature.is_some();
                content.blocks.push(match signature {
                    Some(proof) => {
                        json!({"type": "thinking", "thinking": text, "signature": proof_of(proof)})
                    }
                    None => json!({"type": "thinking", "thinking": text}),
                });
                if !content.reasoning.is_empty() && !text.is_empty() {
                    content.reasoning.push_str("\n\n");
                }
                content.reasoning.push_str(text);
            }
            Kind::Redacted(data) if self.is_ours => {
                content.signed = true;
                let block = json!({"type": "redacted_thinking", "data": proof_of(data)});
                content.blocks.push(block);
            }
            Kind::Redacted(_) => self
                .dropped
                .push(self.request.name_of(Field::PastReasoning)),
            Kind::Foreign { value, .. } => {
                self.dropped
                    .push(value["type"].as_str().unwrap_or("content"));
            }
            _ => match parts::write(part, self.request, "") {
                Ok(part) => self.pictures.push(part),
                Err(_) => self.dropped.push(self.request.name_of(Field::Parts)),
            },
        }
    }

    fn put_reasoning(
        &mut self,
        message: &mut Map<String, Value>,
        content: Content,
        has_calls: bool,
    ) {
        let wanted = self.traits.needs_reasoning_back;
        let text = content.reasoning;
        if content.signed && self.is_ours && !self.traits.strict_fields {
            message.insert("thinking_blocks".to_owned(), content.blocks.into());
        } else if !text.is_empty() && (wanted || self.is_ours && !self.traits.strict_fields) {
            message.insert("reasoning_content".to_owned(), text.into());
        } else if wanted && has_calls {
            // Such models refuse calls without it, and some refuse the empty text too.
            message.insert("reasoning_content".to_owned(), " ".into());
        } else if !text.is_empty() || content.signed {
            let lost = self.request.name_of(Field::PastReasoning);
            self.dropped.push(lost);
        }
    }

    fn call(&mut self, kind: &'a Kind, ids: &mut HashSet<String>) -> Option<Value> {
        let Kind::ToolCall {
            id,
            name,
            arguments,
            custom,
            ..
        } = kind
        else {
            return None;
        };
        let mut sent = match fitting_id(id, CALL_ID_MAX, |c| !c.is_control()).into_owned() {
            empty if empty.is_empty() => "call".to_owned(),
            sent => sent,
        };
        for copy in 2.. {
            if ids.insert(sent.clone()) {
                break;
            }
            let copied = format!("{sent}_{copy}");
            sent = fitting_id(&copied, CALL_ID_MAX, |c| !c.is_control()).into_owned();
        }
        let name = self.names.sent(name);
        let call = if *custom {
            json!({"id": sent, "type": "custom", "custom": {"name": name, "input": arguments}})
        } else {
            let arguments = if arguments.is_empty() && !self.is_ours {
                "{}"
            } else {
                arguments
            };
            json!({"id": sent, "type": "function", "function": {"name": name, "arguments": arguments}})
        };
        self.waiting.push((id, sent));
        Some(call)
    }

    /// Turns between two of the model's.
    fn user_run(&mut self, run: Range<usize>) -> Result<(), Bad> {
        let mut orphans = Vec::new();
        for at in run.clone() {
            for (place, part) in self.request.turns[at].parts.iter().enumerate() {
                if let Kind::ToolResult { id, .. } = &part.kind {
                    match self.waiting.iter().position(|call| call.0 == id) {
                        Some(call) => {
                            let (_, id) = self.waiting.remove(call);
                            self.result(&part.kind, id, at, place)?;
                        }
                        None => orphans.push((at, place)),
                    }
                }
            }
        }
        self.no_result_given();
        self.flush_pictures();
        for at in run {
            self.turn(at, &orphans)?;
        }
        Ok(())
    }

    fn result(&mut self, kind: &Kind, id: String, turn: usize, place: usize) -> Result<(), Bad> {
        let Kind::ToolResult {
            content,
            plain,
            is_error,
            ..
        } = kind
        else {
            return Ok(());
        };
        let content =
            if self.is_ours && !plain && content.iter().all(is_text) && !content.is_empty() {
                let path = self.request.path_of(turn, place);
                let parts = content
                    .iter()
                    .map(|part| parts::write(part, self.request, &path));
                Value::Array(parts.collect::<Result<_, _>>()?)
            } else {
                self.result_text(content, *is_error, turn, place)?.into()
            };
        self.out
            .push(json!({"role": "tool", "tool_call_id": id, "content": content}));
        Ok(())
    }

    /// A result's words; what is none of them follows behind the results.
    fn result_text(
        &mut self,
        content: &[Part],
        is_error: bool,
        turn: usize,
        place: usize,
    ) -> Result<String, Bad> {
        let mut words = Vec::new();
        for part in content {
            match &part.kind {
                Kind::Text { text, .. } => words.push(text.clone()),
                Kind::Refusal(text) => words.push(text.clone()),
                Kind::Foreign { value, .. } => words.extend(text_in(value)),
                _ => {
                    let path = self.request.path_of(turn, place);
                    self.pictures.push(parts::write(part, self.request, &path)?);
                    words.push("[attached in the next user message]".to_owned());
                }
            }
        }
        let text = words.join("\n");
        Ok(if is_error {
            format!("Error: {text}")
        } else {
            text
        })
    }

    fn no_result_given(&mut self) {
        for (_, id) in std::mem::take(&mut self.waiting) {
            let content = "Error: no result given";
            self.out
                .push(json!({"role": "tool", "tool_call_id": id, "content": content}));
        }
    }

    fn flush_pictures(&mut self) {
        if !self.pictures.is_empty() {
            let pictures = std::mem::take(&mut self.pictures);
            self.out.push(json!({"role": "user", "content": pictures}));
        }
    }

    /// What a turn of the user or the system holds beside results.
    fn turn(&mut self, at: usize, orphans: &[(usize, usize)]) -> Result<(), Bad> {
        let turn = &self.request.turns[at];
        let mut content = Vec::new();
        let mut has_results = false;
        for (place, part) in turn.parts.iter().enumerate() {
            self.note_cache(part);
            if let Kind::ToolResult {
                content: result,
                is_error,
                ..
            } = &part.kind
            {
                has_results = true;
                if orphans.contains(&(at, place)) {
                    let text = self.result_text(result, *is_error, at, place)?;
                    content.push(json!({"type": "text", "text": format!("[Tool result] {text}")}));
                    content.append(&mut self.pictures);
                }
                continue;
            }
            let path = self.request.path_of(at, place);
            content.push(parts::write(part, self.request, &path)?);
        }
        if content.is_empty() && (has_results || !self.is_ours) {
            return Ok(());
        }
        let mut message = Map::from_iter([
            ("role".to_owned(), Value::from(self.role(turn))),
            ("content".to_owned(), self.shape(turn, content)),
        ]);
        put(
            &mut message,
            "name",
            turn.name.clone().filter(|_| self.is_ours),
        );
        for (name, value) in turn.own.for_format(NAME).into_iter().flatten() {
            if name != ".role" {
                message.insert(name.clone(), value.clone());
            }
        }
        self.out.push(message.into());
        Ok(())
    }

    fn role(&self, turn: &Turn) -> &'static str {
        let own = turn.own.for_format(NAME);
        match turn.role {
            Role::System if own.is_some_and(|own| own.get(".role").is_some()) => "developer",
            Role::System => "system",
            _ => "user",
        }
    }

    /// As the client had it; of other formats' clients, one string where that says the same, as more upstreams take it.
    fn shape(&self, turn: &Turn, mut content: Vec<Value>) -> Value {
        let texts = || -> Option<Vec<&str>> {
            let bare = |part: &Value| part.as_object().is_some_and(|part| part.len() == 2);
            content
                .iter()
                .map(|part| part["text"].as_str().filter(|_| bare(part)))
                .collect()
        };
        match texts() {
            Some(texts) if turn.plain || texts.is_empty() => texts.concat().into(),
            Some(texts) if !self.is_ours && turn.role == Role::System => texts.join("\n\n").into(),
            Some(texts) if !self.is_ours && texts.len() == 1 => content[0]["text"].take(),
            _ => content.into(),
        }
    }
}

fn is_text(part: &Part) -> bool {
    matches!(part.kind, Kind::Text { .. })
}

/// What an assistant message says.
#[derive(Default)]
struct Content {
    list: Vec<Value>,
    text: String,
    has_text: bool,
    refusal: String,
    reasoning: String,
    /// Thinking as blocks with signatures, for clients that brought it so.
    blocks: Vec<Value>,
    signed: bool,
    new_turn: bool,
}

/// A signature as it came: Anthropic's own bare, others' with their vendor.
fn proof_of(proof: &Opaque) -> String {
    match proof.vendor.as_str() {
        "anthropic" => proof.data.clone(),
        _ => proof.wrapped(),
    }
}

impl Content {
    /// The turn that comes is another one: its text is not the same sentence.
    fn next_turn(&mut self) {
        self.new_turn = self.has_text;
    }

    fn text(&mut self, text: &str) {
        if std::mem::take(&mut self.new_turn) {
            self.text.push_str("\n\n");
        }
        self.has_text = true;
        self.text.push_str(text);
        self.list.push(json!({"type": "text", "text": text}));
    }

    fn cache(&mut self, part: &Part, is_ours: bool) {
        let last = self.list.last_mut().and_then(Value::as_object_mut);
        if let (Some(last), Some(life), true) = (last, &part.cache, is_ours) {
            parts::put_cache(last, life);
        }
    }

    fn refuse(&mut self, text: &str) {
        self.refusal.push_str(text);
        self.list.push(json!({"type": "refusal", "refusal": text}));
    }

    /// `null` where nothing is said and something else is there.
    fn value(&mut self, plain: bool, has_calls: bool) -> Value {
        let is_list = !plain && self.has_text;
        match self.has_text {
            _ if is_list => std::mem::take(&mut self.list).into(),
            true => std::mem::take(&mut self.text).into(),
            false if has_calls || !self.refusal.is_empty() => Value::Null,
            false => "".into(),
        }
    }
}
