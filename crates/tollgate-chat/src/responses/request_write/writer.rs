//! The request under construction: its JSON body, the dropped fields, the conversation and the
//! format's own members.

use serde_json::{Map, Value};

use super::call_pairing::{item_values, join_reasoning, pair_calls_with_results};
use super::input_items::InputWriter;
use crate::error::InvalidRequest;
use crate::format::Target;
use crate::hub::{ExtraFields, Part, PartKind, Request, RequestField, Role, ToolNames, Turn};
use crate::responses::constants::{ALLOWED_DOMAINS, NAME, SEARCH_CONTEXT_SIZE};
use crate::responses::extra_fields::{NOTE_INPUT, NOTE_INSTRUCTIONS, has_note, write_extra_fields};

/// Members that chat-completions has with the same names and meaning.
const SHARED_WITH_CHAT_COMPLETIONS: [&str; 4] = [
    "moderation",
    "prompt_cache_options",
    "prompt_cache_retention",
    "safety_identifier",
];

/// A request under construction.
pub(crate) struct RequestWriter<'a> {
    pub(crate) request: &'a Request,
    pub(crate) target: &'a Target<'a>,
    pub(crate) names: &'a ToolNames,
    /// Whether the client uses this format too.
    pub(crate) is_own: bool,
    pub(crate) body: Map<String, Value>,
    pub(crate) dropped: Vec<String>,
}

impl<'a> RequestWriter<'a> {
    pub(crate) fn new(request: &'a Request, target: &'a Target<'a>, names: &'a ToolNames) -> Self {
        Self {
            request,
            target,
            names,
            is_own: request.client_format.name == NAME,
            body: Map::new(),
            dropped: Vec::new(),
        }
    }

    pub(crate) fn set(&mut self, name: &str, value: Value) {
        self.body.insert(name.to_owned(), value);
    }

    pub(crate) fn drop_field(&mut self, field: RequestField) {
        self.drop_name(self.request.client_field_name(field));
    }

    pub(crate) fn drop_name(&mut self, name: &str) {
        if !self.dropped.iter().any(|existing| existing == name) {
            self.dropped.push(name.to_owned());
        }
    }

    /// Writes `instructions` and `input`.
    pub(crate) fn write_conversation(&mut self) -> Result<(), InvalidRequest> {
        let turns = &self.request.turns;
        let first = turns
            .iter()
            .take_while(|turn| is_instruction_turn(turn, self.is_own))
            .count();
        if first > 0 {
            let texts = turns[..first].iter().flat_map(turn_texts);
            let joined = texts.collect::<Vec<_>>().join("\n\n");
            self.set("instructions", joined.into());
        }
        if let [turn] = &turns[first..]
            && has_note(&turn.extra, NOTE_INPUT)
        {
            let text = turn_texts(turn).collect::<String>();
            self.set("input", text.into());
            return Ok(());
        }
        let mut input = InputWriter::new(self.request, self.names);
        for (at, turn) in turns.iter().enumerate().skip(first) {
            input.write_turn(at, turn)?;
        }
        let InputWriter {
            items,
            dropped_fields,
            dropped_parts,
            ..
        } = input;
        for field in dropped_fields {
            self.drop_field(field);
        }
        for name in dropped_parts {
            self.drop_name(&name);
        }
        let (items, dropped_reasoning) = join_reasoning(items);
        if dropped_reasoning {
            self.drop_field(RequestField::PastReasoning);
        }
        let items = match self.is_own {
            true => item_values(items),
            false => pair_calls_with_results(items),
        };
        if !items.is_empty() || !self.is_own {
            self.set("input", Value::Array(items));
        }
        Ok(())
    }

    /// Writes the members that only this format has. Those of other formats are reported as
    /// dropped, except the few that mean the same here.
    pub(crate) fn write_extra(&mut self) {
        let request = self.request;
        let mut back = Map::new();
        write_extra_fields(&request.extra, &mut back);
        for (name, value) in back {
            match (self.body.get_mut(&name), value) {
                (Some(Value::Object(existing)), Value::Object(more)) => existing.extend(more),
                (_, value) => self.set(&name, value),
            }
        }
        if let Some(extra) = request.extra.for_format("chat-completions") {
            for name in SHARED_WITH_CHAT_COMPLETIONS {
                if let Some(value) = extra.get(name) {
                    self.set(name, value.clone());
                }
            }
        }
        // `role` records the spelling `developer`, which is how system turns are written in this format.
        let is_shared = |name: &str| {
            request.client_format.name == "chat-completions"
                && (SHARED_WITH_CHAT_COMPLETIONS.contains(&name)
                    || matches!(name, SEARCH_CONTEXT_SIZE | "role"))
                || name == ALLOWED_DOMAINS
        };
        let dropped_parts: Vec<&str> = all_extra_fields(request)
            .flat_map(|extra| extra.names_unknown_to(NAME))
            .collect();
        for name in dropped_parts.into_iter().filter(|name| !is_shared(name)) {
            self.drop_name(name);
        }
    }
}

/// The extra fields of all levels of a request, outer before inner.
fn all_extra_fields(request: &Request) -> impl Iterator<Item = &ExtraFields> {
    let outer = std::iter::once(&request.extra);
    let reasoning = request.reasoning.iter().map(|reasoning| &reasoning.extra);
    let tools = request.tools.iter().map(|tool| &tool.extra);
    let turns = request.turns.iter().flat_map(|turn| {
        let parts = turn.parts.iter();
        let parts = parts.flat_map(|part| std::iter::once(part).chain(tool_result_parts(part)));
        std::iter::once(&turn.extra).chain(parts.map(|part| &part.extra))
    });
    outer.chain(reasoning).chain(tools).chain(turns)
}

/// The parts inside a tool result.
fn tool_result_parts(part: &Part) -> &[Part] {
    match &part.kind {
        PartKind::ToolResult { content, .. } => content,
        _ => &[],
    }
}

/// Whether a turn is written as `instructions`: the turn that the client sent as `instructions`, or plain system text at the beginning in another
/// format.
pub(crate) fn is_instruction_turn(turn: &Turn, is_own: bool) -> bool {
    if is_own {
        return has_note(&turn.extra, NOTE_INSTRUCTIONS);
    }
    let is_text =
        |part: &Part| matches!(part.kind, PartKind::Text { .. }) && part.cache_ttl.is_none();
    turn.role == Role::System && turn.parts.iter().all(is_text)
}

/// The texts of a turn's text parts.
pub(crate) fn turn_texts(turn: &Turn) -> impl Iterator<Item = &str> {
    turn.parts.iter().filter_map(|part| match &part.kind {
        PartKind::Text { text, .. } => Some(text.as_str()),
        _ => None,
    })
}
