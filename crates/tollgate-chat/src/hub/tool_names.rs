//! Converts tool names and call ids to a form that an upstream accepts.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use sha2::{Digest as _, Sha256};
use tollgate_core::id::hex;

use super::part::PartKind;
use super::request::Request;
use super::tool::{ToolChoice, ToolKind};

/// The names under which a request's tools are sent to one upstream: the same in definitions, tool choice and history.
#[derive(Debug, Default)]
pub struct ToolNames {
    /// Client's name to name sent, for names that had to be changed.
    sent: HashMap<String, String>,
    /// (name sent, client's name), in order of first use.
    renamed: Vec<(String, String)>,
}

impl ToolNames {
    /// Names of at most `max` characters, each accepted by `legal(is_first, character)`.
    pub fn new(request: &Request, max: usize, legal: impl Fn(bool, char) -> bool) -> Self {
        let fits = |name: &str| {
            !name.is_empty()
                && name.chars().count() <= max
                && name.chars().enumerate().all(|(i, c)| legal(i == 0, c))
        };
        let names = all_tool_names(request);
        let mut taken: HashSet<String> = names
            .iter()
            .filter(|name| fits(name))
            .map(|name| (*name).to_owned())
            .collect();
        let mut this = Self::default();
        for name in names {
            if fits(name) || this.sent.contains_key(name) {
                continue;
            }
            let plain = replace_illegal_chars(name, &legal);
            let mut short: String = plain.chars().take(max).collect();
            if short.is_empty() || short.len() != plain.len() || taken.contains(&short) {
                short = append_hash(&plain, name, max);
            }
            taken.insert(short.clone());
            this.renamed.push((short.clone(), name.to_owned()));
            this.sent.insert(name.to_owned(), short);
        }
        this
    }

    /// The name to send for the tool that the client calls `name`.
    pub fn upstream_name<'a>(&'a self, name: &'a str) -> &'a str {
        self.sent.get(name).map_or(name, String::as_str)
    }

    /// The changed names for [`crate::WrittenRequest::renamed_tools`]: (name sent, client's name).
    pub fn into_renamed(self) -> Vec<(String, String)> {
        self.renamed
    }
}

/// Every tool name in definitions, tool choice, calls and results; may repeat.
fn all_tool_names(request: &Request) -> Vec<&str> {
    let defined = request.tools.iter().filter_map(|tool| match &tool.kind {
        ToolKind::Function { name, .. } | ToolKind::Custom { name, .. } => Some(name.as_str()),
        _ => None,
    });
    let chosen = match &request.tool_choice {
        Some(ToolChoice::Tool(name)) => std::slice::from_ref(name),
        Some(ToolChoice::AllowedTools { names, .. }) => names,
        _ => &[],
    };
    let parts = request.turns.iter().flat_map(|turn| &turn.parts);
    let called = parts.filter_map(|part| match &part.kind {
        PartKind::ToolCall { name, .. } => Some(name.as_str()),
        PartKind::ToolResult { name, .. } => name.as_deref(),
        _ => None,
    });
    defined
        .chain(chosen.iter().map(String::as_str))
        .chain(called)
        .collect()
}

/// A tool-call id with at most `max` characters, each accepted by `legal`. Equal ids give equal results. Changed ids end in a hash
/// of the original, so that two different ids stay different. An empty id stays empty.
pub fn sanitize_id(id: &str, max: usize, legal: impl Fn(char) -> bool) -> Cow<'_, str> {
    if id.chars().all(&legal) && id.chars().count() <= max {
        return Cow::Borrowed(id);
    }
    let plain = replace_illegal_chars(id, &|_, c| legal(c));
    Cow::Owned(append_hash(&plain, id, max))
}

/// `text` with `_` for illegal characters, and before a first character that is only illegal there.
fn replace_illegal_chars(text: &str, legal: &impl Fn(bool, char) -> bool) -> String {
    let mut out = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        let first = out.is_empty();
        match c {
            c if legal(first, c) => out.push(c),
            c if first && legal(false, c) => out.extend(['_', c]),
            _ => out.push('_'),
        }
    }
    out
}

/// `text`, shortened so that it fits in `max` characters with a hash of `original` appended.
fn append_hash(text: &str, original: &str, max: usize) -> String {
    let digest = Sha256::digest(original);
    let hash = hex(&digest[..4]);
    let headroom = max.saturating_sub(hash.len() + 1);
    let head: String = text.chars().take(headroom).collect();
    format!("{head}_{hash}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hub::{ExtraFields, Tool};

    fn is_legal(c: char) -> bool {
        c.is_ascii_alphanumeric() || c == '_' || c == '-'
    }

    #[test]
    fn long_and_illegal_ids_become_legal_without_collisions() {
        assert_eq!(sanitize_id("call_1", 40, is_legal), "call_1");
        let (a, b) = (
            sanitize_id("a.b:c", 40, is_legal),
            sanitize_id("a:b.c", 40, is_legal),
        );
        assert!(a.starts_with("a_b_c_") && a != b && a == sanitize_id("a.b:c", 40, is_legal));
        let (x, y) = ("x".repeat(80) + "1", "x".repeat(80) + "2");
        let (x, y) = (sanitize_id(&x, 64, is_legal), sanitize_id(&y, 64, is_legal));
        assert!(x.len() == 64 && y.len() == 64 && x != y);
    }

    #[test]
    fn illegal_tool_names_are_replaced_and_restored() {
        let tool = |name: &str| Tool {
            kind: ToolKind::Function {
                name: name.to_owned(),
                description: None,
                parameters: None,
                strict: None,
            },
            cache_ttl: None,
            extra: ExtraFields::NONE,
        };
        let request = Request {
            tools: vec![
                tool("mcp.files.read"),
                tool("mcp_files_read"),
                tool("ok"),
                tool("1st"),
            ],
            ..Request::default()
        };
        let names = ToolNames::new(&request, 64, |first, c| {
            is_legal(c) && !(first && c.is_ascii_digit())
        });
        assert_eq!(names.upstream_name("ok"), "ok");
        assert_eq!(names.upstream_name("1st"), "_1st");
        let sent = names.upstream_name("mcp.files.read").to_owned();
        assert!(sent.starts_with("mcp_files_read_"));
        assert_eq!(names.into_renamed()[0], (sent, "mcp.files.read".to_owned()));
    }
}
