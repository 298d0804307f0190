//! `/admin/openapi.json`: the OpenAPI 3.1 document of the admin API, generated from the list of its endpoints.

use http::Method;
use serde_json::{Map, Value, json};

use super::endpoint::{Access, Endpoint, PREFIX, Returns};
use super::scope::{ROLES, scope_names};

/// Schemas of objects and bodies: name, then the members as `name:type`. A `?` after the type means that the member may be null; a `?` after the
/// name, that it may be absent. The type `#NAME` refers to another of these schemas.
const SCHEMAS: &[(&str, &str)] = &[
    (
        "me",
        "kind:token|session|owner name:string role:string? scopes:strings expires_at:time? fresh_until:time?",
    ),
    (
        "session",
        "id:string created_at:time last_seen_at:time address:string current:boolean",
    ),
    ("sign_in", "name?:string password:string code?:string"),
    ("sign_in_methods", "oidc:object?"),
    ("password", "password:string"),
    (
        "admin",
        "id:string name:string role:role disabled:boolean created_at:time last_sign_in_at:time? version:integer link?:string?",
    ),
    ("new_admin", "name:string role:role reason?:string"),
    (
        "admin_patch",
        "name?:string role?:role disabled?:boolean reason?:string",
    ),
    (
        "token",
        "id:string name:string scopes:scopes hint:string created_at:time expires_at:time? last_used_at:time? version:integer secret?:string?",
    ),
    (
        "new_token",
        "name:string scopes:scopes expires_at?:time? reason?:string",
    ),
    (
        "user",
        "id:string name:string balance:amount held:amount used:amount unlimited:boolean rpm:integer? tpm:integer? max_concurrency:integer? disabled:boolean created_at:time version:integer",
    ),
    (
        "new_user",
        "name:string unlimited?:boolean rpm?:integer? tpm?:integer? max_concurrency?:integer? reason?:string",
    ),
    (
        "user_patch",
        "name?:string unlimited?:boolean rpm?:integer? tpm?:integer? max_concurrency?:integer? disabled?:boolean reason?:string",
    ),
    (
        "alert",
        "id:string on:low_balance|budget|circuit_open|queue_age|audit_violation|webhook_given_up|debt threshold:string? url:string enabled:boolean created_at:time version:integer secret?:string?",
    ),
    (
        "new_alert",
        "on:low_balance|budget|circuit_open|queue_age|audit_violation|webhook_given_up|debt threshold?:string? url:string enabled?:boolean reason?:string",
    ),
    (
        "alert_patch",
        "on?:low_balance|budget|circuit_open|queue_age|audit_violation|webhook_given_up|debt threshold?:string? url?:string enabled?:boolean reason?:string",
    ),
    ("alert_test", "status:integer? ms:integer error:string?"),
    (
        "alert_delivery",
        "id:string at:time state:waiting|delivered|given_up attempts:integer status:integer? ms:integer? error:string? next_at:time?",
    ),
    (
        "budget",
        "id:string user_id:string? key_id:string? amount:amount period:day|week|month mode:hard|soft spent:amount held:amount resets_at:time version:integer",
    ),
    (
        "new_budget",
        "user_id?:string? key_id?:string? amount:amount period:day|week|month mode:hard|soft reason?:string",
    ),
    (
        "budget_patch",
        "amount?:amount period?:day|week|month mode?:hard|soft reason?:string",
    ),
    (
        "new_credit",
        "amount:amount reason:string reference?:string?",
    ),
    (
        "task",
        "id:string kind:image|video|speech model:string state:submitted|in_progress|completed|failed|cancelled user_id:string key_id:string channel:string? provider_job_id:string? error_code:string? held:amount cost:amount refunded:amount created_at:time started_at:time? ended_at:time?",
    ),
    (
        "task_detail",
        "id:string kind:image|video|speech model:string state:submitted|in_progress|completed|failed|cancelled user_id:string key_id:string channel:string? provider_job_id:string? error_code:string? held:amount cost:amount refunded:amount created_at:time started_at:time? ended_at:time? record:object request:object? adjustments:objects attempts:objects charge:#charge entries:objects webhook:object? files:objects timeline:objects",
    ),
    (
        "chat",
        "id:string model:string format:string streamed:boolean outcome:string? user_id:string key_id:string channel:string? request_id:string? error_code:string? cost:amount refunded:amount tokens:object created_at:time ended_at:time?",
    ),
    (
        "chat_detail",
        "id:string model:string format:string streamed:boolean outcome:string? user_id:string key_id:string channel:string? request_id:string? error_code:string? cost:amount refunded:amount tokens:object created_at:time ended_at:time? attempts:objects dropped:strings charge:#charge entries:objects",
    ),
    (
        "audit",
        "id:string state:running|done|failed ok:boolean? violations:objects progress:number started_at:time ended_at:time?",
    ),
    (
        "usage",
        "day?:time hour?:time model?:string user_id?:string key_id?:string channel?:string? cost?:amount requests?:integer tokens?:integer images?:integer seconds?:integer failed?:integer",
    ),
    ("webhook", "url:string state:string tries:objects"),
    ("search", "data:objects"),
    ("new_refund", "amount?:amount? reason:string"),
    ("refund", "entry:#entry charge:#charge"),
    (
        "charge",
        "price:amount? units:integer unit:string? held:amount settled:amount released:amount refunded:amount",
    ),
    (
        "entry",
        "id:string at:time user_id:string key_id:string? kind:string amount:amount delta:amount ref:string reference:string? reason:string?",
    ),
    (
        "user_entry",
        "id:string at:time user_id:string key_id:string? kind:string amount:amount delta:amount ref:string reference:string? reason:string? balance_after:amount",
    ),
    (
        "key",
        "id:string name:string user_id:string hint:string quota:amount? used:amount held:amount rpm:integer? tpm:integer? max_concurrency:integer? models:strings? envelope:standard|none trace_content?:boolean created_at:time expires_at:time? revoked_at:time? previous_valid_until:time? version:integer secret?:string?",
    ),
    (
        "new_key",
        "user_id:string name?:string quota?:amount? rpm?:integer? tpm?:integer? max_concurrency?:integer? models?:strings? envelope?:standard|none trace_content?:boolean expires_at?:time? reason?:string",
    ),
    (
        "key_patch",
        "name?:string quota?:amount? rpm?:integer? tpm?:integer? max_concurrency?:integer? models?:strings? envelope?:standard|none trace_content?:boolean expires_at?:time? reason?:string",
    ),
    ("action", "reason?:string"),
    ("rotation", "overlap_s?:integer reason?:string"),
    (
        "event",
        "seq:integer at:time actor:string token_id:string? address:string? request_id:string? action:string object:object before:object? after:object? reason:string? prev_hash:string hash:string",
    ),
    ("quote_request", "endpoint:string request:object"),
    (
        "quote",
        "endpoint:string model:string job:object adjustments:objects unit:image|second|video|character|token units:integer price:amount? total:amount exact:boolean currency:string channels:strings",
    ),
    (
        "model",
        "id:string kind:image|video|speech|chat family:string? endpoint:string aliases:strings schema:object",
    ),
    (
        "price",
        "model:string source:file|database|builtin shadowed:boolean per_image?:amount per_second?:amount per_video?:amount per_thousand_characters?:amount when?:objects service_tiers?:object version:integer",
    ),
    (
        "custom_model",
        "name:string like:string source:file|database shadowed:boolean version:integer",
    ),
    ("new_custom_model", "name:string like:string reason?:string"),
    ("custom_model_patch", "like?:string reason?:string"),
    (
        "price_settings",
        "per_image?:amount? per_second?:amount? per_video?:amount? per_thousand_characters?:amount? when?:objects? service_tiers?:object? reason?:string",
    ),
    (
        "channel",
        "name:string kind:string source:file|database|builtin shadowed:boolean base_url:string? models:objects? priority:integer weight:integer max_concurrency:integer? connect_s:number? first_byte_s:number? idle_s:number? apis:strings? poll_ms:integer? options:object api_keys:objects paused:boolean created_at:time? updated_at:time? version:integer",
    ),
    (
        "new_channel",
        "name:string kind:string base_url?:string? models?:list? priority?:integer? weight?:integer? max_concurrency?:integer? connect_s?:integer? first_byte_s?:integer? idle_s?:integer? apis?:strings? poll_ms?:integer? fetch_urls?:boolean? trace_context?:boolean allow?:strings? betas?:strings? options?:object? api_keys?:list? reason?:string",
    ),
    (
        "channel_patch",
        "kind?:string base_url?:string? models?:list? priority?:integer? weight?:integer? max_concurrency?:integer? connect_s?:integer? first_byte_s?:integer? idle_s?:integer? apis?:strings? poll_ms?:integer? fetch_urls?:boolean? trace_context?:boolean allow?:strings? betas?:strings? options?:object? api_keys?:list? reason?:string",
    ),
    ("pause", "for_s?:integer? reason?:string"),
    ("channel_test", "ok:boolean results:objects"),
    (
        "channel_health",
        "node:string circuit:closed|open|half_open cooldowns:objects in_flight:integer? p50_ms:integer? error_rate:number?",
    ),
    ("portal_me", "user:#user key:#key"),
    ("portal_sign_in", "api_key:string"),
    (
        "new_own_key",
        "name?:string quota?:amount? rpm?:integer? tpm?:integer? max_concurrency?:integer? models?:strings? envelope?:standard|none expires_at?:time? reason?:string",
    ),
    (
        "portal_task",
        "id:string kind:image|video|speech model:string state:submitted|in_progress|completed|failed|cancelled user_id:string key_id:string error_code:string? held:amount cost:amount refunded:amount created_at:time started_at:time? ended_at:time?",
    ),
    (
        "portal_task_detail",
        "id:string kind:image|video|speech model:string state:submitted|in_progress|completed|failed|cancelled user_id:string key_id:string error_code:string? held:amount cost:amount refunded:amount created_at:time started_at:time? ended_at:time? record:object request:object? adjustments:objects charge:#charge entries:objects webhook:object? files:objects",
    ),
    (
        "portal_chat",
        "id:string model:string format:string streamed:boolean outcome:string? user_id:string key_id:string request_id:string? error_code:string? cost:amount refunded:amount tokens:object created_at:time ended_at:time?",
    ),
    (
        "setting",
        "key:string value:any source:default|file|env|flag",
    ),
    ("config_text", "toml:string reason?:string"),
    ("config_check", "ok:boolean errors:objects warnings:strings"),
    (
        "node",
        "id:string version:string started_at:time last_seen_at:time config_version:integer config_error:string? config_fingerprint:string? schema_version:integer? clock_offset_ms:integer? leader:boolean ready:boolean not_ready:string?",
    ),
    (
        "verification",
        "ok:boolean rows:integer head:string? first_bad:integer?",
    ),
];

/// The document of these endpoints.
pub fn document(endpoints: impl Iterator<Item = &'static Endpoint>) -> Value {
    let mut paths = Map::new();
    for endpoint in endpoints {
        let path = format!("{PREFIX}{}", endpoint.path);
        let methods = paths.entry(path).or_insert_with(|| json!({}));
        methods[endpoint.method.as_str().to_ascii_lowercase()] = operation(endpoint, "error");
    }
    let mut schemas: Map<String, Value> = SCHEMAS
        .iter()
        .map(|(name, members)| ((*name).to_owned(), object_schema(members)))
        .collect();
    let error = object_schema("code:string message:string field:string? request_id:string");
    let error = json!({
        "type": "object",
        "required": ["error"],
        "properties": { "error": error, "current": { "type": "object", "description": "With 412: the current object." } },
    });
    schemas.insert("error".to_owned(), error);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Tollgate admin API",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "security": [{ "token": [] }, { "session": [] }],
        "paths": paths,
        "components": {
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "`Authorization: Bearer adm_…`, or the admin key" },
                "session": { "type": "apiKey", "in": "cookie", "name": "__Host-tollgate_session" },
            },
            "schemas": schemas,
        },
    })
}

/// The description of an endpoint in the document; `error` is the name of the schema of its errors.
pub(crate) fn operation(endpoint: &Endpoint, error: &str) -> Value {
    let mut operation = json!({
        "operationId": operation_id(endpoint),
        "summary": endpoint.summary,
        "parameters": parameters(endpoint),
        "responses": responses(endpoint, error),
    });
    match endpoint.access {
        Access::Public => operation["security"] = json!([]),
        Access::Any => {}
        Access::Scope(scope) => {
            operation["description"] = json!(format!("Requires the scope `{}`.", scope.name()));
        }
        Access::AnyOf(scopes) => {
            let names: Vec<_> = scopes.iter().map(|s| format!("`{}`", s.name())).collect();
            operation["description"] = json!(format!("Requires the scope {}.", names.join(" or ")));
        }
    }
    if let Some(body) = endpoint.body {
        let mut content = json!({ "application/json": { "schema": reference(body) } });
        if endpoint.method == Method::PATCH {
            content["application/merge-patch+json"] = json!({ "schema": reference(body) });
        }
        let is_required = !matches!(body, "action" | "rotation" | "pause");
        operation["requestBody"] = json!({ "required": is_required, "content": content });
    }
    operation
}

/// The operation id: the method and the parts of the path, such as `get_users_id`.
fn operation_id(endpoint: &Endpoint) -> String {
    let parts = endpoint.path.split(['/', '{', '}']);
    let parts = parts.filter(|part| !part.is_empty());
    let method = endpoint.method.as_str().to_ascii_lowercase();
    [method.as_str()]
        .into_iter()
        .chain(parts)
        .collect::<Vec<_>>()
        .join("_")
}

/// The paths of `POST` endpoints that ignore an `Idempotency-Key`: a repeated request acts again.
const IGNORE_IDEMPOTENCY_KEY: [&str; 6] = [
    "/alerts/{id}/test",
    "/channels/{name}/test",
    "/config/validate",
    "/quote",
    "/session",
    "/session/fresh",
];

fn parameters(endpoint: &Endpoint) -> Value {
    let text = json!({ "type": "string" });
    let mut parameters = Vec::new();
    for segment in endpoint.path.split('/') {
        if let Some(name) = segment.strip_prefix('{').and_then(|s| s.strip_suffix('}')) {
            parameters
                .push(json!({ "name": name, "in": "path", "required": true, "schema": text }));
        }
    }
    for name in endpoint.query {
        let schema = match *name {
            "from" | "to" => json!({ "type": "string", "format": "date-time" }),
            "disabled" | "revoked" => json!({ "type": "boolean" }),
            _ => text.clone(),
        };
        parameters
            .push(json!({ "name": name, "in": "query", "required": false, "schema": schema }));
    }
    if let Returns::List(_) = endpoint.returns {
        let limit = json!({ "type": "integer", "minimum": 1, "maximum": 200, "default": 50 });
        parameters
            .push(json!({ "name": "limit", "in": "query", "required": false, "schema": limit }));
        parameters
            .push(json!({ "name": "cursor", "in": "query", "required": false, "schema": text }));
    }
    match endpoint.method {
        Method::POST if !IGNORE_IDEMPOTENCY_KEY.contains(&endpoint.path) => {
            let schema = json!({ "type": "string", "minLength": 1, "maxLength": 255 });
            let is_required = matches!(endpoint.body, Some("new_credit" | "new_refund"));
            parameters.push(json!({ "name": "Idempotency-Key", "in": "header", "required": is_required, "schema": schema }));
        }
        Method::PATCH | Method::DELETE if endpoint.path.contains('{') => {
            parameters.push(
                json!({ "name": "If-Match", "in": "header", "required": true, "schema": text }),
            );
        }
        _ => {}
    }
    Value::Array(parameters)
}

fn responses(endpoint: &Endpoint, error: &str) -> Value {
    let error = json!({ "description": "An error.", "content": { "application/json": { "schema": reference(error) } } });
    let (status, success) = match endpoint.returns {
        Returns::Nothing => (204, json!({ "description": "Done." })),
        Returns::Text(media_type) => {
            let content = json!({ media_type: { "schema": { "type": "string" } } });
            (
                200,
                json!({ "description": "The text.", "content": content }),
            )
        }
        Returns::Object(name, status) => {
            let content = json!({ "application/json": { "schema": reference(name) } });
            (
                status,
                json!({ "description": "The object.", "content": content }),
            )
        }
        Returns::List(name) | Returns::CompleteList(name) => {
            let mut page = json!({
                "type": "object",
                "required": ["data", "next_cursor"],
                "properties": {
                    "data": { "type": "array", "items": reference(name) },
                    "next_cursor": { "type": ["string", "null"] },
                },
            });
            if name == "usage" {
                page["required"] = json!(["data", "next_cursor", "watermark"]);
                page["properties"]["watermark"] =
                    json!({ "type": "string", "format": "date-time" });
            }
            let mut content = json!({ "application/json": { "schema": page } });
            let description = match endpoint.returns {
                Returns::CompleteList(_) => "The complete list.",
                _ => {
                    content["text/csv"] = json!({ "schema": { "type": "string" } });
                    "A page; as CSV all of it."
                }
            };
            (
                200,
                json!({ "description": description, "content": content }),
            )
        }
    };
    let mut responses = Map::new();
    responses.insert(status.to_string(), success);
    responses.insert("default".to_owned(), error);
    Value::Object(responses)
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

/// The schemas that these endpoints refer to, and the ones that those schemas refer to.
pub(crate) fn schemas_of(endpoints: impl Iterator<Item = &'static Endpoint>) -> Map<String, Value> {
    let mut names: Vec<&str> = endpoints
        .flat_map(|endpoint| {
            let of_reply = match endpoint.returns {
                Returns::Object(name, _) | Returns::List(name) | Returns::CompleteList(name) => {
                    Some(name)
                }
                _ => None,
            };
            [endpoint.body, of_reply]
        })
        .flatten()
        .collect();
    let mut found = Map::new();
    while let Some(name) = names.pop() {
        let schema = SCHEMAS.iter().find(|(known, _)| *known == name);
        let Some((name, members)) = schema.filter(|_| !found.contains_key(name)) else {
            continue;
        };
        names.extend(
            members
                .split([' ', ':', '?'])
                .filter_map(|part| part.strip_prefix('#')),
        );
        found.insert((*name).to_owned(), object_schema(members));
    }
    found
}

/// The schema of `name:type` members.
fn object_schema(members: &str) -> Value {
    let (mut properties, mut required) = (Map::new(), Vec::new());
    for member in members.split(' ') {
        let (name, kind) = member.split_once(':').unwrap_or((member, "string"));
        let bare = name.strip_suffix('?');
        if bare.is_none() {
            required.push(name);
        }
        let name = bare.unwrap_or(name);
        properties.insert(name.to_owned(), member_schema(kind));
    }
    json!({ "type": "object", "properties": properties, "required": required })
}

fn member_schema(kind: &str) -> Value {
    let (kind, is_nullable) = match kind.strip_suffix('?') {
        Some(kind) => (kind, true),
        None => (kind, false),
    };
    if let Some(schema) = kind.strip_prefix('#') {
        return reference(schema);
    }
    let mut schema = match kind {
        "string" | "boolean" | "integer" | "number" | "object" => json!({ "type": kind }),
        "time" => json!({ "type": "string", "format": "date-time" }),
        "amount" => json!({ "type": "string", "pattern": r"^-?\d{1,10}(\.\d{1,9})?$" }),
        "strings" => json!({ "type": "array", "items": { "type": "string" } }),
        "objects" => json!({ "type": "array", "items": { "type": "object" } }),
        "list" => json!({ "type": "array" }),
        "any" => json!({}),
        "scopes" => {
            json!({ "type": "array", "items": { "type": "string", "enum": scope_names() } })
        }
        "role" => json!({ "type": "string", "enum": ROLES.map(|(_, name)| name) }),
        values => json!({ "type": "string", "enum": values.split('|').collect::<Vec<_>>() }),
    };
    if is_nullable {
        schema["type"] = json!([schema["type"], "null"]);
    }
    schema
}
