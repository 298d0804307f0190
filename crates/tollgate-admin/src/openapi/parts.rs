//! Parts of the OpenAPI document that several paths use.

use serde_json::{Value, json};

pub(super) fn get(
    tag: &str,
    summary: &str,
    id: &str,
    parameters: &[Value],
    schema: Value,
) -> Value {
    json!({
        "tags": [tag],
        "operationId": id,
        "summary": summary,
        "parameters": parameters,
        "responses": responses(schema, &[401, 403, 404, 429]),
    })
}

pub(super) fn responses(schema: Value, errors: &[u16]) -> Value {
    let mut responses = json!({ "200": response("OK", &schema) });
    for status in errors {
        responses[status.to_string()] = response("An error", &reference("Error"));
    }
    responses
}

pub(super) fn response(description: &str, schema: &Value) -> Value {
    json!({
        "description": description,
        "headers": { "x-request-id": { "schema": { "type": "string" }, "description": "The request's id." } },
        "content": { "application/json": { "schema": schema } },
    })
}

pub(super) fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

pub(super) fn object(required: &[&str], properties: Value) -> Value {
    json!({ "type": "object", "required": required, "properties": properties })
}
