//! Messages: a request judged.

use serde_json::Value;

use super::blocks::{self, Said};
use super::models::Model;
use super::tables::{self, BETA, MODEL, SYSTEM, USER};
use super::words::{self, invalid};
use super::{NEW, answer, schema, turns};
use crate::incoming::Seen;
use crate::place::{Place, Style};
use crate::plan::{Ask, Choice, Plan, Tool};
use crate::provider::Work;
use crate::refusal::{Checked, Judged, Refusal};
use crate::script::Answer;
use crate::shape::{field, list_of, text_of};

/// A request in order.
pub(super) struct Messages {
    pub(super) ask: Ask,
    pub(super) model: String,
    pub(super) stream: bool,
    /// Whether the text of thoughts is left out.
    pub(super) omits: bool,
    pub(super) caches_long: bool,
}

impl Work for Messages {
    fn ask(&self) -> &Ask {
        &self.ask
    }

    fn answer(&self, plan: &Plan) -> Judged<Answer> {
        answer::make(self, plan)
    }
}

/// Judges a request; one that only counts tokens has no `max_tokens`.
pub(super) fn read(request: &Seen, counts: bool) -> Judged<Messages> {
    let root = Place::root(Style::Dots);
    let mut body = request.body.clone();
    if request.header("anthropic-beta").is_some()
        && let Some(body) = body.as_object_mut()
    {
        body.retain(|name, _| !BETA.contains(&name.as_str()));
    }
    tables::REQUEST
        .check(&body, &root)
        .map_err(|flaw| words::flaw(&flaw))?;
    let name = text_of(&body, "model").unwrap_or_default();
    let model = Model::of(name);
    let new = request.header("anthropic-version") == Some(NEW);
    if !counts {
        limit(&body, name, model)?;
    }
    sampling(&body, model, new)?;
    thinking(&body, model)?;
    tools(&body, model, &root)?;
    output(&body)?;
    stops(&body)?;
    breakpoints(&body)?;
    let said = content(&body, new, &root)?;
    turns::check(&body, model)?;
    let thinking = text_of(&body["thinking"], "type");
    let by_default = thinking.is_none() && model.thinks_by_default();
    let display = text_of(&body["thinking"], "display");
    Ok(Messages {
        ask: ask(
            &body,
            said,
            thinking.is_some_and(|t| t != "disabled") || by_default,
        ),
        model: name.to_owned(),
        stream: body["stream"] == true,
        omits: display.map_or(model.thinks_by_default(), |display| display == "omitted"),
        caches_long: body.to_string().contains("\"ttl\":\"1h\""),
    })
}

fn refuse(rule: &'static str, message: impl Into<String>) -> Checked {
    Err(Box::new(invalid(rule, message)))
}

fn limit(body: &Value, name: &str, model: Model) -> Checked {
    let Some(limit) = field(body, "max_tokens").and_then(Value::as_u64) else {
        return refuse("missing-field", "max_tokens: Field required");
    };
    let most = model.most_tokens();
    if limit <= most {
        return Ok(());
    }
    let message = format!(
        "max_tokens: {limit} > {most}, which is the maximum allowed number of output tokens for \
         {name}"
    );
    refuse("model-limit", message)
}

fn sampling(body: &Value, model: Model, new: bool) -> Checked {
    for name in ["temperature", "top_p", "top_k"] {
        if (new || model.never_samples()) && field(body, name).is_some() {
            let message = format!("`{name}` is not supported for this model.");
            return refuse("sampling", message);
        }
    }
    let both = field(body, "temperature").is_some() && field(body, "top_p").is_some();
    if both && model.samples_by_one() {
        let message = "`temperature` and `top_p` cannot both be specified for this model. Please \
            use only one.";
        return refuse("temperature-and-top-p", message);
    }
    Ok(())
}

fn thinking(body: &Value, model: Model) -> Checked {
    let thinking = &body["thinking"];
    let Some(kind) = text_of(thinking, "type") else {
        return Ok(());
    };
    let budget = field(thinking, "budget_tokens").and_then(Value::as_u64);
    match kind {
        "disabled" => return Ok(()),
        "enabled" if !model.thinks() => {
            return refuse("thinking-model", "This model does not support thinking.");
        }
        "enabled" if !model.takes_budget() => {
            let message = "\"thinking.type.enabled\" is not supported for this model. Use \
                \"thinking.type.adaptive\" and \"output_config.effort\" to control thinking \
                behavior.";
            return refuse("thinking-model", message);
        }
        "adaptive" | "between_tools" if !model.adapts() => {
            let message = "adaptive thinking is not supported on this model";
            return refuse("thinking-model", message);
        }
        "enabled" if budget.is_none() => {
            return refuse(
                "missing-field",
                "thinking.enabled.budget_tokens: Field required",
            );
        }
        "adaptive" | "between_tools" if budget.is_some() => {
            let message = format!("thinking.{kind}.budget_tokens: Extra inputs are not permitted");
            return refuse("unknown-field", message);
        }
        _ => {}
    }
    let limit = field(body, "max_tokens").and_then(Value::as_u64);
    if let (Some(budget), Some(limit)) = (budget, limit)
        && budget >= limit
    {
        let message = "`max_tokens` must be greater than `thinking.budget_tokens`.";
        return refuse("budget", message);
    }
    if matches!(text_of(&body["tool_choice"], "type"), Some("any" | "tool")) {
        let message = "Thinking may not be enabled when tool_choice forces tool use.";
        return refuse("thinking-and-force", message);
    }
    thinking_sampling(body)
}

fn thinking_sampling(body: &Value) -> Checked {
    let number = |name: &str| field(body, name).and_then(Value::as_f64);
    if number("temperature").is_some_and(|t| t < 1.0) {
        let message = "`temperature` may only be set to 1 when thinking is enabled.";
        return refuse("thinking-and-sampling", message);
    }
    if number("top_k").is_some() {
        let message = "`top_k` must be unset when thinking is enabled.";
        return refuse("thinking-and-sampling", message);
    }
    if number("top_p").is_some_and(|p| p < 0.95) {
        let message =
            "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled.";
        return refuse("thinking-and-sampling", message);
    }
    Ok(())
}

/// Tools of Anthropic itself say so by their type.
fn is_hosted(tool: &Value) -> bool {
    text_of(tool, "type").is_some_and(|kind| kind != "custom")
}

fn tools(body: &Value, model: Model, root: &Place) -> Checked {
    let tools = list_of(body, "tools");
    let mut names = Vec::new();
    for (at, tool) in tools.iter().enumerate() {
        if is_hosted(tool) {
            continue;
        }
        let place = root.field("tools").at(at);
        tables::TOOL
            .check(tool, &place.field("custom"))
            .map_err(|flaw| words::flaw(&flaw))?;
        let name = text_of(tool, "name").unwrap_or_default();
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > 128 || !name.chars().all(legal) {
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
    choice(body, model, tools)
}

fn choice(body: &Value, model: Model, tools: &[Value]) -> Checked {
    let Some(choice) = field(body, "tool_choice") else {
        return Ok(());
    };
    if tools.is_empty() {
        let message = "tool_choice may only be specified while providing tools.";
        return refuse("choice-without-tools", message);
    }
    let kind = text_of(choice, "type").unwrap_or_default();
    if model.never_forced && matches!(kind, "any" | "tool") {
        let message = "tool_choice forces tool use is not compatible with this model.";
        return refuse("force", message);
    }
    if kind != "tool" {
        return Ok(());
    }
    let Some(name) = text_of(choice, "name") else {
        return refuse("missing-field", "tool_choice.tool.name: Field required");
    };
    if tools.iter().any(|tool| text_of(tool, "name") == Some(name)) {
        return Ok(());
    }
    refuse(
        "choice-unknown",
        format!("Tool '{name}' not found in provided tools"),
    )
}

fn output(body: &Value) -> Checked {
    let format = &body["output_config"]["format"];
    field(format, "schema").map_or(Ok(()), |schema| {
        schema::closed(schema, "output_config.format.schema")
    })
}

fn stops(body: &Value) -> Checked {
    let stops = list_of(body, "stop_sequences")
        .iter()
        .filter_map(Value::as_str);
    for (at, stop) in stops.enumerate() {
        if stop.trim().is_empty() {
            let message =
                format!("stop_sequences.{at}: each stop sequence must contain non-whitespace");
            return refuse("blank-stop", message);
        }
    }
    Ok(())
}

/// At most four places are marked for the cache.
fn breakpoints(body: &Value) -> Checked {
    let count = count(body);
    if count <= 4 {
        return Ok(());
    }
    let message =
        format!("A maximum of 4 blocks with cache_control may be provided. Found {count}.");
    refuse("cache-control", message)
}

fn count(value: &Value) -> usize {
    match value {
        Value::Object(object) => {
            let own = usize::from(object.get("cache_control").is_some_and(|c| !c.is_null()));
            // What tools are called with and described by is no block.
            let free = ["input", "input_schema", "schema"];
            let inner = object
                .iter()
                .filter(|(name, _)| !free.contains(&name.as_str()));
            own + inner.map(|(_, value)| count(value)).sum::<usize>()
        }
        Value::Array(list) => list.iter().map(count).sum(),
        _ => 0,
    }
}

/// Checks every block, and finds what the user said last.
fn content(body: &Value, new: bool, root: &Place) -> Judged<Said> {
    let mut system = Said::default();
    if let Some(content) = field(body, "system") {
        blocks::read(content, SYSTEM, &root.field("system"), &mut system)?;
    }
    let mut last = Said::default();
    let mut tool_blocks = false;
    for (at, message) in list_of(body, "messages").iter().enumerate() {
        let place = root.field("messages").at(at).field("content");
        let role = text_of(message, "role").unwrap_or_default();
        let owner = match role {
            "assistant" => MODEL,
            "system" => SYSTEM,
            _ => USER,
        };
        let mut said = Said::default();
        blocks::read(&message["content"], owner, &place, &mut said)?;
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
            "user" => last = said,
            "assistant" => last = Said::default(),
            _ => {}
        }
    }
    if tool_blocks && list_of(body, "tools").is_empty() {
        return Err(no_tools());
    }
    Ok(last)
}

fn no_tools() -> Box<Refusal> {
    let message = "Requests which have `tool_use` or `tool_result` blocks in `messages` must \
        define tools.";
    Box::new(invalid("tools-absent", message))
}

fn ask(body: &Value, said: Said, thinking: bool) -> Ask {
    let tools = list_of(body, "tools")
        .iter()
        .filter(|tool| !is_hosted(tool));
    let choice = &body["tool_choice"];
    let stops = list_of(body, "stop_sequences")
        .iter()
        .filter_map(Value::as_str);
    Ask {
        text: said.texts.join(" "),
        media: said.media,
        results: (!said.results.is_empty()).then(|| said.results.join(" ")),
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
