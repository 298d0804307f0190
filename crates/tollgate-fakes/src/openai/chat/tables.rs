//! The fields of a chat-completions request.

use crate::shape::{Kind, Shape};

const NAMED: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];
const TIERS: &[&str] = &["auto", "default", "flex", "scale", "priority", "fast"];

pub(super) static REQUEST: Shape = Shape {
    required: &["model", "messages"],
    fields: &[
        ("model", Kind::Str),
        ("messages", Kind::List(&Kind::Object)),
        ("audio", Kind::Object),
        ("frequency_penalty", Kind::Num(-2.0, 2.0)),
        ("presence_penalty", Kind::Num(-2.0, 2.0)),
        ("function_call", Kind::Either(&[Kind::Str, Kind::Object])),
        ("functions", Kind::List(&Kind::Object)),
        ("logit_bias", Kind::Object),
        ("logprobs", Kind::Bool),
        ("top_logprobs", Kind::Int(0, 20)),
        ("max_completion_tokens", Kind::Int(1, 1_000_000)),
        ("max_tokens", Kind::Int(1, 1_000_000)),
        ("metadata", Kind::Object),
        ("modalities", Kind::List(&Kind::OneOf(&["text", "audio"]))),
        ("moderation", Kind::Object),
        ("n", Kind::Int(1, 128)),
        ("parallel_tool_calls", Kind::Bool),
        ("prediction", Kind::Object),
        ("prompt_cache_key", Kind::Str),
        ("prompt_cache_options", Kind::Object),
        ("prompt_cache_retention", Kind::OneOf(&["in_memory", "24h"])),
        ("reasoning_effort", Kind::OneOf(NAMED)),
        ("response_format", Kind::Shape(&RESPONSE_FORMAT)),
        ("safety_identifier", Kind::Text(128)),
        ("seed", Kind::Int(i64::MIN, i64::MAX)),
        ("service_tier", Kind::OneOf(TIERS)),
        ("stop", Kind::Either(&[Kind::Str, Kind::Few(4, &Kind::Str)])),
        ("store", Kind::Bool),
        ("stream", Kind::Bool),
        ("stream_options", Kind::Shape(&STREAM_OPTIONS)),
        ("temperature", Kind::Num(0.0, 2.0)),
        ("top_p", Kind::Num(0.0, 1.0)),
        ("tool_choice", Kind::Either(&[Kind::Str, Kind::Object])),
        ("tools", Kind::Few(128, &Kind::Object)),
        ("user", Kind::Str),
        ("verbosity", Kind::OneOf(&["low", "medium", "high"])),
        ("web_search_options", Kind::Object),
    ],
};

static STREAM_OPTIONS: Shape = Shape {
    required: &[],
    fields: &[
        ("include_usage", Kind::Bool),
        ("include_obfuscation", Kind::Bool),
    ],
};

static RESPONSE_FORMAT: Shape = Shape {
    required: &["type"],
    fields: &[
        ("type", Kind::OneOf(&["text", "json_object", "json_schema"])),
        ("json_schema", Kind::Shape(&JSON_SCHEMA)),
    ],
};

static JSON_SCHEMA: Shape = Shape {
    required: &["name"],
    fields: &[
        ("name", Kind::Str),
        ("description", Kind::Str),
        ("schema", Kind::Object),
        ("strict", Kind::Bool),
    ],
};

/// A tool; which of the two it is stands in `type`.
pub(super) static TOOL: Shape = Shape {
    required: &["type"],
    fields: &[
        ("type", Kind::OneOf(&["function", "custom"])),
        ("function", Kind::Shape(&FUNCTION)),
        ("custom", Kind::Shape(&CUSTOM)),
    ],
};

static FUNCTION: Shape = Shape {
    required: &["name"],
    fields: &[
        ("name", Kind::Str),
        ("description", Kind::Str),
        ("parameters", Kind::Object),
        ("strict", Kind::Bool),
    ],
};

static CUSTOM: Shape = Shape {
    required: &["name"],
    fields: &[
        ("name", Kind::Str),
        ("description", Kind::Str),
        ("format", Kind::Shape(&GRAMMAR)),
    ],
};

static GRAMMAR: Shape = Shape {
    required: &["type"],
    fields: &[
        ("type", Kind::OneOf(&["text", "grammar"])),
        ("grammar", Kind::Object),
    ],
};

const CONTENT: Kind = Kind::Either(&[Kind::Str, Kind::List(&Kind::Object)]);

/// The messages by their roles.
pub(super) static MESSAGES: &[(&str, Shape)] = &[
    ("system", INSTRUCTION),
    ("developer", INSTRUCTION),
    ("user", INSTRUCTION),
    (
        "assistant",
        Shape {
            required: &[],
            fields: &[
                ("role", Kind::Str),
                ("content", CONTENT),
                ("name", Kind::Str),
                ("refusal", Kind::Str),
                ("tool_calls", Kind::List(&Kind::Shape(&TOOL_CALL))),
                ("audio", Kind::Object),
                ("function_call", Kind::Object),
                ("annotations", Kind::Array),
                ("reasoning_content", Kind::Str),
            ],
        },
    ),
    (
        "tool",
        Shape {
            required: &["content", "tool_call_id"],
            fields: &[
                ("role", Kind::Str),
                ("content", CONTENT),
                ("tool_call_id", Kind::Text(40)),
            ],
        },
    ),
    (
        "function",
        Shape {
            required: &["name"],
            fields: &[
                ("role", Kind::Str),
                ("content", Kind::Str),
                ("name", Kind::Str),
            ],
        },
    ),
];

const INSTRUCTION: Shape = Shape {
    required: &["content"],
    fields: &[
        ("role", Kind::Str),
        ("content", CONTENT),
        ("name", Kind::Str),
    ],
};

static TOOL_CALL: Shape = Shape {
    required: &["id", "type"],
    fields: &[
        ("id", Kind::Text(40)),
        ("type", Kind::OneOf(&["function", "custom"])),
        ("function", Kind::Shape(&CALLED)),
        ("custom", Kind::Shape(&CALLED_CUSTOM)),
    ],
};

static CALLED: Shape = Shape {
    required: &["name", "arguments"],
    fields: &[("name", Kind::Str), ("arguments", Kind::Str)],
};

static CALLED_CUSTOM: Shape = Shape {
    required: &["name", "input"],
    fields: &[("name", Kind::Str), ("input", Kind::Str)],
};

/// The parts of a content: their type, the roles that have them, their fields.
pub(super) static PARTS: &[(&str, &[&str], Shape)] = &[
    (
        "text",
        &["system", "developer", "user", "assistant", "tool"],
        Shape {
            required: &["text"],
            fields: &[
                ("type", Kind::Str),
                ("text", Kind::Str),
                ("prompt_cache_breakpoint", Kind::Object),
            ],
        },
    ),
    (
        "image_url",
        &["user"],
        Shape {
            required: &["image_url"],
            fields: &[
                ("type", Kind::Str),
                ("image_url", Kind::Shape(&IMAGE)),
                ("prompt_cache_breakpoint", Kind::Object),
            ],
        },
    ),
    (
        "input_audio",
        &["user"],
        Shape {
            required: &["input_audio"],
            fields: &[
                ("type", Kind::Str),
                ("input_audio", Kind::Shape(&AUDIO)),
                ("prompt_cache_breakpoint", Kind::Object),
            ],
        },
    ),
    (
        "file",
        &["user"],
        Shape {
            required: &["file"],
            fields: &[
                ("type", Kind::Str),
                ("file", Kind::Shape(&FILE)),
                ("prompt_cache_breakpoint", Kind::Object),
            ],
        },
    ),
    (
        "refusal",
        &["assistant"],
        Shape {
            required: &["refusal"],
            fields: &[("type", Kind::Str), ("refusal", Kind::Str)],
        },
    ),
];

static IMAGE: Shape = Shape {
    required: &["url"],
    fields: &[
        ("url", Kind::Str),
        ("detail", Kind::OneOf(&["auto", "low", "high", "original"])),
    ],
};

static AUDIO: Shape = Shape {
    required: &["data", "format"],
    fields: &[
        ("data", Kind::Str),
        ("format", Kind::OneOf(&["wav", "mp3"])),
    ],
};

static FILE: Shape = Shape {
    required: &[],
    fields: &[
        ("file_data", Kind::Str),
        ("filename", Kind::Str),
        ("file_id", Kind::Str),
    ],
};
