//! The memory of chats that nodes share: entries in Redis for a day, each encrypted (ChaCha20-Poly1305) under a key that is derived from
//! `secrets.key` and the user's id by HKDF-SHA256. Redis contains neither contents nor ids in plain text, and no entry can be decrypted for another
//! user.
//!
//! It may be lost at any time. Reads count against the time budget for calls to Redis (50 ms); writes are made in the background.

use std::sync::Arc;
use std::time::Duration;

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Prk, Salt};
use ring::hmac;
use tokio::sync::Semaphore;
use tollgate_core::{Secret, id};

use crate::redis::RedisClient;
use crate::spawn::spawn_detached;

/// The prefix of all keys. Its number is raised when the content of entries changes.
const PREFIX: &str = "{tollgate:chats:1}";
/// The context string for deriving the keys.
const USER_PURPOSE: &[u8] = b"tollgate chats of the user ";
const NAME_PURPOSE: &[u8] = b"tollgate names of chats";
/// How long an entry is kept.
pub const TTL: Duration = Duration::from_secs(24 * 3_600);
/// Writes at the same time; further entries are not written.
const MAX_WRITES: usize = 64;
/// Bytes of an entry's name.
const NAME_BYTES: usize = 16;

/// The kind of an entry, and whether its name depends on the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// Signatures and reasoning by tool call: ids of different users may be equal, so the name depends on the user.
    Signature,
    /// Homes of stored conversations: an id identifies one conversation for all users.
    Conversation,
}

/// The result of reading an entry for a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// The entry does not exist.
    Nothing,
    /// The entry cannot be decrypted with the user's key: it belongs to another user.
    OfAnother,
    /// The content of the entry.
    Text(Vec<u8>),
}

/// Access to the entries of all nodes with the same `secrets.key`.
pub struct SealedMemory {
    redis: Arc<RedisClient>,
    secret: Prk,
    names: hmac::Key,
    writes: Arc<Semaphore>,
}

impl SealedMemory {
    /// Access to the entries at `redis`, encrypted under keys that are derived from `secrets_key`.
    pub fn new(redis: Arc<RedisClient>, secrets_key: &Secret) -> Self {
        let secret = Salt::new(HKDF_SHA256, &[]).extract(secrets_key.expose().as_bytes());
        let names = secret.expand(&[NAME_PURPOSE], hmac::HMAC_SHA256);
        Self {
            redis,
            names: names.expect("of the length of the hash").into(),
            secret,
            writes: Arc::new(Semaphore::new(MAX_WRITES)),
        }
    }

    /// Writes an entry of the user in the background. The write may fail, and is left out while `MAX_WRITES` others are in progress.
    pub fn put(&self, kind: EntryKind, user_id: &str, id: &str, text: &[u8]) {
        let Ok(permit) = Arc::clone(&self.writes).try_acquire_owned() else {
            return;
        };
        let name = self.name(kind, user_id, id);
        let Some(sealed) = self.encrypt(user_id, &name, text) else {
            return;
        };
        let redis = Arc::clone(&self.redis);
        spawn_detached(async move {
            let mut set = redis::cmd("SET");
            set.arg(name).arg(sealed).arg("EX").arg(TTL.as_secs());
            let _: Result<(), _> = redis.run_command(&set).await;
            drop(permit);
        });
    }

    /// Reads the user's entries with these ids, in their order, in one call. `None` if Redis fails or does not respond in time.
    pub async fn get(&self, kind: EntryKind, user_id: &str, ids: &[&str]) -> Option<Vec<Found>> {
        let names = ids.iter().map(|id| self.name(kind, user_id, id));
        let names: Vec<String> = names.collect();
        let mut get = redis::cmd("MGET");
        get.arg(&names);
        let sealed: Vec<Option<Vec<u8>>> = self.redis.run_command(&get).await.ok()?;
        let found = names.iter().enumerate().map(|(at, name)| {
            let Some(Some(sealed)) = sealed.get(at) else {
                return Found::Nothing;
            };
            self.decrypt(user_id, name, sealed)
                .map_or(Found::OfAnother, Found::Text)
        });
        Some(found.collect())
    }

    fn name(&self, kind: EntryKind, user_id: &str, id: &str) -> String {
        let (what, user_id) = match kind {
            EntryKind::Signature => ("signature", user_id),
            EntryKind::Conversation => ("conversation", ""),
        };
        let mut context = hmac::Context::with_key(&self.names);
        for part in [what, user_id, id] {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part.as_bytes());
        }
        let tag = context.sign();
        format!("{PREFIX}:{what}:{}", id::hex(&tag.as_ref()[..NAME_BYTES]))
    }

    fn user_key(&self, user_id: &str) -> Option<LessSafeKey> {
        let purpose = [USER_PURPOSE, user_id.as_bytes()];
        let key = self.secret.expand(&purpose, &CHACHA20_POLY1305).ok()?;
        Some(LessSafeKey::new(UnboundKey::from(key)))
    }

    /// Returns nonce and ciphertext; under another name, the entry cannot be decrypted.
    fn encrypt(&self, user_id: &str, name: &str, text: &[u8]) -> Option<Vec<u8>> {
        let nonce: [u8; NONCE_LEN] = rand::random();
        let mut bytes = text.to_vec();
        let key = self.user_key(user_id)?;
        let unique = Nonce::assume_unique_for_key(nonce);
        key.seal_in_place_append_tag(unique, Aad::from(name.as_bytes()), &mut bytes)
            .ok()?;
        Some([&nonce[..], &bytes].concat())
    }

    fn decrypt(&self, user_id: &str, name: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, ciphertext) = sealed.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut bytes = ciphertext.to_vec();
        let key = self.user_key(user_id)?;
        let text = key.open_in_place(nonce, Aad::from(name.as_bytes()), &mut bytes);
        text.ok().map(|text| text.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Metrics;

    fn memory(secrets_key: &str) -> SealedMemory {
        let url = Secret::new("redis://127.0.0.1:1");
        let redis = RedisClient::new(
            &url,
            Duration::from_secs(1),
            Metrics::new().register_redis(),
        )
        .unwrap();
        SealedMemory::new(Arc::new(redis), &Secret::new(secrets_key))
    }

    #[test]
    fn an_entry_opens_for_its_user_under_its_name_and_secret_only() {
        let (here, other) = (memory("secret a"), memory("secret b"));
        let name = here.name(EntryKind::Signature, "ada", "call_1");
        let sealed = here.encrypt("ada", &name, b"proof").unwrap();
        assert!(!sealed.windows(5).any(|bytes| bytes == b"proof"));
        assert_eq!(
            here.decrypt("ada", &name, &sealed).as_deref(),
            Some(&b"proof"[..])
        );
        assert_eq!(
            memory("secret a").decrypt("ada", &name, &sealed).as_deref(),
            Some(&b"proof"[..])
        );
        for (memory, user, name) in [
            (&here, "bob", name.as_str()),
            (&here, "ada", "another"),
            (&other, "ada", name.as_str()),
        ] {
            assert_eq!(memory.decrypt(user, name, &sealed), None, "{user} {name}");
        }
        assert_eq!(here.decrypt("ada", &name, &sealed[..4]), None);
    }

    #[test]
    fn names_reveal_nothing_and_differ_by_user_except_for_conversations() {
        let (here, other) = (memory("secret a"), memory("secret b"));
        let name = |memory: &SealedMemory, kind, user| memory.name(kind, user, "call_1");
        let signature = name(&here, EntryKind::Signature, "ada");
        assert!(!signature.contains("call_1") && !signature.contains("ada"));
        assert_ne!(signature, name(&here, EntryKind::Signature, "bob"));
        assert_ne!(signature, name(&other, EntryKind::Signature, "ada"));
        let conversation = name(&here, EntryKind::Conversation, "ada");
        assert_eq!(conversation, name(&here, EntryKind::Conversation, "bob"));
    }
}
