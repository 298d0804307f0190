//! Messages: a request accepted.

use serde_json::{Value, json};

use super::blocks::{self, Content};
use super::invalid;
use super::{SPEC, generation, response, schema, turns};
use crate::chat_output::{ChatOutput, ChatPrompt, Choice, Tool};
use crate::event_stream::Answer;
use crate::provider::ChatRequest;
use crate::rejection::{Checked, OrRejected, Rejection};
use crate::request::ReceivedRequest;
use crate::tables::functions::is_name;
use crate::tables::path::{JsonPath, PathStyle};
use crate::tables::schema::{field, list_of, text_of};

/// The generation from which models think if they are not told otherwise.
const THINKS: f64 = 4.7;

/// A request in order.
pub(super) struct Messages {
    pub(super) prompt: ChatPrompt,
    pub(super) model: String,
    pub(super) stream: bool,
    /// Whether the text of thoughts is left out.
    pub(super) omits: bool,
    pub(super) caches_long: bool,
}

impl ChatRequest for Messages {
    fn prompt(&self) -> &ChatPrompt {
        &self.prompt
    }

    fn answer(&self, plan: &ChatOutput) -> OrRejected<Answer> {
        response::make(self, plan)
    }
}

/// Judges a request; one that only counts tokens has no `max_tokens`.
pub(super) fn read(request: &ReceivedRequest, counts: bool) -> OrRejected<Messages> {
    let root = JsonPath::root(PathStyle::Dots);
    let mut body = request.body.clone();
    if request.header("anthropic-beta").is_some()
        && let Some(body) = body.as_object_mut()
    {
        body.retain(|name, _| {
            !SPEC.tables["beta"]
                .as_array()
                .is_some_and(|all| all.iter().any(|one| one == name))
        });
    }
    super::check("messages", &body, &root)?;
    let name = text_of(&body, "model").unwrap_or_default();
    let generation = generation(name);
    let vars = json!({
        "generation": generation, "counts": counts, "breakpoints": breakpoints(&body),
    });
    let vars = vars.as_object().cloned().unwrap_or_default();
    let rules = |rules| SPEC.check_body(rules, &body, "messages", &vars, Some(request));
    rules("messages")?;
    tools(&body, &root)?;
    rules("choice")?;
    output(&body)?;
    rules("stops")?;
    let new = request.header("anthropic-version") == Some("2026-10-21");
    let found = content(&body, new, &root)?;
    turns::check(&body, generation)?;
    let thinking = text_of(&body["thinking"], "type");
    let by_default = thinking.is_none() && (generation >= THINKS);
    let display = text_of(&body["thinking"], "display");
    Ok(Messages {
        prompt: prompt(
            &body,
            found,
            thinking.is_some_and(|t| t != "disabled") || by_default,
        ),
        model: name.to_owned(),
        stream: body["stream"] == true,
        omits: display.map_or(generation >= THINKS, |display| display == "omitted"),
        caches_long: body.to_string().contains("\"ttl\":\"1h\""),
    })
}

fn refuse(rule: &'static str, message: impl Into<String>) -> Checked {
    Err(Box::new(invalid(rule, message)))
}

/// Tools of Anthropic itself say so by their type.
fn is_hosted(tool: &Value) -> bool {
    text_of(tool, "type").is_some_and(|kind| kind != "custom")
}

fn tools(body: &Value, root: &JsonPath) -> Checked {
    let tools = list_of(body, "tools");
    let mut names = Vec::new();
    for (at, tool) in tools.iter().enumerate() {
        if is_hosted(tool) {
            continue;
        }
        let place = root.field("tools").at(at);
        super::check("tool", tool, &place.field("custom"))?;
        let name = text_of(tool, "name").unwrap_or_default();
        if name.len() > 128 || !is_name(name) {
            let at = place.field("custom").field("name").write();
            let message = format!("{at}: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'");
            return refuse("tool-name", message);
        }
        if names.contains(&name) {
            return refuse("duplicate-tool", "tools: Tool names must be unique.");
        }
        names.push(name);
        schema::of_tool(tool, &place)?;
    }
    Ok(())
}

fn output(body: &Value) -> Checked {
    let format = &body["output_config"]["format"];
    field(format, "schema").map_or(Ok(()), |schema| {
        schema::closed(schema, "output_config.format.schema")
    })
}

/// How many blocks are marked for the cache.
fn breakpoints(value: &Value) -> usize {
    match value {
        Value::Object(object) => {
            let own = usize::from(object.get("cache_control").is_some_and(|c| !c.is_null()));
            // What tools are called with and described by is no block.
            let free = ["input", "input_schema", "schema"];
            let inner = object
                .iter()
                .filter(|(name, _)| !free.contains(&name.as_str()));
            own + inner.map(|(_, value)| breakpoints(value)).sum::<usize>()
        }
        Value::Array(list) => list.iter().map(breakpoints).sum(),
        _ => 0,
    }
}

/// Checks every block, and finds what the user said last.
fn content(body: &Value, new: bool, root: &JsonPath) -> OrRejected<Content> {
    let mut system = Content::default();
    if let Some(content) = field(body, "system") {
        blocks::read(content, "system", &root.field("system"), &mut system)?;
    }
    let mut last = Content::default();
    let mut tool_blocks = false;
    for (at, message) in list_of(body, "messages").iter().enumerate() {
        let place = root.field("messages").at(at).field("content");
        let role = text_of(message, "role").unwrap_or_default();
        let owner = match role {
            "assistant" => "assistant",
            "system" => "system",
            _ => "user",
        };
        let mut found = Content::default();
        blocks::read(&message["content"], owner, &place, &mut found)?;
        let kinds = list_of(message, "content")
            .iter()
            .filter_map(|b| text_of(b, "type"));
        for kind in kinds {
            tool_blocks |= matches!(kind, "tool_use" | "tool_result");
            if new && role == "assistant" && kind == "document" {
                let message = "document blocks are not allowed in assistant messages";
                return Err(Box::new(invalid("assistant-document", message)));
            }
        }
        match role {
            "user" => last = found,
            "assistant" => last = Content::default(),
            _ => {}
        }
    }
    if tool_blocks && list_of(body, "tools").is_empty() {
        return Err(no_tools());
    }
    Ok(last)
}

fn no_tools() -> Box<Rejection> {
    let message = "Requests which have `tool_use` or `tool_result` blocks in `messages` must \
        define tools.";
    Box::new(invalid("tools-absent", message))
}

fn prompt(body: &Value, found: Content, thinking: bool) -> ChatPrompt {
    let tools = list_of(body, "tools")
        .iter()
        .filter(|tool| !is_hosted(tool));
    let choice = &body["tool_choice"];
    let stops = list_of(body, "stop_sequences")
        .iter()
        .filter_map(Value::as_str);
    ChatPrompt {
        text: found.texts.join(" "),
        media: found.media,
        results: (!found.results.is_empty()).then(|| found.results.join(" ")),
        tools: tools
            .map(|tool| Tool {
                name: text_of(tool, "name").unwrap_or_default().to_owned(),
                schema: tool["input_schema"].clone(),
                custom: false,
            })
            .collect(),
        choice: match text_of(choice, "type") {
            Some("none") => Choice::Never,
            Some("any") => Choice::Any,
            Some("tool") => Choice::One(text_of(choice, "name").unwrap_or_default().to_owned()),
            _ => Choice::Auto,
        },
        parallel: choice["disable_parallel_tool_use"] != true,
        thinking,
        schema: field(&body["output_config"]["format"], "schema").cloned(),
        stops: stops.map(str::to_owned).collect(),
        limit: field(body, "max_tokens").and_then(Value::as_u64),
        count: 1,
    }
}
