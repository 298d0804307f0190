//! A request of the hub for an upstream.

mod config;
mod parts;
mod tools;
mod turns;

#[cfg(test)]
mod tests;

use serde_json::{Map, Value};

pub(super) use parts::arguments_object;

use super::NAME;
use super::fields::insert_at;
use crate::error::Bad;
use crate::format::{Target, Written};
use crate::hub::{Field, Kind, ModelTraits, Own, Request, Role, Source, ToolNames};

/// See [`crate::Format::write_request`].
pub(super) fn write_request(request: &Request, target: &Target<'_>) -> Result<Written, Bad> {
    if let Some(member) = request.own_that_matters_to(NAME) {
        return Err(Bad::new(
            member,
            "cannot be honoured by this model's provider",
        ));
    }
    let mut writer = Writer::of(request, target);
    let mut body = Map::new();
    let (system, contents) = writer.conversation()?;
    body.insert("contents".to_owned(), Value::Array(contents));
    if !system.is_empty() {
        let content = serde_json::json!({"parts": system});
        body.insert("systemInstruction".to_owned(), content);
    }
    let tools = writer.tools()?;
    if !tools.is_empty() {
        body.insert("tools".to_owned(), Value::Array(tools));
    }
    if let Some(calling) = writer.tool_choice() {
        insert_at(&mut body, "toolConfig.functionCallingConfig", calling);
    }
    let config = writer.config()?;
    if !config.is_empty() {
        body.insert("generationConfig".to_owned(), Value::Object(config));
    }
    writer.rest(&mut body);
    if let Some(instruction) = writer.instruction.take() {
        add_instruction(&mut body, &instruction);
    }
    Ok(Written {
        body: crate::text::of_object(&body),
        dropped: writer.dropped,
        renamed_tools: writer.names.renamed(),
        json_tool: None,
    })
}

/// Whether an upstream fetches what `part` names by URL itself: the vendor's own stores always, other links on newer models.
pub(super) fn takes_url(part: &Kind, traits: &ModelTraits) -> bool {
    let (Kind::Image { source, .. }
    | Kind::Audio { source }
    | Kind::Video { source }
    | Kind::File { source, .. }) = part
    else {
        return true;
    };
    match source {
        Source::Url { url, .. } => traits.takes_urls || is_its_own(url),
        _ => true,
    }
}

fn is_its_own(url: &str) -> bool {
    use super::read::{is_upload, is_youtube};
    url.starts_with("gs://") || is_upload(url) || is_youtube(url)
}

/// What is gathered while a request is written.
struct Writer<'a> {
    request: &'a Request,
    traits: &'a ModelTraits,
    names: ToolNames,
    dropped: Vec<String>,
    /// The client speaks this format: what it says is left as it is wherever the model takes it.
    native: bool,
    /// A sentence to add to the system's text.
    instruction: Option<String>,
}

impl<'a> Writer<'a> {
    fn of(request: &'a Request, target: &Target<'a>) -> Self {
        let native = request.client == NAME;
        let names = match native {
            true => ToolNames::default(),
            false => ToolNames::of(request, target.traits.tool_name_max, is_legal),
        };
        Self {
            request,
            traits: target.traits,
            names,
            dropped: Vec::new(),
            native,
            instruction: None,
        }
    }

    /// Says that something of the client's was left out; once for each name.
    fn drop_name(&mut self, name: &str) {
        if !self.dropped.iter().any(|known| known == name) {
            self.dropped.push(name.to_owned());
        }
    }

    fn drop_field(&mut self, field: Field) {
        self.drop_name(self.request.name_of(field));
    }

    fn drop_own(&mut self, own: &Own) {
        for name in own.lost_to(NAME) {
            self.drop_name(name);
        }
    }

    /// Members of the request that stand beside the rest, and those of other formats.
    fn rest(&mut self, body: &mut Map<String, Value>) {
        let request = self.request;
        for (path, value) in request.own.for_format(NAME).into_iter().flatten() {
            if !path.starts_with('.') {
                insert_at(body, path, value.clone());
            }
        }
        self.drop_own(&request.own);
        self.service_tier(body);
        for (field, is_there) in [
            (Field::ParallelTools, request.parallel_tools == Some(false)),
            (Field::Verbosity, request.verbosity.is_some()),
            (Field::User, request.user.is_some()),
            (Field::CacheKey, request.cache_key.is_some()),
            (Field::Metadata, request.metadata.is_some()),
        ] {
            if is_there {
                self.drop_field(field);
            }
        }
    }

    fn service_tier(&mut self, body: &mut Map<String, Value>) {
        match self.request.service_tier.as_deref() {
            None => {}
            Some(tier) if self.native || matches!(tier, "flex" | "priority") => {
                body.insert("serviceTier".to_owned(), Value::String(tier.to_owned()));
            }
            // What happens without it.
            Some("auto" | "default") => {}
            Some(_) => self.drop_field(Field::ServiceTier),
        }
    }

    /// Where the turns after the system's begin.
    fn first_turn(&self) -> usize {
        let is_system = |turn: &&crate::hub::Turn| turn.role == Role::System;
        self.request.turns.iter().take_while(is_system).count()
    }
}

/// Function names: a letter or `_`, then letters, digits and a few signs.
fn is_legal(first: bool, c: char) -> bool {
    c.is_ascii_alphabetic()
        || c == '_'
        || (!first && (c.is_ascii_digit() || matches!(c, '.' | ':' | '-')))
}

fn add_instruction(body: &mut Map<String, Value>, text: &str) {
    let part = serde_json::json!({"text": text});
    match body
        .get_mut("systemInstruction")
        .and_then(|system| system["parts"].as_array_mut())
    {
        Some(parts) => parts.push(part),
        None => insert_at(body, "systemInstruction.parts", Value::Array(vec![part])),
    }
}
