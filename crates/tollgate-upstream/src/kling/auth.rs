//! Kling's two kinds of credentials: an API key, or an access key with a secret, which signs a token valid for half an hour
//! (<https://kling.ai/document-api/api/get-started/authentication>).
//!
//! The token is a JWT. The crate `jsonwebtoken` 12.0.0 cannot sign with `ring`, the gateway's cryptography, unless a provider is written for it.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderMap;
use http::header::DATE;
use ring::hmac;
use serde_json::json;
use tollgate_core::Secret;

/// How long a token is valid, in seconds.
const TTL_SECONDS: i64 = 1800;
/// A token is valid from this many seconds before its creation, because clocks differ.
const CLOCK_TOLERANCE: i64 = 5;

/// The provider's clock, with whose time tokens are signed.
#[derive(Default)]
pub(super) struct ProviderClock {
    /// How many seconds the provider's clock is ahead of the gateway's.
    ahead: AtomicI64,
}

/// The access key and its secret, if a configured key is such a pair (`ACCESS_KEY:SECRET_KEY`).
pub(super) fn pair(key: &Secret) -> Option<(&str, &str)> {
    let (access, secret) = key.expose().split_once(':')?;
    (!access.is_empty() && !secret.is_empty()).then_some((access, secret))
}

impl ProviderClock {
    /// How many seconds the provider's clock is ahead of the gateway's, as far as that is known.
    pub(super) fn ahead(&self) -> i64 {
        self.ahead.load(Ordering::Relaxed)
    }

    /// Adjusts the clock to the date of a response that rejects a token as too old or too new. Returns whether the clock now differs from `ahead`,
    /// with which that token was signed: a concurrent request may have adjusted the clock already.
    pub(super) fn adjust(&self, headers: &HeaderMap, ahead: i64) -> bool {
        let date = headers.get(DATE).and_then(|value| value.to_str().ok());
        let Some(date) = date.and_then(|text| httpdate::parse_http_date(text).ok()) else {
            return false;
        };
        let new = seconds(date) - seconds(SystemTime::now());
        self.ahead.store(new, Ordering::Relaxed);
        new != ahead
    }
}

/// The value of the header `authorization` after `Bearer `, signed at the time of a clock that is `ahead` seconds ahead of the gateway's.
pub(super) fn bearer(key: &Secret, ahead: i64) -> Secret {
    match pair(key) {
        Some((access, secret)) => {
            let now = seconds(SystemTime::now()) + ahead;
            Secret::new(token(access, secret, now))
        }
        None => key.clone(),
    }
}

fn token(access: &str, secret: &str, now: i64) -> String {
    let part = |json: serde_json::Value| URL_SAFE_NO_PAD.encode(json.to_string());
    let head = part(json!({ "alg": "HS256", "typ": "JWT" }));
    let claims =
        part(json!({ "iss": access, "exp": now + TTL_SECONDS, "nbf": now - CLOCK_TOLERANCE }));
    let signed = format!("{head}.{claims}");
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let signature = URL_SAFE_NO_PAD.encode(hmac::sign(&key, signed.as_bytes()));
    format!("{signed}.{signature}")
}

fn seconds(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH);
    let seconds = since.as_ref().map_or(0, Duration::as_secs);
    i64::try_from(seconds).unwrap_or(i64::MAX / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_equals_one_signed_with_openssl() {
        // Signed with openssl: printf 'HEAD.CLAIMS' | openssl dgst -sha256 -hmac secret -binary | basenc --base64url
        let expected = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJhY2Nlc3MiLCJleHAiOjE3MDAwMDE4MDAsIm5iZiI6MTY5OTk5OTk5NX0.Uax9Le2DIMR4sgaCMvHO2dRn6hBcdMDP-butbgYKCGI";
        assert_eq!(token("access", "secret", 1_700_000_000), expected);
    }

    #[test]
    fn only_access_and_secret_key_pairs_are_signed() {
        let of = |text: &str| pair(&Secret::new(text)).is_some();
        assert!(of("ak:sk"));
        assert!(!of("api-key-1") && !of(":sk") && !of("ak:"));
        let plain = bearer(&Secret::new("api-key-1"), 0);
        assert_eq!(plain.expose(), "api-key-1");
    }

    #[test]
    fn the_date_of_a_response_sets_the_clock() {
        let clock = ProviderClock::default();
        assert!(!clock.adjust(&HeaderMap::new(), 0));
        let mut headers = HeaderMap::new();
        let date = SystemTime::now() + Duration::from_secs(3600);
        headers.insert(DATE, httpdate::fmt_http_date(date).parse().unwrap());
        // The second time, another request has set the clock after the token was signed.
        assert!(clock.adjust(&headers, 0));
        assert!(clock.adjust(&headers, 0));
        let ahead = clock.ahead();
        assert!((3597..=3600).contains(&ahead), "{ahead}");
        let token = bearer(&Secret::new("ak:sk"), ahead);
        let claims = token.expose().split('.').nth(1).unwrap();
        let claims = URL_SAFE_NO_PAD.decode(claims).unwrap();
        let claims: serde_json::Value = serde_json::from_slice(&claims).unwrap();
        let exp = claims["exp"].as_i64().unwrap();
        assert!(exp > seconds(SystemTime::now()) + 3590 + TTL_SECONDS);
    }
}
