//! Kling's keys: a key as it is, or a signed token. The rest is in `providers/kling.toml`.

mod jwt;

use std::sync::LazyLock;
use std::time::SystemTime;

use crate::clock;
use crate::provider::Api;
use crate::rejection::{Checked, ProviderError};
use crate::request::ReceivedRequest;
use crate::tables::spec::Spec;

/// The fake of Kling.
pub(crate) struct Kling;

static SPEC: LazyLock<Spec> =
    LazyLock::new(|| Spec::read(include_str!("../../providers/kling.toml")));

impl Api for Kling {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    /// Takes a key as it is; or a token, for the older APIs alone, signed with the secret of one of
    /// the keys that are written `access:secret`.
    fn check_key(&self, key: &str, keys: &[String], request: &ReceivedRequest) -> Checked {
        let Some(token) = jwt::Token::read(key) else {
            let known = keys.is_empty() || keys.iter().any(|known| known == key);
            let refuse = || Box::new(self.provider_error(ProviderError::KeyRefused, request));
            return known.then_some(()).ok_or_else(refuse);
        };
        let checked = if request.path.starts_with("/v1/") {
            token.check(keys, clock::seconds(SystemTime::now()))
        } else {
            Err((
                "1002",
                "jwt-path",
                "Authorization is invalid: this API takes an API key only",
            ))
        };
        checked.map_err(|(code, rule, message)| {
            Box::new(crate::rejection::Rejection::new(401, "", rule, message).code(code))
        })
    }
}
