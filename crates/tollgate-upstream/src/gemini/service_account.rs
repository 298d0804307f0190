//! Google service accounts: signs a token request with the key file's private key, and reuses the token until shortly before it
//! expires. <https://developers.google.com/identity/protocols/oauth2/service-account>
//!
//! The token request is a JWT. The crate `jsonwebtoken` 12.0.0 cannot sign with `ring`, the gateway's cryptography, unless a provider is written for
//! it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::HeaderValue;
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls::pki_types::PrivatePkcs8KeyDer;
use rustls::pki_types::pem::PemObject as _;
use serde_json::{Value, json};
use tokio::sync::Mutex;
use tokio::time::Instant;
use tollgate_core::Secret;
use url::Url;

use crate::adapter::{self, HttpRequest, HttpResponse, ProviderClient, classify_error};
use crate::channel::Channel;
use crate::egress::BodyParts;
use crate::error::{ProviderError, UpstreamErrorKind};

/// The scope of a token: everything that the account is allowed to do.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform";
const TOKEN_URI: &str = "https://oauth2.googleapis.com/token";
/// The longest validity of a token that Google grants.
const MAX_TTL: Duration = Duration::from_secs(3_600);
/// A token is not used for this long before it expires: a request takes a while to arrive.
const MARGIN: Duration = Duration::from_secs(300);
const TIMEOUT: Duration = Duration::from_secs(30);

/// One account and its current token.
pub(super) struct Account {
    /// The channel's key that it was read from.
    key: Secret,
    email: String,
    key_id: Option<String>,
    token_uri: String,
    signer: RsaKeyPair,
    /// Locked while a token is fetched, so that concurrent requests fetch only one.
    token: Mutex<TokenState>,
}

/// The outcome of the latest fetches of a token.
#[derive(Default)]
struct TokenState {
    /// The current token. `None` before the first fetch, and after the token was rejected.
    token: Option<Token>,
    /// The error of the last fetch and the time of the error. `None` if the last fetch succeeded.
    failure: Option<(Instant, ProviderError)>,
}

struct Token {
    /// The header's value, with `Bearer`.
    header: HeaderValue,
    until: Instant,
}

/// Whether a channel's key is the JSON of a key file rather than a token.
pub(super) fn is_key_file(key: &Secret) -> bool {
    key.expose().trim_start().starts_with('{')
}

/// The project of the first account among a channel's keys.
pub(super) fn project(channel: &Channel) -> Option<String> {
    let mut keys = channel.api_keys.iter().filter(|key| is_key_file(key));
    let document: Value = serde_json::from_str(keys.next()?.expose()).ok()?;
    let id = document["project_id"].as_str()?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    (!id.is_empty() && id.chars().all(is_plain)).then(|| id.to_owned())
}

impl Account {
    /// Parses a key file.
    ///
    /// # Errors
    /// A sentence that states what is invalid, without any part of the key.
    pub(super) fn parse(key: &Secret) -> Result<Self, String> {
        let document: Value = serde_json::from_str(key.expose())
            .map_err(|_| "the key begins with { but is not JSON".to_owned())?;
        let text = |name: &str| document.get(name).and_then(Value::as_str);
        let needed = |name: &str| {
            text(name).ok_or_else(|| {
                format!("the key is not a service account's key file: `{name}` is missing")
            })
        };
        let unusable = || "the key file's `private_key` is not an RSA key in PKCS #8".to_owned();
        let pem = needed("private_key")?;
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem.as_bytes()).map_err(|_| unusable())?;
        let signer = RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).map_err(|_| unusable())?;
        let token_uri = text("token_uri").unwrap_or(TOKEN_URI);
        let is_https = Url::parse(token_uri).is_ok_and(|url| url.scheme() == "https");
        if !is_https {
            return Err("the key file's `token_uri` must be an https URL".to_owned());
        }
        Ok(Self {
            key: key.clone(),
            email: needed("client_email")?.to_owned(),
            key_id: text("private_key_id").map(str::to_owned),
            token_uri: token_uri.to_owned(),
            signer,
            token: Mutex::default(),
        })
    }

    /// Whether the account was parsed from that key.
    pub(super) fn has_key(&self, key: &Secret) -> bool {
        self.key == *key
    }

    /// The value of the `authorization` header. A caller that waited for a fetch that failed receives that error: if each waiter fetched in turn, a
    /// token service that does not respond would delay the last of them by many timeouts.
    pub(super) async fn bearer(
        &self,
        client: &ProviderClient,
    ) -> Result<HeaderValue, ProviderError> {
        let called_at = Instant::now();
        let mut state = self.token.lock().await;
        if let Some(token) = &state.token
            && token.until > Instant::now()
        {
            return Ok(token.header.clone());
        }
        if let Some((failed_at, error)) = &state.failure
            && called_at < *failed_at
        {
            return Err(error.clone());
        }
        match self.fetch(client).await {
            Ok(fresh) => {
                let header = fresh.header.clone();
                *state = TokenState {
                    token: Some(fresh),
                    failure: None,
                };
                Ok(header)
            }
            Err(error) => {
                state.failure = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    /// Discards the token, so that the next call fetches another.
    pub(super) async fn discard_token(&self) {
        self.token.lock().await.token = None;
    }

    async fn fetch(&self, client: &ProviderClient) -> Result<Token, ProviderError> {
        let form = format!(
            "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion={}",
            self.assertion()?
        );
        let mut parts = BodyParts::new();
        parts.text(form);
        let form = HeaderValue::from_static("application/x-www-form-urlencoded");
        let request = HttpRequest::post_body(&self.token_uri, form, parts).with_timeout(TIMEOUT);
        let sent_at = Instant::now();
        let response = client.send(request).await?;
        let json = response.json();
        if !response.status.is_success() {
            return Err(response_error(client, &response, &json));
        }
        let text = json["access_token"].as_str().ok_or_else(|| {
            ProviderError::new(
                UpstreamErrorKind::Unavailable,
                "the upstream's token service returned no token",
            )
        })?;
        let header = adapter::secret_value("Bearer ", &Secret::new(text))?;
        let ttl = json["expires_in"]
            .as_u64()
            .map_or(MAX_TTL, Duration::from_secs);
        Ok(Token {
            header,
            until: sent_at + ttl.min(MAX_TTL).saturating_sub(MARGIN),
        })
    }

    /// The signed request for a token, a JWT.
    fn assertion(&self) -> Result<String, ProviderError> {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let now = now.unwrap_or_default().as_secs();
        let mut head = json!({ "alg": "RS256", "typ": "JWT" });
        if let Some(id) = &self.key_id {
            head["kid"] = id.as_str().into();
        }
        let claims = json!({
            "iss": self.email,
            "scope": SCOPE,
            "aud": self.token_uri,
            "iat": now,
            "exp": now + MAX_TTL.as_secs(),
        });
        let encode = |json: Value| URL_SAFE_NO_PAD.encode(json.to_string());
        let signed = format!("{}.{}", encode(head), encode(claims));
        let mut signature = vec![0; self.signer.public().modulus_len()];
        let signing = self.signer.sign(
            &RSA_PKCS1_SHA256,
            &SystemRandom::new(),
            signed.as_bytes(),
            &mut signature,
        );
        signing.map_err(|_| {
            ProviderError::new(
                UpstreamErrorKind::KeyRejected,
                "the channel's service account cannot sign",
            )
        })?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

/// `{error, error_description}`: the account was deleted or disabled, its key was revoked, or the gateway's clock is wrong.
fn response_error(client: &ProviderClient, response: &HttpResponse, json: &Value) -> ProviderError {
    let text = |name: &str| json[name].as_str().unwrap_or_default();
    let status = response.status.as_u16();
    let kind = match status {
        400..=403 => UpstreamErrorKind::KeyRejected,
        status => classify_error(status, text("error"), text("error_description")),
    };
    client.response_error(kind, response, text("error_description"))
}
