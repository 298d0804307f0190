//! The fields of a responses request.

use crate::shape::{Kind, Shape};

const EFFORTS: &[&str] = &["none", "minimal", "low", "medium", "high", "xhigh", "max"];
const TIERS: &[&str] = &[
    "auto",
    "default",
    "flex",
    "scale",
    "priority",
    "fast",
    "ultrafast",
];
const INCLUDES: &[&str] = &[
    "reasoning.encrypted_content",
    "message.output_text.logprobs",
    "web_search_call.results",
    "web_search_call.action.sources",
    "file_search_call.results",
    "code_interpreter_call.outputs",
    "computer_call_output.output.image_url",
    "message.input_image.image_url",
];

pub(super) static REQUEST: Shape = Shape {
    required: &["model"],
    fields: &[
        ("model", Kind::Str),
        (
            "input",
            Kind::Either(&[Kind::Str, Kind::List(&Kind::Object)]),
        ),
        ("instructions", Kind::Str),
        ("max_output_tokens", Kind::Int(1, 1_000_000)),
        ("max_tool_calls", Kind::Int(1, 1_000_000)),
        ("metadata", Kind::Object),
        ("parallel_tool_calls", Kind::Bool),
        ("previous_response_id", Kind::Str),
        ("conversation", Kind::Either(&[Kind::Str, Kind::Object])),
        ("store", Kind::Bool),
        ("background", Kind::Bool),
        ("include", Kind::List(&Kind::OneOf(INCLUDES))),
        ("reasoning", Kind::Shape(&REASONING)),
        ("text", Kind::Shape(&TEXT)),
        ("temperature", Kind::Num(0.0, 2.0)),
        ("top_p", Kind::Num(0.0, 1.0)),
        ("top_logprobs", Kind::Int(0, 20)),
        ("tools", Kind::List(&Kind::Object)),
        ("tool_choice", Kind::Either(&[Kind::Str, Kind::Object])),
        ("truncation", Kind::OneOf(&["auto", "disabled"])),
        ("stream", Kind::Bool),
        ("stream_options", Kind::Shape(&STREAM_OPTIONS)),
        ("service_tier", Kind::OneOf(TIERS)),
        ("prompt", Kind::Object),
        ("prompt_cache_key", Kind::Str),
        ("prompt_cache_options", Kind::Object),
        ("prompt_cache_retention", Kind::OneOf(&["in_memory", "24h"])),
        ("safety_identifier", Kind::Text(128)),
        ("user", Kind::Str),
        ("moderation", Kind::Object),
        ("context_management", Kind::Array),
        ("access_programs", Kind::Object),
        ("image", Kind::Object),
    ],
};

static STREAM_OPTIONS: Shape = Shape {
    required: &[],
    fields: &[("include_obfuscation", Kind::Bool)],
};

static REASONING: Shape = Shape {
    required: &[],
    fields: &[
        ("effort", Kind::OneOf(EFFORTS)),
        ("summary", Kind::OneOf(&["auto", "concise", "detailed"])),
        (
            "generate_summary",
            Kind::OneOf(&["auto", "concise", "detailed"]),
        ),
        (
            "context",
            Kind::OneOf(&["auto", "current_turn", "all_turns"]),
        ),
        ("mode", Kind::OneOf(&["standard", "pro"])),
    ],
};

static TEXT: Shape = Shape {
    required: &[],
    fields: &[
        ("format", Kind::Shape(&FORMAT)),
        ("verbosity", Kind::OneOf(&["low", "medium", "high"])),
    ],
};

static FORMAT: Shape = Shape {
    required: &["type"],
    fields: &[
        ("type", Kind::OneOf(&["text", "json_object", "json_schema"])),
        ("name", Kind::Str),
        ("schema", Kind::Object),
        ("description", Kind::Str),
        ("strict", Kind::Bool),
    ],
};

pub(super) static FUNCTION: Shape = Shape {
    required: &["name"],
    fields: &[
        ("type", Kind::Str),
        ("name", Kind::Str),
        ("description", Kind::Str),
        ("parameters", Kind::Object),
        ("strict", Kind::Bool),
        ("defer_loading", Kind::Bool),
        ("allowed_callers", Kind::Array),
        ("output_schema", Kind::Object),
        ("async", Kind::Bool),
    ],
};

pub(super) static CUSTOM: Shape = Shape {
    required: &["name"],
    fields: &[
        ("type", Kind::Str),
        ("name", Kind::Str),
        ("description", Kind::Str),
        ("format", Kind::Shape(&GRAMMAR)),
    ],
};

static GRAMMAR: Shape = Shape {
    required: &["type"],
    fields: &[
        ("type", Kind::OneOf(&["text", "grammar"])),
        ("definition", Kind::Str),
        ("syntax", Kind::OneOf(&["lark", "regex"])),
    ],
};

/// Tools that OpenAI itself runs.
pub(super) const HOSTED: &[&str] = &[
    "web_search",
    "web_search_2025_08_26",
    "web_search_preview",
    "file_search",
    "computer",
    "computer_use_preview",
    "code_interpreter",
    "image_generation",
    "mcp",
    "local_shell",
    "shell",
    "apply_patch",
    "namespace",
    "tool_search",
    "programmatic_tool_calling",
];

/// Items that are taken as they are.
pub(super) const OTHER_ITEMS: &[&str] = &[
    "compaction",
    "compaction_trigger",
    "configuration_update",
    "additional_tools",
    "web_search_call",
    "file_search_call",
    "computer_call",
    "computer_call_output",
    "code_interpreter_call",
    "image_generation_call",
    "local_shell_call",
    "local_shell_call_output",
    "shell_call",
    "shell_call_output",
    "apply_patch_call",
    "apply_patch_call_output",
    "mcp_list_tools",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_call",
    "tool_search_call",
    "tool_search_output",
    "program",
    "program_output",
];

/// The items that are checked: their type, what their id begins with, their fields.
pub(super) static ITEMS: &[(&str, &str, Shape)] = &[
    (
        "message",
        "msg",
        Shape {
            required: &["role", "content"],
            fields: &[
                ("type", Kind::Str),
                (
                    "role",
                    Kind::OneOf(&["user", "assistant", "system", "developer"]),
                ),
                (
                    "content",
                    Kind::Either(&[Kind::Str, Kind::List(&Kind::Object)]),
                ),
                ("phase", Kind::OneOf(&["commentary", "final_answer"])),
                ("id", Kind::Text(64)),
                ("status", STATUS),
            ],
        },
    ),
    (
        "function_call",
        "fc",
        Shape {
            required: &["call_id", "name", "arguments"],
            fields: &[
                ("type", Kind::Str),
                ("call_id", Kind::Text(64)),
                ("name", Kind::Text(128)),
                ("arguments", Kind::Str),
                ("id", Kind::Text(64)),
                ("status", STATUS),
                ("namespace", Kind::Str),
                ("caller", Kind::Any),
                ("async", Kind::Bool),
            ],
        },
    ),
    (
        "function_call_output",
        "fc",
        Shape {
            required: &["call_id", "output"],
            fields: &[
                ("type", Kind::Str),
                ("call_id", Kind::Text(64)),
                (
                    "output",
                    Kind::Either(&[Kind::Str, Kind::List(&Kind::Object)]),
                ),
                ("id", Kind::Text(64)),
                ("status", STATUS),
                ("name", Kind::Str),
            ],
        },
    ),
    (
        "custom_tool_call",
        "ctc",
        Shape {
            required: &["call_id", "name", "input"],
            fields: &[
                ("type", Kind::Str),
                ("call_id", Kind::Text(64)),
                ("name", Kind::Str),
                ("input", Kind::Str),
                ("id", Kind::Text(64)),
                ("status", STATUS),
            ],
        },
    ),
    (
        "custom_tool_call_output",
        "ctc",
        Shape {
            required: &["call_id", "output"],
            fields: &[
                ("type", Kind::Str),
                ("call_id", Kind::Text(64)),
                (
                    "output",
                    Kind::Either(&[Kind::Str, Kind::List(&Kind::Object)]),
                ),
                ("id", Kind::Text(64)),
                ("status", STATUS),
            ],
        },
    ),
    (
        "reasoning",
        "rs",
        Shape {
            required: &["id", "summary"],
            fields: &[
                ("type", Kind::Str),
                ("id", Kind::Text(64)),
                ("summary", Kind::List(&Kind::Object)),
                ("content", Kind::List(&Kind::Object)),
                ("encrypted_content", Kind::Str),
                ("status", STATUS),
            ],
        },
    ),
    (
        "item_reference",
        "",
        Shape {
            required: &["id"],
            fields: &[("type", Kind::Str), ("id", Kind::Text(64))],
        },
    ),
];

const STATUS: Kind = Kind::OneOf(&["in_progress", "completed", "incomplete"]);

/// The parts of a content, and whether the model or anyone else has them.
pub(super) static PARTS: &[(&str, bool, Shape)] = &[
    (
        "input_text",
        false,
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
        "input_image",
        false,
        Shape {
            required: &[],
            fields: &[
                ("type", Kind::Str),
                ("image_url", Kind::Str),
                ("file_id", Kind::Str),
                ("detail", Kind::OneOf(&["auto", "low", "high", "original"])),
                ("prompt_cache_breakpoint", Kind::Object),
            ],
        },
    ),
    (
        "input_file",
        false,
        Shape {
            required: &[],
            fields: &[
                ("type", Kind::Str),
                ("filename", Kind::Str),
                ("file_data", Kind::Str),
                ("file_url", Kind::Str),
                ("file_id", Kind::Str),
                ("detail", Kind::Str),
                ("prompt_cache_breakpoint", Kind::Object),
            ],
        },
    ),
    (
        "output_text",
        true,
        Shape {
            required: &["text"],
            fields: &[
                ("type", Kind::Str),
                ("text", Kind::Str),
                ("annotations", Kind::Array),
                ("logprobs", Kind::Array),
            ],
        },
    ),
    (
        "refusal",
        true,
        Shape {
            required: &["refusal"],
            fields: &[("type", Kind::Str), ("refusal", Kind::Str)],
        },
    ),
];
