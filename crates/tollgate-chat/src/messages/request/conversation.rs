//! Turns as the vendor wants them: roles alternate, every call is answered in the turn behind it, results stand first.

use std::collections::{HashMap, HashSet};

use crate::hub::{Part, PartKind, Role, sanitize_id};
use crate::messages::wire::is_name_char;

/// No id of any vendor is longer in earnest.
const LONGEST_ID: usize = 128;

/// A piece of a turn on its way to the wire.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Piece<'a> {
    /// A part that has no id. The numbers are its place in the request.
    Plain(&'a Part, (usize, usize)),
    /// A call, and the id that it goes by.
    Call(&'a Part, String),
    /// A result. Until it is paired it has no id of the wire.
    Result(&'a Part, (usize, usize), Option<String>),
    /// Nothing answered the call of this id.
    Missing(String),
    /// Text of ours.
    Text(&'static str),
}

/// A turn on its way to the wire.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Said<'a> {
    pub(super) role: Role,
    pub(super) pieces: Vec<Piece<'a>>,
    /// Whether the content is to be one string.
    pub(super) plain: bool,
    /// Which turn of the request it was; none where it is several.
    pub(super) turn: Option<usize>,
}

/// The id as the vendor takes it, the same wherever it stands.
pub(in crate::messages) fn wire_id(id: &str) -> String {
    match id {
        "" => sanitize_id("?", LONGEST_ID, is_name_char).into_owned(),
        id => sanitize_id(id, LONGEST_ID, is_name_char).into_owned(),
    }
}

/// Merges turns of one role, gives every call an id of its own and its result, and lets the user begin.
pub(super) fn arrange(turns: Vec<Said<'_>>) -> Vec<Said<'_>> {
    let mut turns = merge(turns);
    give_ids(&mut turns);
    // Merging comes first: only then is a missing result truly missing.
    let mut at = 0;
    while at < turns.len() {
        if turns[at].pieces.iter().any(is_call) {
            answer(&mut turns, at);
        }
        at += 1;
    }
    turns.retain(|turn| !turn.pieces.is_empty());
    let mut turns = merge(turns);
    if turns.first().is_none_or(|turn| turn.role != Role::User) {
        turns.insert(0, said(Role::User, vec![Piece::Text(".")]));
    }
    turns
}

fn said(role: Role, pieces: Vec<Piece<'_>>) -> Said<'_> {
    Said {
        role,
        pieces,
        plain: false,
        turn: None,
    }
}

fn is_call(piece: &Piece<'_>) -> bool {
    matches!(piece, Piece::Call(..))
}

fn merge(turns: Vec<Said<'_>>) -> Vec<Said<'_>> {
    let mut out: Vec<Said<'_>> = Vec::with_capacity(turns.len());
    for turn in turns.into_iter().filter(|turn| !turn.pieces.is_empty()) {
        match out.last_mut().filter(|last| last.role == turn.role) {
            Some(last) => {
                last.pieces.extend(turn.pieces);
                (last.plain, last.turn) = (false, None);
            }
            None => out.push(turn),
        }
    }
    out
}

/// Ids are unique in the whole conversation. A second use of one is numbered by its place, so that the same history always
/// gets the same ids.
fn give_ids(turns: &mut [Said<'_>]) {
    let mut taken: HashSet<String> = HashSet::new();
    let mut uses: HashMap<String, usize> = HashMap::new();
    for piece in turns.iter_mut().flat_map(|turn| &mut turn.pieces) {
        let Piece::Call(_, id) = piece else { continue };
        let plain = id.clone();
        while !taken.insert(id.clone()) {
            let count = uses.entry(plain.clone()).or_insert(1);
            *count += 1;
            *id = format!("{plain}_{count}");
        }
    }
}

fn call_id(part: &Part) -> &str {
    match &part.kind {
        PartKind::ToolCall { id, .. } | PartKind::ToolResult { id, .. } => id,
        _ => "",
    }
}

/// Puts the results of the calls of turn `at` first in the user's turn behind it.
fn answer(turns: &mut Vec<Said<'_>>, at: usize) {
    if turns.get(at + 1).is_none_or(|turn| turn.role != Role::User) {
        turns.insert(at + 1, said(Role::User, Vec::new()));
    }
    let calls: Vec<(String, String)> = turns[at]
        .pieces
        .iter()
        .filter_map(|piece| match piece {
            Piece::Call(part, wire) => Some((call_id(part).to_owned(), wire.clone())),
            _ => None,
        })
        .collect();
    let mut results = Vec::with_capacity(calls.len());
    for (id, wire) in calls {
        results.push(match take_result(turns, at + 1, &id) {
            Some((part, place)) => Piece::Result(part, place, Some(wire)),
            None => Piece::Missing(wire),
        });
    }
    let turn = &mut turns[at + 1];
    results.append(&mut turn.pieces);
    turn.pieces = results;
    turn.plain = false;
}

/// Takes the result of call `id` out of the turns from `from` on, up to where another call goes by the same id.
fn take_result<'a>(
    turns: &mut [Said<'a>],
    from: usize,
    id: &str,
) -> Option<(&'a Part, (usize, usize))> {
    for turn in &mut turns[from..] {
        let mut pieces = turn.pieces.iter();
        if pieces.any(|piece| matches!(piece, Piece::Call(part, _) if call_id(part) == id)) {
            return None;
        }
        let found = turn
            .pieces
            .iter()
            .position(|piece| matches!(piece, Piece::Result(part, _, None) if call_id(part) == id));
        if let Some(at) = found
            && let Piece::Result(part, place, _) = turn.pieces.remove(at)
        {
            return Some((part, place));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(id: &str) -> Part {
        Part::new(PartKind::ToolCall {
            id: id.to_owned(),
            name: "f".to_owned(),
            arguments: String::new(),
            custom: false,
            signature: None,
        })
    }

    fn result(id: &str) -> Part {
        Part::new(PartKind::ToolResult {
            id: id.to_owned(),
            name: None,
            content: Vec::new(),
            plain: true,
            is_error: false,
            custom: false,
        })
    }

    /// `u` and `a` begin turns, `c1` calls, `r1` answers, anything else is text.
    fn arranged(script: &str) -> String {
        let words: Vec<&str> = script.split(' ').collect();
        let parts: Vec<Part> = words
            .iter()
            .map(|word| match word.split_at(1) {
                ("c", id) => call(id),
                ("r", id) => result(id),
                _ => Part::text(*word),
            })
            .collect();
        let mut turns: Vec<Said<'_>> = Vec::new();
        for (at, word) in words.iter().enumerate() {
            let piece = match (*word, &parts[at].kind) {
                ("u", _) => {
                    turns.push(said(Role::User, Vec::new()));
                    continue;
                }
                ("a", _) => {
                    turns.push(said(Role::Assistant, Vec::new()));
                    continue;
                }
                (_, PartKind::ToolCall { id, .. }) => Piece::Call(&parts[at], wire_id(id)),
                (_, PartKind::ToolResult { .. }) => Piece::Result(&parts[at], (0, 0), None),
                _ => Piece::Plain(&parts[at], (0, 0)),
            };
            turns.last_mut().unwrap().pieces.push(piece);
        }
        let mut out = Vec::new();
        for turn in arrange(turns) {
            out.push(if turn.role == Role::User { "u" } else { "a" }.to_owned());
            out.extend(turn.pieces.iter().map(|piece| match piece {
                Piece::Plain(part, _) => match &part.kind {
                    PartKind::Text { text, .. } => text.clone(),
                    _ => "?".to_owned(),
                },
                Piece::Call(_, wire) => format!("c{wire}"),
                Piece::Result(_, _, Some(wire)) => format!("r{wire}"),
                Piece::Result(part, _, None) => format!("stray{}", call_id(part)),
                Piece::Missing(wire) => format!("missing{wire}"),
                Piece::Text(text) => (*text).to_owned(),
            }));
        }
        out.join(" ")
    }

    #[test]
    fn trap_01_results_of_one_turn_go_into_one_turn() {
        assert_eq!(arranged("u hi a c1 c2 u r2 u r1"), "u hi a c1 c2 u r1 r2");
        assert_eq!(arranged("u hi a c1 a c2 u r1 u r2"), "u hi a c1 c2 u r1 r2");
    }

    #[test]
    fn trap_02_only_what_is_truly_missing_is_filled_in() {
        assert_eq!(arranged("u hi a c1 c2 u r2"), "u hi a c1 c2 u missing1 r2");
        assert_eq!(arranged("u hi a c1"), "u hi a c1 u missing1");
        assert_eq!(
            arranged("u hi a c1 c2 u r1 a so u r2"),
            "u hi a c1 c2 u r1 r2 a so"
        );
    }

    #[test]
    fn trap_03_results_stand_before_everything_else() {
        assert_eq!(
            arranged("u hi a c1 c2 u note r1 more r2"),
            "u hi a c1 c2 u r1 r2 note more"
        );
    }

    #[test]
    fn trap_06_ids_are_legal_and_never_used_twice() {
        let out = arranged("u hi a c1 u r1 a c1 u r1");
        assert_eq!(out, "u hi a c1 u r1 a c1_2 u r1_2");
        let legal = wire_id("call.a:b|c");
        assert!(legal.chars().all(is_name_char) && legal == wire_id("call.a:b|c"));
        assert!(!wire_id("").is_empty());
    }

    #[test]
    fn strays_stay_where_they_are_and_the_user_begins() {
        assert_eq!(arranged("u hi r9 a so"), "u hi stray9 a so");
        assert_eq!(arranged("a so u hi"), "u . a so u hi");
    }
}
