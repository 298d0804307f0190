//! Where the links to results are in a model's output.

use serde_json::Value;

/// Members under which models usually have their results, looked at in this order where nothing is configured.
const USUAL: &[&str] = &[
    "images", "image", "videos", "video", "audios", "audio", "files", "file", "output", "outputs",
    "url",
];

/// Places to look at, the first that has links counts; the usual ones where there are none.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Outputs(Vec<Path>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Path(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Member(String),
    /// Every item of an array.
    Each,
}

impl Outputs {
    /// Reads places such as `images[].url`, `video.url` or `[]`.
    pub(super) fn read(value: &Value) -> Result<Self, String> {
        let wrong = || {
            format!(
                "must be a place such as \"images[].url\", \"video.url\" or \"[]\", or a list of such places, got {value}"
            )
        };
        let texts = match value {
            Value::String(text) => vec![text.as_str()],
            Value::Array(items) => {
                let texts: Option<Vec<_>> = items.iter().map(Value::as_str).collect();
                texts.ok_or_else(wrong)?
            }
            _ => return Err(wrong()),
        };
        let paths: Option<Vec<Path>> = texts.into_iter().map(Path::read).collect();
        let paths = paths.filter(|paths| !paths.is_empty());
        paths.map(Self).ok_or_else(wrong)
    }

    /// The links in `output`, in order.
    pub(super) fn links<'v>(&self, output: &'v Value) -> Vec<&'v str> {
        if self.0.is_empty() {
            return usual(output);
        }
        let mut found = self.0.iter().map(|path| path.links(output));
        found.find(|links| !links.is_empty()).unwrap_or_default()
    }
}

impl Path {
    fn read(text: &str) -> Option<Self> {
        let mut steps = Vec::new();
        for (at, piece) in text.split('.').enumerate() {
            let name = piece.trim_end_matches("[]");
            if name.contains(['[', ']']) || (name.is_empty() && (at > 0 || piece.is_empty())) {
                return None;
            }
            if !name.is_empty() {
                steps.push(Step::Member(name.to_owned()));
            }
            let each = (piece.len() - name.len()) / 2;
            steps.extend(std::iter::repeat_n(Step::Each, each));
        }
        Some(Self(steps))
    }

    fn links<'v>(&self, output: &'v Value) -> Vec<&'v str> {
        let mut values = vec![output];
        for step in &self.0 {
            values = match step {
                Step::Member(name) => values.iter().filter_map(|v| v.get(name)).collect(),
                Step::Each => values
                    .iter()
                    .filter_map(|v| v.as_array())
                    .flatten()
                    .collect(),
            };
        }
        values.into_iter().filter_map(link).collect()
    }
}

/// The links of an output that is a link, a list, or an object with one of the usual members.
fn usual(output: &Value) -> Vec<&str> {
    match output {
        Value::String(_) => link(output).into_iter().collect(),
        Value::Array(items) => items.iter().flat_map(usual).collect(),
        Value::Object(members) => {
            let mut found = USUAL
                .iter()
                .filter_map(|name| members.get(*name))
                .map(usual);
            found.find(|links| !links.is_empty()).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

fn link(value: &Value) -> Option<&str> {
    let text = value.as_str()?;
    let is_link = text.starts_with("https://") || text.starts_with("http://");
    is_link.then_some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn links_are_found_where_they_usually_are() {
        for (output, expected) in [
            (json!("https://a"), &["https://a"][..]),
            (
                json!(["https://a", "https://b"]),
                &["https://a", "https://b"],
            ),
            (
                json!({ "images": [{ "url": "https://a", "width": 1 }, { "url": "http://b" }], "seed": 1 }),
                &["https://a", "http://b"],
            ),
            (json!({ "video": { "url": "https://a" } }), &["https://a"]),
            (
                json!({ "images": [], "image": { "url": "https://a" } }),
                &["https://a"],
            ),
            (json!({ "output": "https://a" }), &["https://a"]),
            (json!({ "text": "https://a" }), &[]),
            (json!("no link"), &[]),
            (json!(null), &[]),
        ] {
            assert_eq!(Outputs::default().links(&output), expected, "{output}");
        }
    }

    #[test]
    fn configured_places_are_looked_at_in_order() {
        let output = json!({ "a": { "b": [{ "c": "https://1" }, { "c": "https://2" }] }, "d": ["https://3"] });
        for (places, expected) in [
            (json!("a.b[].c"), &["https://1", "https://2"][..]),
            (json!("d[]"), &["https://3"]),
            (json!(["x.y", "d[]", "a.b[].c"]), &["https://3"]),
            (json!("a.b"), &[]),
        ] {
            let outputs = Outputs::read(&places).unwrap();
            assert_eq!(outputs.links(&output), expected, "{places}");
        }
        let list = Outputs::read(&json!("[]")).unwrap();
        assert_eq!(list.links(&json!(["https://1"])), ["https://1"]);
    }

    #[test]
    fn places_that_are_none_are_errors() {
        for places in [
            json!(""),
            json!("a..b"),
            json!("a[0]"),
            json!("a.[]"),
            json!(5),
            json!([]),
            json!(["a", 5]),
        ] {
            let error = Outputs::read(&places).unwrap_err();
            assert!(error.contains("images[].url"), "{error}");
        }
    }
}
