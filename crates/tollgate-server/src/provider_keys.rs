//! Provider keys that the admin API stores: as the name of an environment variable, or encrypted (ChaCha20-Poly1305) under a key that
//! is derived from `secrets.key` by HKDF-SHA256.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, Salt};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tollgate_core::Secret;

use crate::routing::key_fingerprint;

/// The context string for deriving the key.
const PURPOSE: &[u8] = b"tollgate provider keys";
/// The prefix of a text that names an environment variable.
const ENV: &str = "env:";
/// The prefix of environment variables that are no provider keys: the gateway's own settings.
const OWN_PREFIX: &str = "TOLLGATE_";
/// How many of a provider key's last characters are shown, and the shortest key of which they are shown.
const HINT_CHARACTERS: usize = 4;
const HINT_MIN_LENGTH: usize = 16;

/// A provider key as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StoredKey {
    /// The name of the environment variable that contains the key.
    Env(String),
    /// The key in encrypted form.
    Sealed {
        /// Nonce and ciphertext, in base64.
        sealed: String,
        /// The key's fingerprint.
        fingerprint: String,
        /// Its last characters, if they may be shown.
        hint: Option<String>,
    },
    /// A key that this version cannot parse, because a later version wrote it. It is kept as it is.
    #[serde(untagged)]
    Unknown(Value),
}

impl StoredKey {
    /// The key that `text` contains or refers to. `channel` is the name of its channel.
    ///
    /// # Errors
    /// The error message states what is allowed.
    pub fn new(text: &str, channel: &str, secrets_key: Option<&Secret>) -> Result<Self, String> {
        let key = match text.strip_prefix(ENV) {
            Some(name) => Self::Env(name.to_owned()),
            None if text.is_empty() => return Err("is empty".to_owned()),
            None => {
                let secrets_key = secrets_key.ok_or(
                    "needs `secrets.key` in the configuration, under which keys are encrypted: set it, or write env:NAME",
                )?;
                let key = Secret::new(text);
                Self::Sealed {
                    sealed: encrypt(text, channel, secrets_key)?,
                    fingerprint: key_fingerprint(&key),
                    hint: hint(&key),
                }
            }
        };
        key.open(channel, secrets_key)?;
        Ok(key)
    }

    /// The key in plain text.
    ///
    /// # Errors
    /// Why this node cannot read the key.
    pub fn open(&self, channel: &str, secrets_key: Option<&Secret>) -> Result<Secret, String> {
        match self {
            Self::Env(name) if name.starts_with(OWN_PREFIX) => {
                Err(format!("names {name}, a setting of the gateway"))
            }
            Self::Env(name) => match std::env::var(name) {
                Ok(key) if !key.is_empty() => Ok(Secret::new(key)),
                _ => Err(format!(
                    "needs environment variable {name:?}, which is not set on this node"
                )),
            },
            Self::Sealed { sealed, .. } => {
                let secrets_key =
                    secrets_key.ok_or("is encrypted, and this node has no `secrets.key`")?;
                decrypt(sealed, channel, secrets_key)
                    .ok_or_else(|| "was encrypted under another `secrets.key`".to_owned())
            }
            Self::Unknown(_) => Err("cannot be read by this version".to_owned()),
        }
    }

    /// The key's fingerprint; `None` if the environment variable is not set on this node, or this version cannot parse the key.
    pub fn fingerprint(&self) -> Option<String> {
        match self {
            Self::Env(_) => self.open("", None).ok().as_ref().map(key_fingerprint),
            Self::Sealed { fingerprint, .. } => Some(fingerprint.clone()),
            Self::Unknown(_) => None,
        }
    }

    /// The key's last characters, if they may be shown.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Env(_) => hint(&self.open("", None).ok()?),
            Self::Sealed { hint, .. } => hint.clone(),
            Self::Unknown(_) => None,
        }
    }

    /// `env:NAME` if the key is in an environment variable, `sealed` if it is encrypted, `unknown` if this version cannot parse it.
    pub fn origin(&self) -> String {
        match self {
            Self::Env(name) => format!("{ENV}{name}"),
            Self::Sealed { .. } => "sealed".to_owned(),
            Self::Unknown(_) => "unknown".to_owned(),
        }
    }
}

/// The last characters of a key. `None` if the key is so short that they would reveal too much of it.
pub fn hint(key: &Secret) -> Option<String> {
    let characters: Vec<char> = key.expose().chars().collect();
    let start = characters.len().checked_sub(HINT_CHARACTERS)?;
    (characters.len() >= HINT_MIN_LENGTH).then(|| characters[start..].iter().collect())
}

fn derive_key(secrets_key: &Secret) -> Option<LessSafeKey> {
    let extracted = Salt::new(HKDF_SHA256, &[]).extract(secrets_key.expose().as_bytes());
    let expanded = extracted.expand(&[PURPOSE], &CHACHA20_POLY1305).ok()?;
    Some(LessSafeKey::new(UnboundKey::from(expanded)))
}

/// Encrypts a key for one channel: if the ciphertext is copied to another channel, it cannot be decrypted.
fn encrypt(text: &str, channel: &str, secrets_key: &Secret) -> Result<String, String> {
    let nonce: [u8; NONCE_LEN] = rand::random();
    let mut bytes = text.as_bytes().to_vec();
    let sealed = derive_key(secrets_key).and_then(|key| {
        let nonce = Nonce::assume_unique_for_key(nonce);
        let aad = Aad::from(channel.as_bytes());
        key.seal_in_place_append_tag(nonce, aad, &mut bytes).ok()
    });
    sealed.ok_or("cannot be encrypted")?;
    Ok(STANDARD.encode([&nonce[..], &bytes].concat()))
}

fn decrypt(sealed: &str, channel: &str, secrets_key: &Secret) -> Option<Secret> {
    let bytes = STANDARD.decode(sealed).ok()?;
    let (nonce, ciphertext) = bytes.split_at_checked(NONCE_LEN)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
    let mut ciphertext = ciphertext.to_vec();
    let aad = Aad::from(channel.as_bytes());
    let key = derive_key(secrets_key)?;
    let text = key.open_in_place(nonce, aad, &mut ciphertext).ok()?;
    Some(Secret::new(std::str::from_utf8(text).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_key_opens_under_its_own_secret_and_channel_only() {
        let secret = Secret::new("0123456789abcdef0123456789abcdef");
        let other = Secret::new("another-secret-of-32-characters!");
        let key = StoredKey::new("sk-a-key-of-the-provider", "a", Some(&secret)).unwrap();
        assert_eq!(
            key.open("a", Some(&secret)),
            Ok(Secret::new("sk-a-key-of-the-provider"))
        );
        for (channel, secret) in [("b", Some(&secret)), ("a", Some(&other)), ("a", None)] {
            assert!(key.open(channel, secret).is_err(), "{channel}");
        }
        let stored = serde_json::to_string(&key).unwrap();
        assert!(!stored.contains("sk-a-key"), "{stored}");
        assert_eq!(serde_json::from_str::<StoredKey>(&stored).unwrap(), key);
        assert_eq!(
            (key.hint().as_deref(), key.origin().as_str()),
            (Some("ider"), "sealed")
        );
        assert!(StoredKey::new("sk-x", "a", None).is_err());
        assert!(StoredKey::new("env:TOLLGATE_DATABASE__URL", "a", None).is_err());
        assert!(StoredKey::new("env:NO_SUCH_VARIABLE_HERE", "a", None).is_err());
    }
}
