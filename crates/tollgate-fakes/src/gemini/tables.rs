//! The fields of a generate-content request. Every name is also read in snake case.

use crate::shape::{Kind, Shape};

pub(super) static REQUEST: Shape = Shape {
    required: &["contents"],
    fields: &[
        ("contents", Kind::List(&Kind::Shape(&CONTENT))),
        ("systemInstruction", Kind::Shape(&CONTENT)),
        ("tools", Kind::List(&Kind::Shape(&TOOL))),
        ("toolConfig", Kind::Shape(&TOOL_CONFIG)),
        ("safetySettings", Kind::List(&Kind::Shape(&SAFETY))),
        ("cachedContent", Kind::Str),
        ("generationConfig", Kind::Shape(&CONFIG)),
        ("labels", Kind::Object),
        ("serviceTier", Kind::Str),
        ("store", Kind::Bool),
        ("continuationToken", Kind::Str),
        ("model", Kind::Str),
    ],
};

static CONTENT: Shape = Shape {
    required: &["parts"],
    fields: &[
        ("role", Kind::Str),
        ("parts", Kind::List(&Kind::Shape(&PART))),
    ],
};

static PART: Shape = Shape {
    required: &[],
    fields: &[
        ("text", Kind::Str),
        ("thought", Kind::Bool),
        ("thoughtSignature", Kind::Str),
        ("inlineData", Kind::Shape(&BLOB)),
        ("fileData", Kind::Shape(&FILE)),
        ("functionCall", Kind::Shape(&CALL)),
        ("functionResponse", Kind::Shape(&RESPONSE)),
        ("executableCode", Kind::Object),
        ("codeExecutionResult", Kind::Object),
        ("toolCall", Kind::Object),
        ("toolResponse", Kind::Object),
        ("videoMetadata", Kind::Object),
        ("mediaResolution", Kind::Any),
        ("partMetadata", Kind::Object),
        ("mediaProcessing", Kind::Any),
    ],
};

/// The fields of which a part has exactly one.
pub(super) const DATA: &[&str] = &[
    "text",
    "inlineData",
    "fileData",
    "functionCall",
    "functionResponse",
    "executableCode",
    "codeExecutionResult",
    "toolCall",
    "toolResponse",
];

static BLOB: Shape = Shape {
    required: &["mimeType", "data"],
    fields: &[
        ("mimeType", Kind::Str),
        ("data", Kind::Str),
        ("displayName", Kind::Str),
    ],
};

static FILE: Shape = Shape {
    required: &["fileUri"],
    fields: &[
        ("fileUri", Kind::Str),
        ("mimeType", Kind::Str),
        ("displayName", Kind::Str),
    ],
};

static CALL: Shape = Shape {
    required: &["name"],
    fields: &[
        ("name", Kind::Str),
        ("args", Kind::Object),
        ("id", Kind::Str),
    ],
};

static RESPONSE: Shape = Shape {
    required: &["name", "response"],
    fields: &[
        ("name", Kind::Str),
        ("response", Kind::Object),
        ("id", Kind::Str),
        ("parts", Kind::List(&Kind::Shape(&RESPONSE_PART))),
        ("willContinue", Kind::Bool),
        ("scheduling", Kind::Str),
    ],
};

static RESPONSE_PART: Shape = Shape {
    required: &[],
    fields: &[
        ("inlineData", Kind::Shape(&BLOB)),
        ("fileData", Kind::Shape(&FILE)),
    ],
};

static TOOL: Shape = Shape {
    required: &[],
    fields: &[
        (
            "functionDeclarations",
            Kind::Few(512, &Kind::Shape(&DECLARATION)),
        ),
        ("googleSearch", Kind::Object),
        ("googleSearchRetrieval", Kind::Object),
        ("urlContext", Kind::Object),
        ("codeExecution", Kind::Object),
        ("googleMaps", Kind::Object),
        ("fileSearch", Kind::Object),
        ("computerUse", Kind::Object),
        ("mcpServers", Kind::Array),
    ],
};

static DECLARATION: Shape = Shape {
    required: &["name"],
    fields: &[
        ("name", Kind::Str),
        ("description", Kind::Str),
        ("parameters", Kind::Object),
        ("parametersJsonSchema", Kind::Any),
        ("response", Kind::Object),
        ("responseJsonSchema", Kind::Any),
        ("behavior", Kind::Str),
    ],
};

static TOOL_CONFIG: Shape = Shape {
    required: &[],
    fields: &[
        ("functionCallingConfig", Kind::Shape(&CALLING)),
        ("retrievalConfig", Kind::Object),
        ("includeServerSideToolInvocations", Kind::Bool),
    ],
};

static CALLING: Shape = Shape {
    required: &[],
    fields: &[
        (
            "mode",
            Kind::OneOf(&["MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED"]),
        ),
        ("allowedFunctionNames", Kind::List(&Kind::Str)),
    ],
};

static SAFETY: Shape = Shape {
    required: &["category", "threshold"],
    fields: &[
        (
            "category",
            Kind::OneOf(&[
                "HARM_CATEGORY_HARASSMENT",
                "HARM_CATEGORY_HATE_SPEECH",
                "HARM_CATEGORY_SEXUALLY_EXPLICIT",
                "HARM_CATEGORY_DANGEROUS_CONTENT",
                "HARM_CATEGORY_CIVIC_INTEGRITY",
            ]),
        ),
        (
            "threshold",
            Kind::OneOf(&[
                "BLOCK_NONE",
                "OFF",
                "BLOCK_ONLY_HIGH",
                "BLOCK_MEDIUM_AND_ABOVE",
                "BLOCK_LOW_AND_ABOVE",
            ]),
        ),
    ],
};

static CONFIG: Shape = Shape {
    required: &[],
    fields: &[
        ("temperature", Kind::Num(0.0, 2.0)),
        ("topP", Kind::Num(0.0, 1.0)),
        ("topK", Kind::Int(1, 1000)),
        ("candidateCount", Kind::Int(1, 8)),
        ("maxOutputTokens", Kind::Int(1, 65_536)),
        ("stopSequences", Kind::Few(5, &Kind::Str)),
        (
            "responseMimeType",
            Kind::OneOf(&["text/plain", "application/json", "text/x.enum"]),
        ),
        ("responseSchema", Kind::Object),
        ("responseJsonSchema", Kind::Any),
        ("responseFormat", Kind::Any),
        (
            "responseModalities",
            Kind::List(&Kind::OneOf(&["TEXT", "IMAGE", "AUDIO", "VIDEO"])),
        ),
        ("seed", Kind::Int(i32::MIN as i64, i32::MAX as i64)),
        ("presencePenalty", Kind::Num(-2.0, 2.0)),
        ("frequencyPenalty", Kind::Num(-2.0, 2.0)),
        ("responseLogprobs", Kind::Bool),
        ("logprobs", Kind::Int(0, 20)),
        ("thinkingConfig", Kind::Shape(&THINKING)),
        ("mediaResolution", Kind::Str),
        ("speechConfig", Kind::Object),
        ("imageConfig", Kind::Object),
        ("audioTranscriptionConfig", Kind::Object),
        ("enableEnhancedCivicAnswers", Kind::Bool),
    ],
};

static THINKING: Shape = Shape {
    required: &[],
    fields: &[
        ("includeThoughts", Kind::Bool),
        ("thinkingBudget", Kind::Int(-1, 1_000_000)),
        (
            "thinkingLevel",
            Kind::OneOf(&[
                "THINKING_LEVEL_UNSPECIFIED",
                "MINIMAL",
                "LOW",
                "MEDIUM",
                "HIGH",
                "XHIGH",
                "minimal",
                "low",
                "medium",
                "high",
                "xhigh",
            ]),
        ),
    ],
};
