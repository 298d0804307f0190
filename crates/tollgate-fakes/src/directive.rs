//! What a user's text tells the fake: a tool to call, a behaviour to have.

use crate::behaviour::Behaviour;

/// The name after `call tool`.
pub(crate) fn tool(text: &str) -> Option<&str> {
    let rest = text.split_once("call tool ")?.1.trim_start();
    let legal = |c: char| c.is_ascii_alphanumeric() || "_-.:".contains(c);
    let end = rest.find(|c| !legal(c)).unwrap_or(rest.len());
    let name = rest[..end].trim_end_matches(['.', ':']);
    (!name.is_empty()).then_some(name)
}

/// The behaviour in `[[fake:NAME]]`.
pub(crate) fn behaviour(text: &str) -> Option<Result<Behaviour, String>> {
    let (name, _) = text.split_once("[[fake:")?.1.split_once("]]")?;
    Some(name.parse())
}

/// Whether the text asks for thought.
pub(crate) fn thinks(text: &str) -> bool {
    text.contains("think")
}
