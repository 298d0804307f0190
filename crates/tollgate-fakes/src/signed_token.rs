//! Checks signed tokens: JSON web tokens with HMAC-SHA-256 (RFC 7519, RFC 2104).

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// Why a token is rejected: Kling's code, the rule, the message.
type Invalid = (&'static str, &'static str, &'static str);

/// A token, not yet checked.
pub(crate) struct Token {
    header: Value,
    claims: Value,
    /// The signed part of the token.
    signed: String,
    signature: Vec<u8>,
}

impl Token {
    /// Parses a text in the form of a token.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let (signed, signature) = text.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        let json = |part: &str| -> Option<Value> {
            let bytes = URL_SAFE_NO_PAD.decode(part).ok()?;
            let value: Value = serde_json::from_slice(&bytes).ok()?;
            value.is_object().then_some(value)
        };
        Some(Self {
            header: json(header)?,
            claims: json(claims)?,
            signed: signed.to_owned(),
            signature: URL_SAFE_NO_PAD.decode(signature).ok()?,
        })
    }

    /// Checks the token at the time `now`, in seconds since 1970, against keys written `access:secret`. The signature is checked only if there are
    /// keys.
    pub(crate) fn check(&self, keys: &[String], now: u64) -> Result<(), Invalid> {
        if self.header["alg"] != "HS256" || self.header["typ"] != "JWT" {
            return Err((
                "1002",
                "jwt-header",
                "Authorization is invalid: header of the token",
            ));
        }
        let number = |name: &str| self.claims.get(name).and_then(Value::as_u64);
        let issuer = self.claims.get("iss").and_then(Value::as_str);
        let (Some(issuer), Some(until), Some(from)) = (issuer, number("exp"), number("nbf")) else {
            return Err((
                "1002",
                "jwt-claims",
                "Authorization is invalid: iss, exp or nbf",
            ));
        };
        if !keys.is_empty() {
            let pairs = keys.iter().filter_map(|key| key.split_once(':'));
            let Some((_, secret)) = pairs.into_iter().find(|(access, _)| *access == issuer) else {
                return Err((
                    "1002",
                    "key",
                    "Authorization is invalid: access key not found",
                ));
            };
            if hmac(secret.as_bytes(), self.signed.as_bytes())[..] != self.signature {
                return Err(("1000", "jwt-signature", "Authentication failed: signature"));
            }
        }
        if from > now {
            return Err(("1003", "jwt-early", "Authorization is not yet valid"));
        }
        if until <= now {
            return Err(("1004", "jwt-late", "Authorization has expired"));
        }
        Ok(())
    }
}

/// Computes HMAC-SHA-256.
fn hmac(key: &[u8], message: &[u8]) -> [u8; 32] {
    let mut block = [0; 64];
    if key.len() > block.len() {
        block[..32].copy_from_slice(&Sha256::digest(key));
    } else {
        block[..key.len()].copy_from_slice(key);
    }
    let padded = |with: u8| block.map(|byte| byte ^ with);
    let inner = Sha256::new()
        .chain_update(padded(0x36))
        .chain_update(message);
    let outer = Sha256::new()
        .chain_update(padded(0x5c))
        .chain_update(inner.finalize());
    outer.finalize().into()
}
