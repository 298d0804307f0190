//! Orders turns as the API requires: roles alternate, the user begins, and every call has its result at the start of the next turn.

use std::collections::{HashMap, HashSet};

use crate::hub::{Part, PartKind, Role};

/// A piece of a turn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece<'a> {
    /// A part without id, with its position in the request (turn, part).
    Plain(&'a Part, (usize, usize)),
    /// A call with the id that is sent.
    Call(&'a Part, String),
    /// A result with its position and the id that is sent. `None` until it is paired with its call.
    Result(&'a Part, (usize, usize), Option<String>),
    /// The missing result of the call with this id.
    Missing(String),
    /// Text that the gateway adds.
    Text(&'static str),
}

/// A turn to be written.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OutgoingTurn<'a> {
    pub(crate) role: Role,
    pub(crate) pieces: Vec<Piece<'a>>,
    /// Whether `content` is written as a string.
    pub(crate) plain: bool,
    /// Index of the turn in the request. `None` if several were merged.
    pub(crate) turn: Option<usize>,
}

/// Merges turns of the same role, gives every call a unique id and a result, and begins with a user turn.
pub(crate) fn order_turns(turns: Vec<OutgoingTurn<'_>>) -> Vec<OutgoingTurn<'_>> {
    let mut turns = merge_same_roles(turns);
    assign_call_ids(&mut turns);
    // Results are paired after merging, because the results of one turn may be in several turns.
    let mut at = 0;
    while at < turns.len() {
        if turns[at].pieces.iter().any(is_call) {
            pair_results(&mut turns, at);
        }
        at += 1;
    }
    turns.retain(|turn| !turn.pieces.is_empty());
    let mut turns = merge_same_roles(turns);
    if turns.first().is_none_or(|turn| turn.role != Role::User) {
        turns.insert(0, new_turn(Role::User, vec![Piece::Text(".")]));
    }
    turns
}

fn new_turn(role: Role, pieces: Vec<Piece<'_>>) -> OutgoingTurn<'_> {
    OutgoingTurn {
        role,
        pieces,
        plain: false,
        turn: None,
    }
}

fn is_call(piece: &Piece<'_>) -> bool {
    matches!(piece, Piece::Call(..))
}

fn merge_same_roles(turns: Vec<OutgoingTurn<'_>>) -> Vec<OutgoingTurn<'_>> {
    let mut out: Vec<OutgoingTurn<'_>> = Vec::with_capacity(turns.len());
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

/// Makes ids unique in the conversation. Repeated ids are numbered in order, so that the same history always gets the same ids.
fn assign_call_ids(turns: &mut [OutgoingTurn<'_>]) {
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

/// Moves the results of the calls of turn `at` to the start of the next turn, which becomes a user turn.
fn pair_results(turns: &mut Vec<OutgoingTurn<'_>>, at: usize) {
    if turns.get(at + 1).is_none_or(|turn| turn.role != Role::User) {
        turns.insert(at + 1, new_turn(Role::User, Vec::new()));
    }
    let calls: Vec<(String, String)> = turns[at]
        .pieces
        .iter()
        .filter_map(|piece| match piece {
            Piece::Call(part, sent_id) => Some((call_id(part).to_owned(), sent_id.clone())),
            _ => None,
        })
        .collect();
    let mut results = Vec::with_capacity(calls.len());
    for (id, sent_id) in calls {
        results.push(match take_result(turns, at + 1, &id) {
            Some((part, position)) => Piece::Result(part, position, Some(sent_id)),
            None => Piece::Missing(sent_id),
        });
    }
    let turn = &mut turns[at + 1];
    results.append(&mut turn.pieces);
    turn.pieces = results;
    turn.plain = false;
}

/// Takes the result of call `id` out of the turns after `from`, up to the next call with the same id.
fn take_result<'a>(
    turns: &mut [OutgoingTurn<'a>],
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
            && let Piece::Result(part, position, _) = turn.pieces.remove(at)
        {
            return Some((part, position));
        }
    }
    None
}
