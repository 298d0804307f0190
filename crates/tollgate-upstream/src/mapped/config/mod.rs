//! Parses the options of a model entry, or of a preset, into a [`Mapping`].

mod rule_options;

use serde_json::{Map, Value};

use super::job_fields::{EXTRA, FILES, PLAIN, RESOLUTION, SIZE};
use super::mapping::Mapping;
use super::result_paths::ResultPaths;
use crate::channel::{Channel, ChannelModel, known_options};
use crate::error::{ProviderError, UpstreamErrorKind};
use rule_options::{check_members, parse_max, parse_rule};

/// Built-in options of a well-known model.
pub(crate) struct Preset {
    /// The provider's model id.
    pub(crate) id: &'static str,
    /// Models of the catalogue that the preset serves if an entry configures no upstream id.
    pub(crate) serves: &'static [&'static str],
    /// The options as JSON.
    pub(crate) options: &'static str,
}

/// The options of a model entry.
const OPTIONS: &[&str] = &["input", "constants", "implied", "output", "with_images"];
const OPTIONS_WITH_IMAGES: &[&str] = &["upstream", "input", "constants", "implied"];

/// Checks that a channel's options are known and all its models have a mapping, by their options or by `presets`.
pub(crate) fn check(channel: &Channel, presets: &[Preset]) -> Result<(), String> {
    known_options(channel, &[], OPTIONS)?;
    if channel.models.is_empty() {
        return Err(format!(
            "a channel of kind {:?} must name its `models`",
            channel.kind
        ));
    }
    channel
        .models
        .iter()
        .try_for_each(|model| Mapping::parse(model, presets).map(drop))
}

impl Mapping {
    /// The mapping of a channel's model; an invalid mapping becomes the error of an attempt.
    pub(in crate::mapped) fn for_call(
        model: &ChannelModel,
        presets: &[Preset],
    ) -> Result<Self, ProviderError> {
        let mapping = Self::parse(model, presets);
        mapping
            .map_err(|message| ProviderError::new(UpstreamErrorKind::UnsupportedByChannel, message))
    }

    /// The mapping of a channel's model.
    ///
    /// # Errors
    ///
    /// A sentence that names the wrong option.
    pub(super) fn parse(model: &ChannelModel, presets: &[Preset]) -> Result<Self, String> {
        let (upstream, preset) = find_preset(model, presets);
        let mut options: Map<String, Value> = match preset {
            // Presets are checked by a test.
            Some(preset) => serde_json::from_str(preset.options).unwrap_or_default(),
            None => Map::new(),
        };
        options.extend(model.options.clone());
        if !options.contains_key("input") {
            let ids: Vec<&str> = presets.iter().map(|preset| preset.id).collect();
            return Err(format!(
                "{}: `options.input` must say which fields {upstream:?} has; without it these are known: {}",
                model.name,
                ids.join(", ")
            ));
        }
        parse_options(&upstream, &options).map_err(|message| format!("{}: {message}", model.name))
    }
}

/// The provider's id of a model, and its preset. Without a configured upstream id, the id is the model's name.
fn find_preset<'p>(model: &ChannelModel, presets: &'p [Preset]) -> (String, Option<&'p Preset>) {
    // Without the version of `owner/model:version`.
    let bare = model.upstream.split(':').next().unwrap_or_default();
    if let Some(preset) = presets.iter().find(|preset| preset.id == bare) {
        return (model.upstream.clone(), Some(preset));
    }
    let serves = |preset: &&Preset| preset.serves.contains(&model.upstream.as_str());
    match presets.iter().find(serves) {
        Some(preset) => (preset.id.to_owned(), Some(preset)),
        None => (model.upstream.clone(), None),
    }
}

fn parse_options(upstream: &str, options: &Map<String, Value>) -> Result<Mapping, String> {
    check_members(options, OPTIONS, "options")?;
    let result_paths = match options.get("output") {
        Some(value) => ResultPaths::parse(value).map_err(|e| format!("`options.output` {e}"))?,
        None => ResultPaths::default(),
    };
    let mut mapping = parse_mapping(upstream, options, "options")?;
    mapping.result_paths = result_paths;
    if let Some(value) = options.get("with_images") {
        let path = "options.with_images";
        let given = table(value, path)?;
        check_members(given, OPTIONS_WITH_IMAGES, path)?;
        let mut merged = options.clone();
        merged.extend(given.clone());
        let upstream = match given.get("upstream") {
            None => upstream,
            Some(Value::String(id)) if !id.is_empty() => id,
            Some(other) => {
                return Err(format!(
                    "`{path}.upstream` must be the id of a model, got {other}"
                ));
            }
        };
        mapping.with_images = Some(Box::new(parse_mapping(upstream, &merged, path)?));
    }
    Ok(mapping)
}

fn parse_mapping(
    upstream: &str,
    options: &Map<String, Value>,
    path: &str,
) -> Result<Mapping, String> {
    let constants = match options.get("constants") {
        Some(value) => table(value, &format!("{path}.constants"))?.clone(),
        None => Map::new(),
    };
    let implied = match options.get("implied") {
        Some(value) => parse_implied(value, &format!("{path}.implied"))?,
        None => Vec::new(),
    };
    let (mut rules, mut max_per_call) = (Vec::new(), 1);
    let path = format!("{path}.input");
    let input = options.get("input").unwrap_or(&Value::Null);
    for (source, targets) in table(input, &path)? {
        let path = format!("{path}.{source}");
        if !is_job_field(source) {
            return Err(unknown_field(&path));
        }
        let list = targets.as_array().map(Vec::as_slice);
        for target in list.unwrap_or(std::slice::from_ref(targets)) {
            rules.push(parse_rule(source, target, &path)?);
            if source == "n" {
                max_per_call = parse_max(target, &path)?;
            }
        }
    }
    Ok(Mapping {
        upstream: upstream.to_owned(),
        constants,
        implied,
        rules,
        max_per_call,
        with_images: None,
        result_paths: ResultPaths::default(),
    })
}

fn is_job_field(name: &str) -> bool {
    let own = name.strip_prefix(EXTRA).is_some_and(|own| !own.is_empty());
    own || PLAIN.contains(&name) || FILES.contains(&name) || name == SIZE || name == RESOLUTION
}

fn unknown_field(path: &str) -> String {
    format!(
        "`{path}` is not a field of a job; there are: {}, {SIZE}, {RESOLUTION}, {}, {EXTRA}NAME",
        PLAIN.join(", "),
        FILES.join(", ")
    )
}

/// Parses `implied`: job fields that another rule covers or that the model obeys anyway, so that they are not reported as unsupported.
fn parse_implied(value: &Value, path: &str) -> Result<Vec<String>, String> {
    let names = value.as_array().and_then(|names| {
        let names = names.iter().map(|name| name.as_str().map(str::to_owned));
        names.collect::<Option<Vec<_>>>()
    });
    let names =
        names.ok_or_else(|| format!("`{path}` must be a list of a job's fields, got {value}"))?;
    match names.iter().find(|name| !is_job_field(name)) {
        Some(unknown) => Err(unknown_field(&format!("{path}.{unknown}"))),
        None => Ok(names),
    }
}

fn table<'v>(value: &'v Value, path: &str) -> Result<&'v Map<String, Value>, String> {
    let table = value.as_object();
    table.ok_or_else(|| format!("`{path}` must be a table, got {value}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::test_tables::rows;

    static PRESETS: &[Preset] = &[Preset {
        id: "a/b",
        serves: &["seedream", "other"],
        options: r#"{ "input": { "prompt": "text" }, "constants": { "x": 1 } }"#,
    }];

    fn model(upstream: &str, options: Value) -> ChannelModel {
        ChannelModel {
            options: options.as_object().cloned().unwrap(),
            ..ChannelModel::new("m", upstream)
        }
    }

    #[test]
    fn a_preset_is_found_by_id_and_by_the_models_it_serves() {
        for (upstream, expected) in [("a/b", "a/b"), ("a/b:0123", "a/b:0123"), ("other", "a/b")] {
            let mapping = Mapping::parse(&model(upstream, json!({})), PRESETS).unwrap();
            assert_eq!(mapping.upstream, expected);
            assert_eq!(mapping.rules[0].to, ["text"]);
        }
        let mine = json!({ "input": { "prompt": "p" }, "constants": {} });
        let mapping = Mapping::parse(&model("a/b", mine), PRESETS).unwrap();
        assert_eq!(mapping.rules[0].to, ["p"]);
        assert!(mapping.constants.is_empty());
        let error = Mapping::parse(&model("c/d", json!({})), PRESETS).unwrap_err();
        assert!(
            error.contains("options.input") && error.contains("a/b"),
            "{error}"
        );
    }

    #[test]
    fn options_with_images_extend_the_others() {
        let options = json!({
            "input": { "prompt": "p", "size": "ar" }, "constants": { "x": 1 },
            "with_images": { "upstream": "a/edit", "input": { "prompt": "p", "references": "urls" } },
        });
        let mapping = Mapping::parse(&model("a/new", options), &[]).unwrap();
        let with = mapping.with_images.unwrap();
        assert_eq!((with.upstream.as_str(), with.rules.len()), ("a/edit", 2));
        assert_eq!(with.constants["x"], 1);
    }

    #[test]
    fn errors_name_the_invalid_option_and_the_allowed_values() {
        for (options, message) in rows::<(Value, String)>("invalid_mappings") {
            let error = Mapping::parse(&model("c/d", options), &[]).unwrap_err();
            assert!(
                error.starts_with("m: ") && error.contains(&message),
                "{error}"
            );
        }
    }
}
