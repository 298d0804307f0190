//! Random ids of tasks and chats (sortable by time), API keys, files and requests, and the hash of API keys.

use std::fmt::Write as _;

use rand::RngExt as _;
use rand::distr::{Alphanumeric, SampleString as _};
use sha2::{Digest as _, Sha256};

use crate::clock::Millis;

/// Crockford's base 32: sorts like the encoded number, without letters that look alike.
const BASE32: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The prefix of task ids.
pub const TASK_PREFIX: &str = "task_";
/// The prefix of chat request ids.
const CHAT_PREFIX: &str = "chat_";
/// The length of a task id: prefix, 10 digits of time, 20 random digits (100 bits).
pub const TASK_ID_LEN: usize = 35;
/// The number of digits that encode the creation time.
const TIME_DIGITS: usize = 10;

/// A new task id: `task_`, the time in 10 base-32 digits, then 100 random bits. Ids from different milliseconds sort
/// by time.
pub fn task_id(now: Millis) -> String {
    timed_id(TASK_PREFIX, now)
}

/// A new chat request id: `chat_`, then as [`task_id`].
pub fn chat_id(now: Millis) -> String {
    timed_id(CHAT_PREFIX, now)
}

/// A chat request id with its time replaced by `now` and its random digits kept.
pub fn chat_id_with_time(id: &str, now: Millis) -> String {
    let mut moved = time_prefix(CHAT_PREFIX, now);
    moved.push_str(id.get(moved.len()..).unwrap_or_default());
    moved
}

/// The smallest possible task id from `at` on, as a bound for searches by time.
pub fn min_task_id_at(at: Millis) -> String {
    time_prefix(TASK_PREFIX, at)
}

/// The smallest possible chat request id from `at` on.
pub fn min_chat_id_at(at: Millis) -> String {
    time_prefix(CHAT_PREFIX, at)
}

/// The creation time in a chat request id. `None` if `id` is not one.
pub fn chat_id_time(id: &str) -> Option<Millis> {
    id_time(CHAT_PREFIX, id)
}

/// The creation time in a task id, or in the beginning of one ([`min_task_id_at`]). `None` if `id` is not one.
pub fn task_id_time(id: &str) -> Option<Millis> {
    id_time(TASK_PREFIX, id)
}

fn id_time(prefix: &str, id: &str) -> Option<Millis> {
    let digits = id.strip_prefix(prefix)?.get(..TIME_DIGITS)?;
    digits.bytes().try_fold(0, |time, digit| {
        let value = BASE32.iter().position(|known| *known == digit)?;
        Some(time << 5 | Millis::try_from(value).ok()?)
    })
}

/// Whether `text` has the form of a task id; other texts need no database lookup.
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

/// A new name for a stored file: 130 random bits.
pub fn file_name() -> String {
    let mut name = String::with_capacity(26);
    push_random32(&mut name, 26);
    name
}

/// A new request id, for requests without one: `req_` and 100 random bits.
pub fn request_id() -> String {
    let mut id = String::with_capacity(24);
    id.push_str("req_");
    push_random32(&mut id, 20);
    id
}

/// A new short id with a prefix, for keys, users and ledger entries: 80 random bits.
pub fn short_id(prefix: &str) -> String {
    let mut id = String::with_capacity(prefix.len() + 16);
    id.push_str(prefix);
    push_random32(&mut id, 16);
    id
}

/// A new API key: `sk-` and 48 random characters (285 bits).
pub fn api_key() -> String {
    random_secret("sk-")
}

/// A new token of the admin API: `adm_` and 48 random characters (285 bits).
pub fn admin_token() -> String {
    random_secret("adm_")
}

/// A new secret: `prefix` and 48 random characters (285 bits).
pub fn random_secret(prefix: &str) -> String {
    let mut secret = prefix.to_owned();
    Alphanumeric.append_string(&mut rand::rng(), &mut secret, 48);
    secret
}

/// The part of a secret that may be displayed: `prefix` and the 8 characters after it.
pub fn hint(secret: &str, prefix: &str) -> String {
    secret.chars().take(prefix.len() + 8).collect()
}

/// The hash under which a key is stored: SHA-256 in hex. A key has 285 random bits, so a slow password hash is not
/// needed.
pub fn key_hash(key: &str) -> String {
    hex(&key_digest(key))
}

/// The 32 bytes of [`key_hash`].
pub fn key_digest(key: &str) -> [u8; 32] {
    Sha256::digest(key.as_bytes()).into()
}

/// `bytes` in lower-case hex.
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
        assert!(min_task_id_at(1_700_000_000_001) > early);
        assert!(min_task_id_at(1_700_000_000_001) <= late);
        assert_eq!(task_id_time(&early), Some(1_700_000_000_000));
        assert_eq!(task_id_time(&min_task_id_at(5)), Some(5));
        assert_eq!(task_id_time(&chat_id(5)), None);
        assert!(!is_task_id("task_x"));
        assert!(!is_task_id(&early.replace("task_", "task-")));
    }

    #[test]
    fn chat_ids_sort_by_time_and_contain_it() {
        for at in [0, 1, 1_700_000_000_000, 1_700_000_000_001] {
            let id = chat_id(at);
            assert_eq!(chat_id_time(&id), Some(at));
            assert!(min_chat_id_at(at) <= id && id < min_chat_id_at(at + 1));
            assert!(!is_task_id(&id));
            let later = chat_id_with_time(&id, at + 5);
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
