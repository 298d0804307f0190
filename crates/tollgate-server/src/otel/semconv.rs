//! All names that spans and exported metrics use: those of OpenTelemetry's semantic conventions for HTTP and for generative models
//! (<https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/>), and the gateway's own under `tollgate.`.

use std::sync::LazyLock;

use tollgate_config::providers::provider_of_kind;

pub(super) const SERVICE_NAME: &str = "service.name";
pub(super) const SERVICE_VERSION: &str = "service.version";
pub(super) const SERVICE_INSTANCE_ID: &str = "service.instance.id";

pub(super) const HTTP_REQUEST_METHOD: &str = "http.request.method";
pub(super) const HTTP_RESPONSE_STATUS_CODE: &str = "http.response.status_code";
pub(super) const HTTP_ROUTE: &str = "http.route";
pub(super) const URL_PATH: &str = "url.path";
pub(super) const CLIENT_ADDRESS: &str = "client.address";
pub(super) const ERROR_TYPE: &str = "error.type";

pub(super) const OPERATION_NAME: &str = "gen_ai.operation.name";
pub(super) const OUTPUT_TYPE: &str = "gen_ai.output.type";
pub(super) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(super) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(super) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
/// Values of [`OPERATION_NAME`].
pub(super) const CHAT: &str = "chat";
pub(super) const GENERATE_CONTENT: &str = "generate_content";

/// JSON text, because spans support no lists of objects. Newer than version 1.36, which has content only in events.
pub(super) const SYSTEM_INSTRUCTIONS: &str = "gen_ai.system_instructions";
pub(super) const INPUT_MESSAGES: &str = "gen_ai.input.messages";
pub(super) const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
pub(super) const TOKEN_TYPE: &str = "gen_ai.token.type";

/// A histogram of seconds: how long requests to providers take, by operation.
pub(super) const OPERATION_DURATION: &str = "gen_ai.client.operation.duration";
/// A histogram of the tokens of single requests, by [`TOKEN_TYPE`]. Its planned replacement in the conventions (`gen_ai.client.inference.*`) is in
/// none of their releases yet.
pub(super) const TOKEN_USAGE: &str = "gen_ai.client.token.usage";

pub(super) const REQUEST_ID: &str = "tollgate.request.id";
pub(super) const KEY_ID: &str = "tollgate.key.id";
pub(super) const TASK_ID: &str = "tollgate.task.id";
pub(super) const CHANNEL: &str = "tollgate.channel";
pub(super) const ATTEMPTS: &str = "tollgate.attempts";
pub(super) const OUTCOME: &str = "tollgate.outcome";
/// A decimal number in the gateway's currency, as text, so that it is exact.
pub(super) const COST: &str = "tollgate.cost";

/// The value for an unknown provider.
pub(super) const OTHER_PROVIDER: &str = "_OTHER";

/// The environment variable with which programs choose between stable and newer names.
const OPT_IN: &str = "OTEL_SEMCONV_STABILITY_OPT_IN";
/// Its value that selects the newest names of generative models.
const LATEST_GEN_AI: &str = "gen_ai_latest_experimental";

/// The attribute that names a provider: it was renamed in version 1.37 of the conventions.
pub(super) fn provider_attribute() -> &'static str {
    match uses_latest_names() {
        true => "gen_ai.provider.name",
        false => "gen_ai.system",
    }
}

/// The conventions' name for the provider of channels of this kind.
pub(super) fn provider(kind: &str) -> &str {
    provider_of_kind(kind).map_or(kind, |entry| {
        entry.trace_names[usize::from(uses_latest_names())]
    })
}

/// A histogram of seconds: how long streams take until their first piece. Version 1.36 of the conventions has a name only for servers of models.
pub(super) fn time_to_first_token() -> &'static str {
    match uses_latest_names() {
        true => "gen_ai.client.operation.time_to_first_chunk",
        false => "gen_ai.server.time_to_first_token",
    }
}

/// Whether the newest names were selected when the process started.
fn uses_latest_names() -> bool {
    static OPTED: LazyLock<bool> = LazyLock::new(|| {
        let opted = std::env::var(OPT_IN).unwrap_or_default();
        opted.split(',').any(|name| name.trim() == LATEST_GEN_AI)
    });
    *OPTED
}
