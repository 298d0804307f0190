//! The fields of a messages request.

use crate::shape::{Kind, Shape};

pub(super) static REQUEST: Shape = Shape {
    required: &["model", "messages"],
    fields: &[
        ("model", Kind::Str),
        ("max_tokens", Kind::Int(0, 10_000_000)),
        ("messages", Kind::List(&Kind::Shape(&MESSAGE))),
        (
            "system",
            Kind::Either(&[Kind::Str, Kind::List(&Kind::Object)]),
        ),
        ("stop_sequences", Kind::List(&Kind::Str)),
        ("stream", Kind::Bool),
        ("temperature", Kind::Num(0.0, 1.0)),
        ("top_p", Kind::Num(0.0, 1.0)),
        ("top_k", Kind::Int(0, 1_000_000)),
        ("metadata", Kind::Shape(&METADATA)),
        ("tools", Kind::List(&Kind::Object)),
        ("tool_choice", Kind::Shape(&TOOL_CHOICE)),
        ("thinking", Kind::Shape(&THINKING)),
        ("output_config", Kind::Shape(&OUTPUT_CONFIG)),
        ("cache_control", Kind::Shape(&CACHE_CONTROL)),
        ("service_tier", Kind::OneOf(&["auto", "standard_only"])),
        ("speed", Kind::OneOf(&["standard", "fast"])),
        ("container", Kind::Any),
        ("diagnostics", Kind::Any),
        ("inference_geo", Kind::Str),
    ],
};

/// Fields that exist only together with the header `anthropic-beta`.
pub(super) const BETA: &[&str] = &[
    "mcp_servers",
    "context_management",
    "fallbacks",
    "output_format",
];

static MESSAGE: Shape = Shape {
    required: &["role", "content"],
    fields: &[
        ("role", Kind::OneOf(&["user", "assistant", "system"])),
        (
            "content",
            Kind::Either(&[Kind::Str, Kind::List(&Kind::Object)]),
        ),
    ],
};

static METADATA: Shape = Shape {
    required: &[],
    fields: &[("user_id", Kind::Text(256))],
};

static TOOL_CHOICE: Shape = Shape {
    required: &["type"],
    fields: &[
        ("type", Kind::OneOf(&["auto", "any", "tool", "none"])),
        ("name", Kind::Str),
        ("disable_parallel_tool_use", Kind::Bool),
    ],
};

const DISPLAYS: Kind = Kind::OneOf(&["summarized", "omitted"]);

static THINKING: Shape = Shape {
    required: &["type"],
    fields: &[
        (
            "type",
            Kind::OneOf(&["enabled", "adaptive", "between_tools", "disabled"]),
        ),
        ("budget_tokens", Kind::Int(1024, 10_000_000)),
        ("display", DISPLAYS),
    ],
};

static OUTPUT_CONFIG: Shape = Shape {
    required: &[],
    fields: &[
        (
            "effort",
            Kind::OneOf(&["low", "medium", "high", "xhigh", "max"]),
        ),
        ("format", Kind::Shape(&FORMAT)),
    ],
};

static FORMAT: Shape = Shape {
    required: &["type", "schema"],
    fields: &[
        ("type", Kind::OneOf(&["json_schema"])),
        ("schema", Kind::Object),
    ],
};

static CACHE_CONTROL: Shape = Shape {
    required: &["type"],
    fields: &[
        ("type", Kind::OneOf(&["ephemeral"])),
        ("ttl", Kind::OneOf(&["5m", "1h"])),
    ],
};

/// A tool of the client.
pub(super) static TOOL: Shape = Shape {
    required: &["name", "input_schema"],
    fields: &[
        ("type", Kind::OneOf(&["custom"])),
        ("name", Kind::Str),
        ("description", Kind::Str),
        ("input_schema", Kind::Object),
        ("strict", Kind::Bool),
        ("cache_control", Kind::Shape(&CACHE_CONTROL)),
        ("input_examples", Kind::Array),
        ("defer_loading", Kind::Bool),
        ("allowed_callers", Kind::Array),
        ("eager_input_streaming", Kind::Bool),
    ],
};

const CACHED: (&str, Kind) = ("cache_control", Kind::Shape(&CACHE_CONTROL));
const TYPE: (&str, Kind) = ("type", Kind::Str);

/// Who a block belongs to.
pub(super) const USER: u8 = 1;
/// See [`USER`].
pub(super) const MODEL: u8 = 2;
/// Results of tools, see [`USER`].
pub(super) const RESULT: u8 = 4;
/// System texts, see [`USER`].
pub(super) const SYSTEM: u8 = 8;

/// The blocks that are checked: their type, where they may stand, their fields.
pub(super) static BLOCKS: &[(&str, u8, Shape)] = &[
    (
        "text",
        USER | MODEL | RESULT | SYSTEM,
        Shape {
            required: &["text"],
            fields: &[
                TYPE,
                ("text", Kind::Str),
                ("citations", Kind::Array),
                CACHED,
            ],
        },
    ),
    (
        "image",
        USER | RESULT,
        Shape {
            required: &["source"],
            fields: &[
                TYPE,
                ("source", Kind::Object),
                ("transformations", Kind::Any),
                CACHED,
            ],
        },
    ),
    (
        "document",
        USER | RESULT | MODEL,
        Shape {
            required: &["source"],
            fields: &[
                TYPE,
                ("source", Kind::Object),
                ("title", Kind::Str),
                ("context", Kind::Str),
                ("citations", Kind::Object),
                CACHED,
            ],
        },
    ),
    (
        "search_result",
        USER | RESULT,
        Shape {
            required: &["source", "title", "content"],
            fields: &[
                TYPE,
                ("source", Kind::Str),
                ("title", Kind::Str),
                ("content", Kind::List(&Kind::Object)),
                ("citations", Kind::Object),
                CACHED,
            ],
        },
    ),
    (
        "tool_use",
        MODEL,
        Shape {
            required: &["id", "name", "input"],
            fields: &[
                TYPE,
                ("id", Kind::Str),
                ("name", Kind::Str),
                ("input", Kind::Object),
                ("caller", Kind::Any),
                ("toolset_name", Kind::Str),
                CACHED,
            ],
        },
    ),
    (
        "tool_result",
        USER,
        Shape {
            required: &["tool_use_id"],
            fields: &[
                TYPE,
                ("tool_use_id", Kind::Str),
                (
                    "content",
                    Kind::Either(&[Kind::Str, Kind::List(&Kind::Object)]),
                ),
                ("is_error", Kind::Bool),
                CACHED,
            ],
        },
    ),
    (
        "thinking",
        MODEL,
        Shape {
            required: &["thinking", "signature"],
            fields: &[TYPE, ("thinking", Kind::Str), ("signature", Kind::Str)],
        },
    ),
    (
        "redacted_thinking",
        MODEL,
        Shape {
            required: &["data"],
            fields: &[TYPE, ("data", Kind::Str)],
        },
    ),
];

/// Blocks that are taken as they are.
pub(super) const OTHER_BLOCKS: &[(&str, u8)] = &[
    ("server_tool_use", MODEL),
    ("web_search_tool_result", MODEL),
    ("web_fetch_tool_result", MODEL),
    ("code_execution_tool_result", MODEL),
    ("bash_code_execution_tool_result", MODEL),
    ("text_editor_code_execution_tool_result", MODEL),
    ("tool_search_tool_result", MODEL),
    ("mcp_tool_use", MODEL),
    ("mcp_tool_result", MODEL),
    ("compaction", MODEL),
    ("fallback", MODEL),
    ("container_upload", USER),
    ("tool_reference", RESULT),
    ("browser_state", RESULT),
];

/// The sources of images and documents: their type, whether of both or only of documents, fields.
pub(super) static SOURCES: &[(&str, bool, Shape)] = &[
    (
        "base64",
        true,
        Shape {
            required: &["media_type", "data"],
            fields: &[TYPE, ("media_type", Kind::Str), ("data", Kind::Str)],
        },
    ),
    (
        "url",
        true,
        Shape {
            required: &["url"],
            fields: &[TYPE, ("url", Kind::Str)],
        },
    ),
    (
        "file",
        true,
        Shape {
            required: &["file_id"],
            fields: &[TYPE, ("file_id", Kind::Str)],
        },
    ),
    (
        "text",
        false,
        Shape {
            required: &["media_type", "data"],
            fields: &[
                TYPE,
                ("media_type", Kind::OneOf(&["text/plain"])),
                ("data", Kind::Str),
            ],
        },
    ),
    (
        "content",
        false,
        Shape {
            required: &["content"],
            fields: &[TYPE, ("content", Kind::Any)],
        },
    ),
];
