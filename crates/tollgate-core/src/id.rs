//! Ids that cannot be guessed: tasks and chats (sortable by time), keys, files, requests.

use std::fmt::Write as _;

use rand::RngExt as _;
use sha2::{Digest as _, Sha256};

use crate::clock::Millis;

/// Crockford's base 32: sorts like the number it writes, has no letters that look alike.
const BASE32: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// What every task id begins with (SPEC.md › Task submission receipts).
pub const TASK_PREFIX: &str = "task_";
/// What the id of every chat request begins with.
const CHAT_PREFIX: &str = "chat_";
/// Length of a task id: prefix, 10 digits of time, 20 random digits (100 bits).
pub const TASK_ID_LEN: usize = 35;
/// How many digits of an id say when it was made.
const TIME_DIGITS: usize = 10;

/// A new task id: `task_`, the time in 10 base-32 digits, then 100 random bits. Ids made in
/// different milliseconds sort by time.
pub fn task_id(now: Millis) -> String {
    timed_id(TASK_PREFIX, now)
}

/// A new id of a chat request: `chat_`, then as [`task_id`].
pub fn chat_id(now: Millis) -> String {
    timed_id(CHAT_PREFIX, now)
}

/// The id of the same chat request as if it had been made at `now`: its random digits stay.
pub fn chat_id_at(id: &str, now: Millis) -> String {
    let mut moved = time_prefix(CHAT_PREFIX, now);
    moved.push_str(id.get(moved.len()..).unwrap_or_default());
    moved
}

/// The smallest task id that could have been made at `at`: a bound for searches by time.
pub fn task_id_floor(at: Millis) -> String {
    time_prefix(TASK_PREFIX, at)
}

/// The smallest chat id that could have been made at `at`.
pub fn chat_id_floor(at: Millis) -> String {
    time_prefix(CHAT_PREFIX, at)
}

/// When a chat id was made, or none where it is none of ours.
pub fn chat_id_time(id: &str) -> Option<Millis> {
    let digits = id.strip_prefix(CHAT_PREFIX)?.get(..TIME_DIGITS)?;
    digits.bytes().try_fold(0, |time, digit| {
        let value = BASE32.iter().position(|known| *known == digit)?;
        Some(time << 5 | Millis::try_from(value).ok()?)
    })
}

/// Whether `text` has the form of a task id. Anything else is not worth a look into the database.
pub fn is_task_id(text: &str) -> bool {
    text.len() == TASK_ID_LEN
        && text
            .strip_prefix(TASK_PREFIX)
            .is_some_and(|rest| rest.bytes().all(|b| BASE32.contains(&b)))
}

fn timed_id(prefix: &str, now: Millis) -> String {
    let mut id = time_prefix(prefix, now);
    push_random32(&mut id, 20);
    id
}

fn time_prefix(prefix: &str, now: Millis) -> String {
    let mut id = String::with_capacity(TASK_ID_LEN);
    id.push_str(prefix);
    let now = now.max(0).cast_unsigned();
    for shift in (0..TIME_DIGITS).rev() {
        id.push(char::from(BASE32[((now >> (shift * 5)) & 31) as usize]));
    }
    id
}

/// A random name of 130 bits for a stored file.
pub fn file_name() -> String {
    let mut name = String::with_capacity(26);
    push_random32(&mut name, 26);
    name
}

/// A request id for requests that bring none: `req_` and 100 random bits.
pub fn request_id() -> String {
    let mut id = String::with_capacity(24);
    id.push_str("req_");
    push_random32(&mut id, 20);
    id
}

/// A short id with a prefix, for keys, users and ledger entries: 80 random bits.
pub fn short_id(prefix: &str) -> String {
    let mut id = String::with_capacity(prefix.len() + 16);
    id.push_str(prefix);
    push_random32(&mut id, 16);
    id
}

/// A new API key: `sk-` and 48 random characters (285 bits).
pub fn api_key() -> String {
    let mut rng = rand::rng();
    let mut key = String::with_capacity(51);
    key.push_str("sk-");
    for _ in 0..48 {
        key.push(char::from(BASE62[rng.random_range(0..62)]));
    }
    key
}

/// What is stored of a key: its SHA-256 in hex. A key has 285 random bits, so a slow hash would
/// add nothing.
pub fn key_hash(key: &str) -> String {
    hex(&key_digest(key))
}

/// The 32 bytes that [`key_hash`] writes.
pub fn key_digest(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}

/// Lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

fn push_random32(text: &mut String, digits: usize) {
    let mut bytes = [0u8; 32];
    rand::rng().fill(&mut bytes[..]);
    for byte in &bytes[..digits] {
        text.push(char::from(BASE32[usize::from(byte & 31)]));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn task_ids_sort_by_time_and_are_recognised() {
        let (early, late) = (task_id(1_700_000_000_000), task_id(1_700_000_000_001));
        assert!(early < late);
        assert!(is_task_id(&early) && is_task_id(&late));
        assert!(task_id_floor(1_700_000_000_001) > early);
        assert!(task_id_floor(1_700_000_000_001) <= late);
        assert!(!is_task_id("task_x"));
        assert!(!is_task_id(&early.replace("task_", "task-")));
    }

    #[test]
    fn chat_ids_sort_by_time_and_tell_it() {
        for at in [0, 1, 1_700_000_000_000, 1_700_000_000_001] {
            let id = chat_id(at);
            assert_eq!(chat_id_time(&id), Some(at));
            assert!(chat_id_floor(at) <= id && id < chat_id_floor(at + 1));
            assert!(!is_task_id(&id));
            let later = chat_id_at(&id, at + 5);
            assert_eq!(chat_id_time(&later), Some(at + 5));
            assert!(later.len() == id.len() && later[15..] == id[15..]);
        }
        for odd in [
            "",
            "chat_",
            "chat_u000000000",
            "task_0000000000",
            "chat_00000000é",
        ] {
            assert_eq!(chat_id_time(odd), None, "{odd}");
        }
    }

    #[test]
    fn keys_are_long_and_hash_the_same_twice() {
        let key = api_key();
        assert!(key.starts_with("sk-") && key.len() == 51);
        assert_eq!(key_hash(&key), key_hash(&key));
        assert_ne!(key_hash(&key), key_hash(&api_key()));
        assert_eq!(key_hash("abc").len(), 64);
    }
}
