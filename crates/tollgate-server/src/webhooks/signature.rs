//! Webhook signatures as in Standard Webhooks: base64(HMAC-SHA256(secret, `id.timestamp.body`)).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use rand::RngExt as _;
use sha2::Sha256;
use tollgate_core::Secret;

/// The prefix of every secret.
const PREFIX: &str = "whsec_";

/// A new secret: `whsec_` and 32 random bytes in base64.
pub fn generate_secret() -> Secret {
    let mut bytes = [0_u8; 32];
    rand::rng().fill(&mut bytes);
    Secret::new(format!("{PREFIX}{}", STANDARD.encode(bytes)))
}

/// The value of `webhook-signature`. `None` if `secret` does not have the form that [`generate_secret`] returns; `timestamp` is in Unix seconds.
pub(super) fn sign(secret: &Secret, id: &str, timestamp: i64, body: &[u8]) -> Option<String> {
    let key = STANDARD
        .decode(secret.expose().strip_prefix(PREFIX)?)
        .ok()?;
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).ok()?;
    mac.update(format!("{id}.{timestamp}.").as_bytes());
    mac.update(body);
    Some(format!(
        "v1,{}",
        STANDARD.encode(mac.finalize().into_bytes())
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_that_of_a_published_example() {
        // The example is from Kling's documentation of its callbacks, which are signed in the same way.
        let secret = Secret::new("whsec_dGVzdHNlY3JldHRlc3RzZWNyZXR0ZXN0c2VjcmV0MTI=");
        let body = br#"{"id":"1234567890","status":"succeeded","message":"","create_time":1781080778802,"update_time":1781080794151}"#;
        let signed = sign(&secret, "9876543210", 1_781_080_794, body);
        let expected = "v1,UsKlJP00XoQyOn410NM9xv34sP+Gl0jnOO9Lcpr7NJ4=";
        assert_eq!(signed.as_deref(), Some(expected));
    }

    #[test]
    fn generated_secrets_differ_and_can_sign() {
        let (one, two) = (generate_secret(), generate_secret());
        assert_ne!(one.expose(), two.expose());
        assert!(sign(&one, "a", 1, b"").is_some());
        assert!(sign(&Secret::new("x"), "a", 1, b"").is_none());
    }
}
