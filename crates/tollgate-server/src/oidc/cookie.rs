//! The cookie of a sign-in in progress: it binds the provider's response to the browser that began the sign-in, on whichever node the response is
//! received.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderValue;
use ring::digest;
use serde::{Deserialize, Serialize};
use tollgate_core::id;

use crate::http::cookies::{SameSite, format_set_cookie};

/// The name of the cookie, and its name on loopback without TLS.
const COOKIE: &str = "__Host-tollgate_oidc";
const LOOPBACK_COOKIE: &str = "tollgate_oidc";
/// How long a sign-in may take, in seconds.
const AGE_S: u32 = 600;

/// The pages that a sign-in is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pages {
    /// The pages of admins.
    Console,
    /// The pages of users.
    Portal,
}

impl Pages {
    /// The path prefix of the pages.
    pub fn base(self) -> &'static str {
        match self {
            Self::Console => "/console",
            Self::Portal => "/portal",
        }
    }
}

/// A sign-in in progress. Only the browser has its secrets; the provider receives the hash of one of them.
#[derive(Clone, Serialize, Deserialize)]
pub struct Pending {
    /// Returned in the provider's response.
    pub state: String,
    /// Contained in the ID token.
    pub nonce: String,
    /// The code verifier of PKCE: it proves to the provider that the code is redeemed by the client that requested it.
    pub verifier: String,
    /// The pages that the sign-in is for.
    pub pages: Pages,
    /// The path of the page that is shown next.
    pub next: String,
    /// The session for which the account signs in again, so that it counts as recent. `None` if a new session is created.
    pub session_id: Option<String>,
}

impl Pending {
    /// A sign-in that begins now, with new random values.
    pub fn new(pages: Pages, next: String, session_id: Option<String>) -> Self {
        Self {
            state: id::random_secret(""),
            nonce: id::random_secret(""),
            verifier: id::random_secret(""),
            pages,
            next,
            session_id,
        }
    }

    /// The `code_challenge` of the method S256 (RFC 7636).
    pub fn challenge(&self) -> String {
        URL_SAFE_NO_PAD.encode(digest::digest(&digest::SHA256, self.verifier.as_bytes()))
    }

    /// Parses the value of a cookie. `None` if [`Pending::set_cookie`] did not write it.
    pub fn from_cookie(value: &str) -> Option<Self> {
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(value).ok()?).ok()
    }

    /// The header that sets the cookie. `SameSite=Lax`, because the browser comes here from the provider's page.
    pub fn set_cookie(&self, is_plain_loopback: bool) -> HeaderValue {
        let text = serde_json::json!(self).to_string();
        header(&URL_SAFE_NO_PAD.encode(text), AGE_S, is_plain_loopback)
    }
}

/// The header that deletes the cookie.
pub fn delete_cookie(is_plain_loopback: bool) -> HeaderValue {
    header("", 0, is_plain_loopback)
}

/// The cookie's name.
pub fn name(is_plain_loopback: bool) -> &'static str {
    if is_plain_loopback {
        LOOPBACK_COOKIE
    } else {
        COOKIE
    }
}

fn header(value: &str, age_s: u32, is_plain_loopback: bool) -> HeaderValue {
    format_set_cookie(name(is_plain_loopback), value, age_s, SameSite::Lax)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_read_back_and_pkce_is_that_of_the_standard() {
        let mut pending = Pending::new(Pages::Portal, "/portal/keys".to_owned(), None);
        let header = pending.set_cookie(false);
        let text = header.to_str().unwrap();
        let value = text.strip_prefix("__Host-tollgate_oidc=").unwrap();
        let value = value.split(';').next().unwrap();
        let read = Pending::from_cookie(value).unwrap();
        assert_eq!((&read.state, &read.next), (&pending.state, &pending.next));
        assert!(Pending::from_cookie("e30").is_none());
        // The example of RFC 7636, appendix B.
        "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk".clone_into(&mut pending.verifier);
        assert_eq!(
            pending.challenge(),
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
        );
    }
}
