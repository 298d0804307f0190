//! Finds the links to results in a model's output, by configured paths or by the members that models usually have.

use serde_json::Value;

/// Members that usually contain results, in the order in which they are searched if no path is configured.
const DEFAULT_MEMBERS: &[&str] = &[
    "images", "image", "videos", "video", "audios", "audio", "files", "file", "output", "outputs",
    "url",
];

/// The configured paths, of which the first with links is used. Empty for the default members.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ResultPaths(Vec<Path>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Path(Vec<Step>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Step {
    Member(String),
    /// Every item of an array.
    Each,
}

impl ResultPaths {
    /// Parses paths such as `images[].url`, `video.url` or `[]`.
    pub(super) fn parse(value: &Value) -> Result<Self, String> {
        let error = || {
            format!(
                "must be a path such as \"images[].url\", \"video.url\" or \"[]\", or a list of such paths, got {value}"
            )
        };
        let texts = match value {
            Value::String(text) => vec![text.as_str()],
            Value::Array(items) => {
                let texts: Option<Vec<_>> = items.iter().map(Value::as_str).collect();
                texts.ok_or_else(error)?
            }
            _ => return Err(error()),
        };
        let paths: Option<Vec<Path>> = texts.into_iter().map(Path::parse).collect();
        let paths = paths.filter(|paths| !paths.is_empty());
        paths.map(Self).ok_or_else(error)
    }

    /// The links in `output`, in order.
    pub(super) fn links<'v>(&self, output: &'v Value) -> Vec<&'v str> {
        if self.0.is_empty() {
            return default_links(output);
        }
        let mut found = self.0.iter().map(|path| path.links(output));
        found.find(|links| !links.is_empty()).unwrap_or_default()
    }
}

impl Path {
    fn parse(text: &str) -> Option<Self> {
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
        values.into_iter().filter_map(as_link).collect()
    }
}

/// The links of an output that is a link, a list, or an object with one of the default members.
fn default_links(output: &Value) -> Vec<&str> {
    match output {
        Value::String(_) => as_link(output).into_iter().collect(),
        Value::Array(items) => items.iter().flat_map(default_links).collect(),
        Value::Object(members) => {
            let mut found = DEFAULT_MEMBERS
                .iter()
                .filter_map(|name| members.get(*name))
                .map(default_links);
            found.find(|links| !links.is_empty()).unwrap_or_default()
        }
        _ => Vec::new(),
    }
}

fn as_link(value: &Value) -> Option<&str> {
    let text = value.as_str()?;
    let is_link = text.starts_with("https://") || text.starts_with("http://");
    is_link.then_some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::test_tables::rows;

    #[test]
    fn links_are_found_under_the_default_members() {
        for (output, expected) in rows::<(Value, Vec<String>)>("result_links") {
            assert_eq!(ResultPaths::default().links(&output), expected, "{output}");
        }
    }

    #[test]
    fn configured_paths_are_tried_in_order() {
        let output = json!({ "a": { "b": [{ "c": "https://1" }, { "c": "https://2" }] }, "d": ["https://3"] });
        for (paths, expected) in rows::<(Value, Vec<String>)>("result_paths") {
            let outputs = ResultPaths::parse(&paths).unwrap();
            assert_eq!(outputs.links(&output), expected, "{paths}");
        }
        let list = ResultPaths::parse(&json!("[]")).unwrap();
        assert_eq!(list.links(&json!(["https://1"])), ["https://1"]);
    }

    #[test]
    fn invalid_paths_are_errors() {
        for paths in rows::<Value>("invalid_result_paths") {
            let error = ResultPaths::parse(&paths).unwrap_err();
            assert!(error.contains("images[].url"), "{error}");
        }
    }
}
