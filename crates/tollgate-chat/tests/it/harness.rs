//! Functions that all tests share: formats by name, settings and events from JSON, and expected outcomes in files.

use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tollgate_chat::hub::{
    Citation, Event, ExtraFields, FinishReason, ModelCapabilities, Opaque, Part, PartKind,
    ReasoningControl, Request, SamplingSupport, SearchWithFunctions, Source, Usage,
};
use tollgate_chat::{
    ErrorBody, FORMATS, Format, InvalidRequest, MalformedResponse, RenderOptions, Target,
    WrittenRequest,
};

pub(crate) fn format(name: &Value) -> &'static dyn Format {
    let name = name.as_str().unwrap();
    tollgate_chat::by_name(name).unwrap_or_else(|| panic!("{name} is no format"))
}

/// The format's name as a `'static` string, as the hub types need it.
pub(crate) fn static_name(name: &str) -> &'static str {
    let known = FORMATS.iter().find(|format| format.name() == name);
    known.map(|format| format.name()).unwrap()
}

/// The files of `tests/FOLDER`, sorted.
pub(crate) fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests")
        .join(folder);
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

/// Whether expected outcomes are rewritten (`TOLLGATE_BLESS=1`).
pub(crate) fn blesses() -> bool {
    std::env::var("TOLLGATE_BLESS").is_ok_and(|value| value == "1")
}

pub(crate) fn parse(text: &[u8]) -> Value {
    serde_json::from_slice(text)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(text)))
}

/// A value's debug output in one line, without members that are empty.
pub(crate) fn compact(value: &impl Debug) -> String {
    let text = format!("{value:#?}");
    let is_empty = |line: &&str| {
        [": None,", ": [],", ": false,"]
            .iter()
            .any(|end| line.ends_with(end))
    };
    let lines: Vec<&str> = text
        .lines()
        .map(str::trim)
        .filter(|line| !is_empty(line))
        .collect();
    lines.join(" ").replace(" extra: ExtraFields( None, ),", "")
}

pub(crate) fn rejected(error: &InvalidRequest) -> Value {
    json!({"rejected": {"field": error.field, "message": error.message}})
}

pub(crate) fn malformed(error: &MalformedResponse) -> Value {
    json!({"malformed": compact(error)})
}

/// The written request as JSON, without empty members.
pub(crate) fn written(outcome: Result<WrittenRequest, InvalidRequest>) -> Value {
    let written = match outcome {
        Ok(written) => written,
        Err(error) => return rejected(&error),
    };
    let mut out = json!({"body": parse(&written.body)});
    if !written.dropped.is_empty() {
        out["dropped"] = json!(written.dropped);
    }
    if !written.renamed_tools.is_empty() {
        out["renamed_tools"] = json!(written.renamed_tools);
    }
    if let Some(name) = written.json_tool {
        out["json_tool"] = json!(name);
    }
    out
}

/// The bytes that a case describes: a text, JSON, `{"bytes": […]}`, `{"repeat": [TEXT, COUNT]}` or `{"concat": […]}`.
pub(crate) fn bytes(value: &Value) -> Vec<u8> {
    let number = |value: &Value| value.as_u64().unwrap() as usize;
    if let Some(text) = value.as_str() {
        text.as_bytes().to_vec()
    } else if let Some(list) = value["bytes"].as_array() {
        list.iter().map(|byte| number(byte) as u8).collect()
    } else if let Some(list) = value["concat"].as_array() {
        list.iter().map(bytes).collect::<Vec<_>>().concat()
    } else if value["repeat"].is_array() {
        bytes(&value["repeat"][0]).repeat(number(&value["repeat"][1]))
    } else {
        value.to_string().into_bytes()
    }
}

/// Settings of an upstream model: the default ones with the members of `value`.
pub(crate) fn capabilities(value: &Value) -> ModelCapabilities {
    let mut out = ModelCapabilities::default();
    let small = |value: &Value| u32::try_from(value.as_u64().unwrap()).unwrap();
    let flag = |value: &Value| value.as_bool().unwrap();
    for (name, value) in value.as_object().into_iter().flatten() {
        match name.as_str() {
            "max_output_tokens" => out.max_output_tokens = value.as_u64(),
            "supports_json_schema" => out.supports_json_schema = flag(value),
            "supports_tools_with_json" => out.supports_tools_with_json = flag(value),
            "supports_forced_tools" => out.supports_forced_tools = flag(value),
            "uses_max_completion_tokens" => out.uses_max_completion_tokens = flag(value),
            "accepts_top_k" => out.accepts_top_k = flag(value),
            "rejects_unknown_fields" => out.rejects_unknown_fields = flag(value),
            "requires_signatures" => out.requires_signatures = flag(value),
            "requires_past_reasoning" => out.requires_past_reasoning = flag(value),
            "accepts_urls" => out.accepts_urls = flag(value),
            "accepts_stop" => out.accepts_stop = flag(value),
            "supports_chat_search" => out.supports_chat_search = flag(value),
            "search_with_functions" => {
                let all = [
                    SearchWithFunctions::WithServerSideInvocations,
                    SearchWithFunctions::Rejected,
                ];
                out.search_with_functions = by_debug_name(&all, value);
            }
            "max_tool_name_length" => out.max_tool_name_length = small(value) as usize,
            "sampling" => {
                let all = [
                    SamplingSupport::All,
                    SamplingSupport::TemperatureOrTopP,
                    SamplingSupport::None,
                ];
                out.sampling = by_debug_name(&all, value);
            }
            "thinking" => {
                let (effort, budget, level) = (&value["effort"], &value["budget"], &value["level"]);
                out.thinking = if effort.is_object() {
                    ReasoningControl::Effort {
                        can_disable: flag(&effort["can_disable"]),
                    }
                } else if budget.is_object() {
                    let can_disable = flag(&budget["can_disable"]);
                    let (min, max) = (small(&budget["min"]), small(&budget["max"]));
                    ReasoningControl::Budget {
                        min,
                        max,
                        can_disable,
                    }
                } else if level.is_object() {
                    let (minimal, medium) = (flag(&level["minimal"]), flag(&level["medium"]));
                    ReasoningControl::Level { minimal, medium }
                } else {
                    ReasoningControl::Unsupported
                };
            }
            other => panic!("{other} is no capability"),
        }
    }
    out
}

/// The one of `all` whose debug output is `name`.
fn by_debug_name<T: Debug + Copy>(all: &[T], name: &Value) -> T {
    let found = all.iter().find(|value| name == &format!("{value:?}"));
    *found.unwrap_or_else(|| panic!("{name} is none of {all:?}"))
}

pub(crate) fn target<'a>(case: &'a Value, capabilities: &'a ModelCapabilities) -> Target<'a> {
    let target = &case["target"];
    Target {
        model: target["model"].as_str().unwrap_or("up"),
        stream: target["stream"].as_bool().unwrap_or(false),
        capabilities,
        default_max_tokens: target["default_max_tokens"].as_u64().unwrap_or(8192),
    }
}

pub(crate) fn options<'a>(case: &'a Value, request: Option<&'a Request>) -> RenderOptions<'a> {
    let options = &case["options"];
    let flag = |name: &str| options[name].as_bool().unwrap_or(false);
    RenderOptions {
        model: options["model"].as_str().unwrap_or("mine"),
        created: options["created"].as_i64().unwrap_or(7),
        seed: options["seed"].as_str().unwrap_or("seed"),
        include_usage: flag("include_usage"),
        estimated_prompt_tokens: options["estimated_prompt_tokens"].as_u64().unwrap_or(11),
        request,
        json_array: flag("json_array"),
    }
}

pub(crate) fn error_body(value: &Value) -> ErrorBody {
    let text = |name: &str| value[name].as_str().map(str::to_owned);
    ErrorBody {
        status: u16::try_from(value["status"].as_u64().unwrap()).unwrap(),
        message: text("message").unwrap_or_default(),
        param: text("param"),
        code: text("code"),
        details: value.get("details").cloned(),
        bare: value["bare"].as_bool().unwrap_or(false),
    }
}

/// The error that a client receives for a malformed upstream response.
pub(crate) fn client_error(error: &MalformedResponse) -> ErrorBody {
    let status = match error {
        MalformedResponse::Upstream(error) => error.status.unwrap_or(502),
        _ => 502,
    };
    error_body(&json!({"status": status, "message": error.to_string(), "bare": true}))
}

/// An event: its first member names it (see `tests/cases/*/write_stream.json`).
pub(crate) fn event(value: &Value) -> Event {
    let small = |value: &Value| value.as_u64().map_or(0, |n| u32::try_from(n).unwrap());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let optional = |value: &Value| value.as_str().map(str::to_owned);
    let flag = |value: &Value| value.as_bool().unwrap_or(false);
    let (choice, call) = (small(&value["choice"]), small(&value["call"]));
    let (kind, first) = value.as_object().unwrap().iter().next().unwrap();
    match kind.as_str() {
        "start" => Event::Start {
            id: text(&first["id"]),
            model: text(&first["model"]),
            created: first["created"].as_i64(),
            usage: first["usage"].is_object().then(|| usage(&first["usage"])),
        },
        "text" => Event::Text {
            choice,
            text: text(first),
        },
        "text_end" => Event::TextEnd {
            choice,
            signature: signature(first),
        },
        "reasoning" => Event::Reasoning {
            choice,
            text: text(first),
            summary: flag(&value["summary"]),
        },
        "reasoning_end" => Event::ReasoningEnd {
            choice,
            signature: signature(first),
            id: optional(&value["id"]),
        },
        "redacted" => Event::RedactedReasoning {
            choice,
            data: signature(first).unwrap(),
        },
        "refusal" => Event::Refusal {
            choice,
            text: text(first),
        },
        "tool_start" => Event::ToolStart {
            choice,
            call: small(first),
            id: text(&value["id"]),
            name: text(&value["name"]),
            custom: flag(&value["custom"]),
        },
        "arguments" => Event::ToolArguments {
            choice,
            call,
            json: text(first),
        },
        "tool_end" => Event::ToolEnd {
            choice,
            call: small(first),
            signature: signature(&value["signature"]),
        },
        "citation" => Event::Citation {
            choice,
            citation: citation(first),
        },
        "part" => Event::Part {
            choice,
            part: part(first),
        },
        "logprobs" => Event::Logprobs {
            choice,
            value: first.clone(),
        },
        "usage" => Event::Usage(usage(first)),
        "finish" => Event::Finish {
            choice,
            finish: by_debug_name(FINISH_REASONS, first),
            stop_sequence: optional(&value["stop_sequence"]),
        },
        other => panic!("{other} is no event"),
    }
}

pub(crate) const FINISH_REASONS: &[FinishReason] = &[
    FinishReason::EndTurn,
    FinishReason::StopSequence,
    FinishReason::Length,
    FinishReason::ContextFull,
    FinishReason::ToolCall,
    FinishReason::Refusal,
    FinishReason::PromptBlocked,
    FinishReason::Pause,
    FinishReason::InvalidToolCall,
    FinishReason::Other,
];

fn signature(value: &Value) -> Option<Opaque> {
    Some(Opaque::new(value[0].as_str()?, value[1].as_str()?))
}

fn usage(value: &Value) -> Usage {
    let count = |name: &str| value[name].as_u64().unwrap_or(0);
    Usage {
        input: count("input"),
        cache_read: count("cache_read"),
        cache_write: count("cache_write"),
        cache_write_1h: count("cache_write_1h"),
        tool_prompt: count("tool_prompt"),
        output: count("output"),
        reasoning: count("reasoning"),
        input_image: count("input_image"),
        input_audio: count("input_audio"),
        output_image: count("output_image"),
        output_audio: count("output_audio"),
        web_searches: count("web_searches"),
        web_fetches: count("web_fetches"),
    }
}

fn citation(value: &Value) -> Citation {
    let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
    Citation {
        url: text("url"),
        title: text("title"),
        start: value["start"].as_u64(),
        end: value["end"].as_u64(),
        cited_text: value["cited_text"].as_str().map(str::to_owned),
        extra: ExtraFields::NONE,
    }
}

fn part(value: &Value) -> Part {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (kind, first) = value.as_object().unwrap().iter().next().unwrap();
    Part::new(match kind.as_str() {
        "text" => return Part::text(text(first)),
        "refusal" => PartKind::Refusal(text(first)),
        "format_specific" => PartKind::FormatSpecific {
            format: static_name(first[0].as_str().unwrap()),
            value: first[1].clone(),
        },
        "tool_call" => PartKind::ToolCall {
            id: text(&first["id"]),
            name: text(&first["name"]),
            arguments: text(&first["arguments"]),
            custom: first["custom"] == true,
            signature: signature(&first["signature"]),
        },
        "image" => PartKind::Image {
            source: Source::Base64 {
                media_type: text(&first[0]),
                data: text(&first[1]),
            },
            detail: None,
        },
        other => panic!("{other} is no part"),
    })
}
