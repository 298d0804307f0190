//! Writes the sections that the docs pages of all families share, in Markdown: introduction, field table, reference images, rules, responses, errors,
//! example.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use super::field::{Field, FieldKind};
use super::schema::{default, member_default};
use super::spec::{RequestSpec, Rule};
use crate::endpoint::Endpoint;
use crate::input::limits::{InputLimits, MB, format_names};
use crate::link_ttl::LinkTtl;

/// The content of a page's introduction in addition to the request declaration.
pub(crate) struct Overview {
    /// The family's identifier.
    pub(crate) family: &'static str,
    /// Whether the family's model ids are names of one model.
    pub(crate) one_model: bool,
    pub(crate) endpoint: Endpoint,
    pub(crate) link_ttl: LinkTtl,
    pub(crate) safety_review: bool,
}

/// Writes the title, the introduction and the overview table.
pub(crate) fn write_overview(page: &mut String, spec: &RequestSpec, overview: &Overview) {
    let _ = writeln!(
        page,
        "# {}\n\n{}\n\n| | |\n|---|---|",
        spec.title, spec.about
    );
    let _ = writeln!(page, "| Endpoint | `{}` |", overview.endpoint);
    let aliases = overview.endpoint.aliases();
    if !aliases.is_empty() {
        let aliases = aliases.iter().map(Endpoint::to_string).collect::<Vec<_>>();
        let _ = writeln!(
            page,
            "| Alternative endpoints | `{}` |",
            aliases.join("`, `")
        );
    }
    let models = code_list(spec.models.iter().copied());
    let same = if overview.one_model {
        ": aliases of the first, under which prices, channels and keys list the model"
    } else {
        ""
    };
    let _ = writeln!(page, "| Model ids | {models}{same} |");
    let _ = writeln!(
        page,
        "| Family | `{}`, for `like` in the [configuration](../configuration.md) |",
        overview.family
    );
    let _ = writeln!(
        page,
        "| Result links | valid for {} hours by default |",
        overview.link_ttl.hours()
    );
    let review = if overview.safety_review {
        "every prompt"
    } else {
        "off unless configured"
    };
    let _ = writeln!(page, "| Safety review | {review} |\n");
}

/// Writes the table of the request fields.
pub(crate) fn write_field_table(page: &mut String, spec: &RequestSpec) {
    page.push_str(
        "| Field | Type | Required | Values | Default | Description |\n|---|---|---|---|---|---|\n",
    );
    let _ = writeln!(
        page,
        "| `{}` | string | yes | a model id of this page | | The model. |",
        spec.model_field
    );
    for field in spec.every_field() {
        write_field_row(page, spec, field, field.name, default(spec, field));
        if let FieldKind::Object(members) = field.kind {
            for member in members {
                let name = format!("{}.{}", field.name, member.name);
                write_field_row(page, spec, member, &name, member_default(member));
            }
        }
    }
    let except = match spec.every_field().any(|field| field.name == "seconds") {
        true => ", except `seconds`",
        false => "",
    };
    let _ = write!(
        page,
        "\nNumbers must be JSON numbers without quotes{except}. `null` counts as absent. Unknown fields are ignored and reported in `adjustments`; with the header `x-tollgate-strict: true` they are an error.\n\n"
    );
}

fn write_field_row(
    page: &mut String,
    spec: &RequestSpec,
    field: &Field,
    name: &str,
    default: Option<Value>,
) {
    let mut names = format!("`{name}`");
    for alias in field.aliases {
        let _ = write!(names, ", `{alias}`");
    }
    if field.in_metadata {
        let _ = write!(names, ", `metadata.{}`", field.name);
    }
    let (json_type, values) = type_and_values(spec, field);
    let required = if field.required { "yes" } else { "no" };
    let default = match default {
        Some(Value::String(text)) => format!("`{text}`"),
        Some(other) => format!("`{other}`"),
        None => String::new(),
    };
    let doc = field.doc;
    let _ = writeln!(
        page,
        "| {names} | {json_type} | {required} | {values} | {default} | {doc} |"
    );
}

/// A field's JSON type, and a description of its values.
fn type_and_values(spec: &RequestSpec, field: &Field) -> (&'static str, String) {
    let max_images = || format!("at most {} images", spec.input_limits.max_count);
    match field.kind {
        FieldKind::Text {
            max_chars: Some(max),
        } => ("string", format!("at most {max} characters")),
        FieldKind::Text { max_chars: None } => ("string", String::new()),
        FieldKind::Choice(values) => ("string", code_list(values.iter().copied())),
        FieldKind::Int { min, max, .. } if min == max => ("integer", format!("only {min}")),
        FieldKind::Int { min, max, clamp } => {
            let outside = if clamp {
                "; other numbers are clamped"
            } else {
                ""
            };
            ("integer", format!("{min} to {max}{outside}"))
        }
        FieldKind::Number { min, max } => ("number", format!("{min} to {max}")),
        FieldKind::Flag => ("boolean", String::new()),
        FieldKind::Duration { durations, text } => (
            if text { "string or integer" } else { "integer" },
            durations.describe(),
        ),
        FieldKind::Size => ("string", "see [Sizes](#sizes)".to_owned()),
        FieldKind::Ratio => ("string", code_list(spec.sizes.ratios().into_iter())),
        FieldKind::Tier => ("string", code_list(spec.sizes.tiers().0.iter().copied())),
        FieldKind::ImageUrls => (
            "array",
            format!("{}, each a URL or an object with `url`", max_images()),
        ),
        FieldKind::MaskUrl => (
            "string or object",
            "a URL, or an object with `url`".to_owned(),
        ),
        FieldKind::WebhookUrl => ("string", "a URL".to_owned()),
        FieldKind::Image => (
            "string or object",
            "a URL, data URI or base64, or an object with `url`".to_owned(),
        ),
        FieldKind::Images => ("array", format!("{}, each as `image`", max_images())),
        FieldKind::Object(_) => ("object", String::new()),
        FieldKind::Custom(custom) => (custom.json_type, custom.values.to_owned()),
    }
}

/// The values as inline code, separated by commas.
fn code_list<'a>(values: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = values.map(|value| format!("`{value}`")).collect();
    quoted.join(", ")
}

/// Writes the limits of reference images. Writes nothing if the family accepts none.
pub(crate) fn write_input_limits(page: &mut String, limits: &InputLimits) {
    if limits.max_count == 0 {
        return;
    }
    page.push_str("## Reference images\n\n| | |\n|---|---|\n");
    let _ = writeln!(page, "| Number | at most {} |", limits.max_count);
    let _ = writeln!(page, "| Formats | {} |", format_names(limits.formats));
    let data = if limits.data_uris.is_empty() {
        "not accepted: upload the file with `POST /v1/uploads/images` first".to_owned()
    } else {
        format_names(limits.data_uris)
    };
    let _ = writeln!(page, "| Data URIs | {data} |");
    let _ = writeln!(page, "| File size | at most {} MB |", limits.max_bytes / MB);
    let _ = writeln!(
        page,
        "| Width and height | {} to {} pixels each |",
        limits.min_side, limits.max_side
    );
    let _ = writeln!(
        page,
        "| Width × height | at most {} pixels |",
        limits.max_pixels
    );
    if limits.max_ratio.is_finite() {
        let _ = writeln!(
            page,
            "| Aspect ratio | 1:{k} to {k}:1 |",
            k = limits.max_ratio
        );
    }
    page.push_str("\nUploads and data URIs are checked when the request is submitted. Other URLs are checked when the task runs; an image outside the limits then fails the task, which costs nothing.\n\n");
}

/// Writes the rules that involve several fields, and the fields without effect.
pub(crate) fn write_rules(page: &mut String, rules: &[Rule], ignored: &[(&str, &str)]) {
    if rules.is_empty() && ignored.is_empty() {
        return;
    }
    page.push_str("## Rules\n\n");
    for rule in rules {
        let _ = writeln!(page, "- {}", rule.text);
    }
    for (field, why) in ignored {
        let _ = writeln!(page, "- `{field}` is ignored: {why}.");
    }
    page.push('\n');
}

/// Writes the sections on responses and errors. `about` describes receipt and record.
pub(crate) fn write_responses(page: &mut String, about: &str) {
    let _ = writeln!(page, "## Responses\n\n{about}\n");
    page.push_str("## Errors\n\n| Status | `error.type` | Cause |\n|---|---|---|\n");
    page.push_str("| 400 | `invalid_request_error` | a required field is missing, a value has the wrong type or is not allowed, or a rule is violated; the message names the field, the value received and the values allowed |\n");
    page.push_str("| 402 | `payment_required` | the balance, the key's quota or a budget does not cover the request |\n");
    page.push_str("| 404 | `not_found_error` | the model id is unknown |\n\n");
    page.push_str("[Errors](../errors.md) lists the errors that all endpoints have in common.\n\n");
}

/// Writes an example request as a curl command.
pub(crate) fn write_example(page: &mut String, path: &str, body: &Map<String, Value>) {
    let body = serde_json::to_string_pretty(body).unwrap_or_default();
    let _ = writeln!(
        page,
        "## Example\n\n```sh\ncurl \"$TOLLGATE_BASE_URL{path}\" \\\n  -H \"Authorization: Bearer $TOLLGATE_API_KEY\" \\\n  -H \"Content-Type: application/json\" \\\n  -d '{body}'\n```",
    );
}
