//! The options of a model entry, read and checked; presets for models that are well known.

mod rule;

use serde_json::{Map, Value};

use super::Mapping;
use super::order::{EXTRA, FILES, PLAIN, RESOLUTION, SIZE};
use super::output::Outputs;
use crate::channel::ChannelModel;
use rule::{most_of, rule};

/// What an operator would write for one model of the provider's.
pub(crate) struct Preset {
    /// The provider's id.
    pub(crate) id: &'static str,
    /// The catalogue's models that it serves where an entry names no upstream id.
    pub(crate) serves: &'static [&'static str],
    /// The options, as JSON.
    pub(crate) options: &'static str,
}

/// The options of a model entry.
pub(super) const OPTIONS: &[&str] = &["input", "constants", "implied", "output", "with_images"];
const OPTIONS_WITH_IMAGES: &[&str] = &["upstream", "input", "constants", "implied"];

impl Mapping {
    /// The mapping of a channel's model, or what is wrong with its options.
    pub(super) fn of(model: &ChannelModel, presets: &[Preset]) -> Result<Self, String> {
        let (upstream, preset) = named(model, presets);
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
        read(&upstream, &options).map_err(|words| format!("{}: {words}", model.name))
    }
}

/// The provider's id of a model, and the preset for it. An entry without an upstream id repeats its name there.
fn named<'p>(model: &ChannelModel, presets: &'p [Preset]) -> (String, Option<&'p Preset>) {
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

fn read(upstream: &str, options: &Map<String, Value>) -> Result<Mapping, String> {
    known(options, OPTIONS, "options")?;
    let outputs = match options.get("output") {
        Some(value) => Outputs::read(value).map_err(|e| format!("`options.output` {e}"))?,
        None => Outputs::default(),
    };
    let mut mapping = fields(upstream, options, "options")?;
    mapping.outputs = outputs;
    if let Some(value) = options.get("with_images") {
        let place = "options.with_images";
        let given = table(value, place)?;
        known(given, OPTIONS_WITH_IMAGES, place)?;
        let mut merged = options.clone();
        merged.extend(given.clone());
        let upstream = match given.get("upstream") {
            None => upstream,
            Some(Value::String(id)) if !id.is_empty() => id,
            Some(other) => {
                return Err(format!(
                    "`{place}.upstream` must be the id of a model, got {other}"
                ));
            }
        };
        mapping.with_images = Some(Box::new(fields(upstream, &merged, place)?));
    }
    Ok(mapping)
}

fn fields(upstream: &str, options: &Map<String, Value>, place: &str) -> Result<Mapping, String> {
    let constants = match options.get("constants") {
        Some(value) => table(value, &format!("{place}.constants"))?.clone(),
        None => Map::new(),
    };
    let implied = match options.get("implied") {
        Some(value) => implied(value, &format!("{place}.implied"))?,
        None => Vec::new(),
    };
    let (mut rules, mut most) = (Vec::new(), 1);
    let place = format!("{place}.input");
    let input = options.get("input").unwrap_or(&Value::Null);
    for (source, targets) in table(input, &place)? {
        let place = format!("{place}.{source}");
        if !is_source(source) {
            return Err(no_source(&place));
        }
        let several = targets.as_array().map(Vec::as_slice);
        for target in several.unwrap_or(std::slice::from_ref(targets)) {
            rules.push(rule(source, target, &place)?);
            if source == "n" {
                most = most_of(target, &place)?;
            }
        }
    }
    Ok(Mapping {
        upstream: upstream.to_owned(),
        constants,
        implied,
        rules,
        most,
        with_images: None,
        outputs: Outputs::default(),
    })
}

fn is_source(name: &str) -> bool {
    let own = name.strip_prefix(EXTRA).is_some_and(|own| !own.is_empty());
    own || PLAIN.contains(&name) || FILES.contains(&name) || name == SIZE || name == RESOLUTION
}

fn no_source(place: &str) -> String {
    format!(
        "`{place}` is no field of a job; there are: {}, {SIZE}, {RESOLUTION}, {}, {EXTRA}NAME",
        PLAIN.join(", "),
        FILES.join(", ")
    )
}

/// Fields that need no rule.
fn implied(value: &Value, place: &str) -> Result<Vec<String>, String> {
    let names = value.as_array().and_then(|names| {
        let names = names.iter().map(|name| name.as_str().map(str::to_owned));
        names.collect::<Option<Vec<_>>>()
    });
    let names =
        names.ok_or_else(|| format!("`{place}` must be a list of a job's fields, got {value}"))?;
    match names.iter().find(|name| !is_source(name)) {
        Some(stranger) => Err(no_source(&format!("{place}.{stranger}"))),
        None => Ok(names),
    }
}

fn table<'v>(value: &'v Value, place: &str) -> Result<&'v Map<String, Value>, String> {
    let table = value.as_object();
    table.ok_or_else(|| format!("`{place}` must be a table, got {value}"))
}

fn known(given: &Map<String, Value>, names: &[&str], place: &str) -> Result<(), String> {
    let stranger = given.keys().find(|name| !names.contains(&name.as_str()));
    stranger.map_or(Ok(()), |name| {
        let names = names.join(", ");
        Err(format!(
            "`{place}` has an unknown member {name:?}; it may have: {names}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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
    fn a_preset_is_found_by_id_and_by_what_it_serves() {
        for (upstream, expected) in [("a/b", "a/b"), ("a/b:0123", "a/b:0123"), ("other", "a/b")] {
            let mapping = Mapping::of(&model(upstream, json!({})), PRESETS).unwrap();
            assert_eq!(mapping.upstream, expected);
            assert_eq!(mapping.rules[0].to, ["text"]);
        }
        let mine = json!({ "input": { "prompt": "p" }, "constants": {} });
        let mapping = Mapping::of(&model("a/b", mine), PRESETS).unwrap();
        assert_eq!(mapping.rules[0].to, ["p"]);
        assert!(mapping.constants.is_empty());
        let error = Mapping::of(&model("c/d", json!({})), PRESETS).unwrap_err();
        assert!(
            error.contains("options.input") && error.contains("a/b"),
            "{error}"
        );
    }

    #[test]
    fn what_differs_with_images_stands_on_the_rest() {
        let options = json!({
            "input": { "prompt": "p", "size": "ar" }, "constants": { "x": 1 },
            "with_images": { "upstream": "a/edit", "input": { "prompt": "p", "references": "urls" } },
        });
        let mapping = Mapping::of(&model("a/new", options), &[]).unwrap();
        let with = mapping.with_images.unwrap();
        assert_eq!((with.upstream.as_str(), with.rules.len()), ("a/edit", 2));
        assert_eq!(with.constants["x"], 1);
    }

    #[test]
    fn every_mistake_is_named_with_what_is_allowed() {
        for (options, words) in [
            (json!({ "inputs": {} }), "`options.input` must say"),
            (
                json!({ "input": {}, "x": 1 }),
                "unknown member \"x\"; it may have: input, constants",
            ),
            (json!({ "input": "p" }), "`options.input` must be a table"),
            (
                json!({ "input": { "promt": "p" } }),
                "`options.input.promt` is no field of a job; there are: prompt,",
            ),
            (
                json!({ "input": { "extra.": "p" } }),
                "is no field of a job",
            ),
            (
                json!({ "input": { "prompt": "" } }),
                "must be the name of one of the model's fields",
            ),
            (
                json!({ "input": { "prompt": "a..b" } }),
                "must be the name of one of the model's fields",
            ),
            (
                json!({ "input": { "prompt": 5 } }),
                "must be the name of one of the model's fields",
            ),
            (
                json!({ "input": { "prompt": { "as": "{}" } } }),
                "must be the name of one of the model's fields",
            ),
            (
                json!({ "input": { "prompt": { "to": "p", "with": 1 } } }),
                "unknown member \"with\"",
            ),
            (
                json!({ "input": { "size": { "to": "s", "as": "pixels" } } }),
                "`options.input.size.as` must be \"ratio\", \"width\"",
            ),
            (
                json!({ "input": { "seconds": { "to": "s", "as": "text" } } }),
                "`options.input.seconds.as` must be a text with {}",
            ),
            (
                json!({ "input": { "references": { "to": "s", "as": 5 } } }),
                "must be \"list\" or \"first\", got 5",
            ),
            (
                json!({ "input": { "seconds": { "to": "s", "of": 5 } } }),
                "must have `of` as a list",
            ),
            (
                json!({ "input": { "seconds": { "to": "s", "of": [] } } }),
                "`options.input.seconds.of` must not be empty",
            ),
            (
                json!({ "input": { "seconds": { "to": "s", "of": [5], "values": {} } } }),
                "both `of` and `values`",
            ),
            (
                json!({ "input": { "size": { "to": "s", "of": ["wide"] } } }),
                "must have ratios such as \"16:9\", got \"wide\"",
            ),
            (
                json!({ "input": { "size": { "to": "s", "as": "width", "of": [1] } } }),
                "goes with ratios and plain fields only",
            ),
            (
                json!({ "input": { "seed": { "to": "s", "most": 4 } } }),
                "`options.input.seed.most` is for `n` and lists of pictures",
            ),
            (
                json!({ "input": { "n": { "to": "s", "of": [1, 2] } } }),
                "`options.input.n.of` goes with `most` only",
            ),
            (
                json!({ "input": { "speed": { "to": "s", "between": [2, 0.5] } } }),
                "`options.input.speed.between` must be the least and the greatest number",
            ),
            (
                json!({ "input": { "size": { "to": "s", "between": [1, 2] } } }),
                "`options.input.size.between` goes with fields that are numbers only",
            ),
            (
                json!({ "input": { "speed": { "to": "s", "between": [1, 2], "of": [1] } } }),
                "both `between` and the model's values",
            ),
            (
                json!({ "input": {}, "implied": "seed" }),
                "`options.implied` must be a list",
            ),
            (
                json!({ "input": {}, "implied": ["sed"] }),
                "`options.implied.sed` is no field of a job; there are: prompt,",
            ),
            (
                json!({ "input": { "n": { "to": "s", "most": 0 } } }),
                "`options.input.n.most` must be a whole number from 1, got 0",
            ),
            (
                json!({ "input": {}, "constants": 1 }),
                "`options.constants` must be a table",
            ),
            (
                json!({ "input": {}, "output": 1 }),
                "`options.output` must be a place",
            ),
            (
                json!({ "input": {}, "with_images": { "output": "x" } }),
                "`options.with_images` has an unknown member \"output\"",
            ),
            (
                json!({ "input": {}, "with_images": { "upstream": "" } }),
                "`options.with_images.upstream` must be the id",
            ),
            (
                json!({ "input": {}, "with_images": { "input": { "x": "y" } } }),
                "`options.with_images.input.x` is no field",
            ),
        ] {
            let error = Mapping::of(&model("c/d", options), &[]).unwrap_err();
            assert!(error.starts_with("m: ") && error.contains(words), "{error}");
        }
    }
}
