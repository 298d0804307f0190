//! The parts of a docs page, in Markdown, that pages of every kind have.

use std::fmt::Write as _;

use serde_json::Value;

use super::field::{Field, Kind};
use super::schema::{default, member_default};
use super::{Form, Rule};
use crate::input::{InputRules, MB, names};
use crate::{AnyFamily, Endpoint};

/// Title, introduction and the table of what the family is.
pub(crate) fn front(page: &mut String, family: AnyFamily, others: &[Endpoint]) {
    let form = family.form();
    let _ = writeln!(
        page,
        "# {}\n\n{}\n\n| | |\n|---|---|",
        form.title, form.about
    );
    let _ = writeln!(page, "| Endpoint | `{}` |", family.endpoint());
    if !others.is_empty() {
        let others = others.iter().map(Endpoint::to_string).collect::<Vec<_>>();
        let _ = writeln!(page, "| Also | `{}` |", others.join("`, `"));
    }
    let models = code_list(form.models.iter().copied());
    let _ = writeln!(page, "| Models | {models} |");
    let _ = writeln!(
        page,
        "| Family | `{}` (for `like` in the configuration) |",
        family.name()
    );
    let _ = writeln!(
        page,
        "| Links | work for {} hours |",
        family.links().hours()
    );
    let review = if family.safety_review() {
        "every prompt"
    } else {
        "only when configured"
    };
    let _ = writeln!(page, "| Safety review | {review} |\n");
}

/// The table of a form's fields.
pub(crate) fn field_table(page: &mut String, form: &Form) {
    page.push_str("| Field | Type | Values | Default | |\n|---|---|---|---|---|\n");
    let _ = writeln!(
        page,
        "| `{}` | string, required | a model id from above | | |",
        form.model_field
    );
    for field in form.every_field() {
        let default = default(form, field);
        field_row(page, form, field, field.name, default);
        if let Kind::Object(members) = field.kind {
            for member in members {
                let name = format!("{}.{}", field.name, member.name);
                field_row(page, form, member, &name, member_default(member));
            }
        }
    }
    page.push_str("\nNumbers are JSON numbers without quotes; `null` counts as absent. Other fields are ignored and listed as `adjustments`; with the header `x-tollgate-strict: true` they are an error.\n\n");
}

fn field_row(page: &mut String, form: &Form, field: &Field, name: &str, default: Option<Value>) {
    let mut names = format!("`{name}`");
    for alias in field.aliases {
        let _ = write!(names, ", `{alias}`");
    }
    if field.in_metadata {
        let _ = write!(names, ", `metadata.{}`", field.name);
    }
    let (kind, values) = kind(form, field);
    let required = if field.required { ", required" } else { "" };
    let default = match default {
        Some(Value::String(text)) => format!("`{text}`"),
        Some(other) => format!("`{other}`"),
        None => String::new(),
    };
    let doc = field.doc;
    let _ = writeln!(
        page,
        "| {names} | {kind}{required} | {values} | {default} | {doc} |"
    );
}

/// A field's JSON type and its values, in words.
fn kind(form: &Form, field: &Field) -> (&'static str, String) {
    match field.kind {
        Kind::Text {
            max_chars: Some(max),
        } => ("string", format!("at most {max} characters")),
        Kind::Text { max_chars: None } => ("string", String::new()),
        Kind::Choice(values) => ("string", code_list(values.iter().copied())),
        Kind::Int { min, max, .. } if min == max => ("integer", format!("only {min}")),
        Kind::Int { min, max, clamp } => {
            let others = if clamp {
                "; other numbers become the nearest"
            } else {
                ""
            };
            ("integer", format!("{min} to {max}{others}"))
        }
        Kind::Number { min, max } => ("number", format!("{min} to {max}")),
        Kind::Flag => ("boolean", String::new()),
        Kind::Length { lengths, text } => (
            if text { "string or integer" } else { "integer" },
            lengths.words(),
        ),
        Kind::Size => ("string", "see [Sizes](#sizes)".to_owned()),
        Kind::Ratio => ("string", code_list(form.sizes.ratios().into_iter())),
        Kind::Tier => ("string", code_list(form.sizes.tiers().0.iter().copied())),
        Kind::References => (
            "array of string",
            format!("at most {} images", form.inputs.max_count),
        ),
        Kind::Mask | Kind::Callback => ("string", "a URL".to_owned()),
        Kind::Picture => ("string or object", "an image".to_owned()),
        Kind::Pictures => (
            "array of strings or objects",
            format!("at most {} images", form.inputs.max_count),
        ),
        Kind::Object(_) => ("object", String::new()),
        Kind::Special(special) => (special.json_type, special.what.to_owned()),
    }
}

/// Words as code, with commas between them.
fn code_list<'a>(values: impl Iterator<Item = &'a str>) -> String {
    let quoted: Vec<String> = values.map(|value| format!("`{value}`")).collect();
    quoted.join(", ")
}

/// What reference images must be, where there are any.
pub(crate) fn inputs(page: &mut String, rules: &InputRules) {
    if rules.max_count == 0 {
        return;
    }
    page.push_str("## Reference images\n\n| | |\n|---|---|\n");
    let _ = writeln!(page, "| Images | at most {} |", rules.max_count);
    let _ = writeln!(page, "| Formats | {} |", names(rules.formats));
    let data = if rules.data_uris.is_empty() {
        "not taken: upload with `POST /v1/uploads/images` first".to_owned()
    } else {
        names(rules.data_uris)
    };
    let _ = writeln!(page, "| Data URIs | {data} |");
    let _ = writeln!(page, "| File size | at most {} MB |", rules.max_bytes / MB);
    let _ = writeln!(
        page,
        "| Each side | {} to {} pixels |",
        rules.min_side, rules.max_side
    );
    let _ = writeln!(
        page,
        "| Width × height | at most {} pixels |",
        rules.max_pixels
    );
    if rules.max_ratio.is_finite() {
        let _ = writeln!(page, "| Ratio | 1:{k} to {k}:1 |", k = rules.max_ratio);
    }
    page.push_str("\nUploads and data URIs are checked when the request is taken; other URLs when the task runs, and a limit broken then fails the task free of charge.\n\n");
}

/// The odd rules, and the fields without effect.
pub(crate) fn rule_list(page: &mut String, rules: &[Rule], ignored: &[(&str, &str)]) {
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

/// A request as a command line.
pub(crate) fn curl(page: &mut String, path: &str, body: &serde_json::Map<String, Value>) {
    let body = serde_json::to_string_pretty(body).unwrap_or_default();
    let _ = writeln!(
        page,
        "```sh\ncurl \"$TOLLGATE_BASE_URL{path}\" \\\n  -H \"Authorization: Bearer $TOLLGATE_API_KEY\" \\\n  -H \"Content-Type: application/json\" \\\n  -d '{body}'\n```",
    );
}
