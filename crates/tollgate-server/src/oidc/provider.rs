//! The OpenID provider: reads its metadata and keys, and exchanges a code for an account.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, StatusCode};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;
use tollgate_config::{Oidc, is_safe_url};
use tollgate_core::clock::HOUR;
use tollgate_core::{Clock, Millis, Secret};
use tollgate_upstream::egress::{self, EgressError, Timeouts, body};
use url::{Url, form_urlencoded};

use super::claims::{self, Account, Claims};
use super::cookie::{Pages, Pending};
use super::signature::{self, Jwk, SignatureError};

const TIMEOUTS: Timeouts = Timeouts {
    connect: Some(Duration::from_secs(5)),
    first_byte: Duration::from_secs(10),
    idle: Duration::from_secs(5),
};
/// Bytes of a response of the provider that are read.
const MAX_RESPONSE_BYTES: usize = 1 << 20;
/// How long metadata and keys are used before they are read again.
const METADATA_TTL: Millis = HOUR;

/// Why a sign-in failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OidcError {
    /// The provider does not respond correctly: the sign-in can be retried.
    #[error("the OpenID provider is not available: {0}")]
    Unavailable(String),
    /// The provider's response does not prove who signs in.
    #[error("a sign-in was rejected: {0}")]
    Rejected(String),
}

impl OidcError {
    /// An error code for the page that shows the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unavailable(_) => "provider_unavailable",
            Self::Rejected(_) => "rejected",
        }
    }
}

/// The provider's metadata (OpenID Connect Discovery 1.0).
#[derive(Debug, Clone, Deserialize)]
struct Metadata {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    jwks_uri: String,
    userinfo_endpoint: Option<String>,
    /// The default is `client_secret_basic`.
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// Defined in RFC 9207.
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
}

#[derive(Deserialize)]
struct KeySet {
    /// Keys of unknown kinds are ignored and are not an error.
    keys: Vec<serde_json::Value>,
}

#[derive(Deserialize)]
struct Tokens {
    id_token: Secret,
    access_token: Option<Secret>,
}

/// The data that was read from the provider, and when.
#[derive(Default)]
struct Cache {
    metadata: Option<(Arc<Metadata>, Millis)>,
    keys: Option<(Arc<Vec<Jwk>>, Millis)>,
}

/// The configured provider.
pub struct OidcProvider {
    settings: Oidc,
    console_redirect_uri: String,
    portal_redirect_uri: String,
    egress: egress::Client,
    clock: Arc<dyn Clock>,
    cache: Mutex<Cache>,
}

impl OidcProvider {
    /// The provider with these settings, for a gateway whose console and portal have these URLs.
    pub fn new(
        settings: Oidc,
        [console_url, portal_url]: [&str; 2],
        egress: egress::Client,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self {
            settings,
            console_redirect_uri: format!("{console_url}/oidc/callback"),
            portal_redirect_uri: format!("{portal_url}/oidc/callback"),
            egress,
            clock,
            cache: Mutex::default(),
        }
    }

    fn redirect_uri(&self, pages: Pages) -> &str {
        match pages {
            Pages::Console => &self.console_redirect_uri,
            Pages::Portal => &self.portal_redirect_uri,
        }
    }

    /// The settings.
    pub fn settings(&self) -> &Oidc {
        &self.settings
    }

    /// Checks that the provider responds with metadata and keys. For `tollgate doctor`.
    ///
    /// # Errors
    /// The reason.
    pub async fn check(&self) -> Result<(), OidcError> {
        let metadata = self.metadata().await?;
        self.keys(&metadata, false).await.map(drop)
    }

    /// The URL of the provider's page on which somebody signs in.
    ///
    /// # Errors
    /// [`OidcError::Unavailable`].
    pub async fn sign_in_url(&self, pending: &Pending) -> Result<String, OidcError> {
        let metadata = self.metadata().await?;
        let mut url = Url::parse(&metadata.authorization_endpoint)
            .map_err(|e| OidcError::Unavailable(format!("authorization_endpoint: {e}")))?;
        let mut query = url.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.settings.client_id)
            .append_pair("redirect_uri", self.redirect_uri(pending.pages))
            .append_pair("scope", &self.settings.scopes)
            .append_pair("state", &pending.state)
            .append_pair("nonce", &pending.nonce)
            .append_pair("code_challenge", &pending.challenge())
            .append_pair("code_challenge_method", "S256");
        if pending.session_id.is_some() {
            // Requests that the provider asks for the password even if the account is signed in there, and that the token states when.
            query
                .append_pair("prompt", "login")
                .append_pair("max_age", "0");
        }
        drop(query);
        Ok(url.into())
    }

    /// Exchanges the provider's code for an account. `issuer` is the parameter `iss` of the provider's response.
    ///
    /// # Errors
    /// [`OidcError`].
    pub async fn redeem(
        &self,
        code: &str,
        issuer: Option<&str>,
        pending: &Pending,
    ) -> Result<Account, OidcError> {
        let metadata = self.metadata().await?;
        let is_required = metadata.authorization_response_iss_parameter_supported;
        if issuer.is_some_and(|issuer| issuer != metadata.issuer)
            || (is_required && issuer.is_none())
        {
            let message = format!("the response is from the issuer {issuer:?}");
            return Err(OidcError::Rejected(message));
        }
        let tokens = self.exchange(&metadata, code, pending).await?;
        let mut claims = self.verify(&metadata, tokens.id_token.expose()).await?;
        let now = self.clock.now();
        claims::check(&claims, &self.settings, &pending.nonce, now).map_err(OidcError::Rejected)?;
        if claims::are_incomplete(&claims, &self.settings)
            && let (Some(url), Some(token)) = (&metadata.userinfo_endpoint, &tokens.access_token)
        {
            self.add_userinfo(url, token, &mut claims).await?;
        }
        claims::account(&claims, &self.settings).map_err(OidcError::Rejected)
    }

    /// The request that exchanges a code for tokens.
    fn token_request(
        &self,
        metadata: &Metadata,
        code: &str,
        pending: &Pending,
    ) -> Result<Result<Request<Bytes>, http::Error>, OidcError> {
        let settings = &self.settings;
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("grant_type", "authorization_code")
            .append_pair("code", code)
            .append_pair("redirect_uri", self.redirect_uri(pending.pages))
            .append_pair("code_verifier", &pending.verifier);
        let methods = metadata.token_endpoint_auth_methods_supported.as_ref();
        let has = |name: &str| methods.is_some_and(|list| list.iter().any(|known| known == name));
        let in_form = has("client_secret_post") && !has("client_secret_basic");
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(&metadata.token_endpoint)
            .header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        match &settings.client_secret {
            Some(secret) if !in_form => {
                let encode = |text: &str| {
                    form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>()
                };
                let pair = format!(
                    "{}:{}",
                    encode(&settings.client_id),
                    encode(secret.expose())
                );
                let value = format!("Basic {}", STANDARD.encode(pair));
                request = request.header(AUTHORIZATION, sensitive(&value)?);
            }
            secret => {
                form.append_pair("client_id", &settings.client_id);
                if let Some(secret) = secret {
                    form.append_pair("client_secret", secret.expose());
                }
            }
        }
        Ok(request.body(form.finish().into()))
    }

    async fn exchange(
        &self,
        metadata: &Metadata,
        code: &str,
        pending: &Pending,
    ) -> Result<Tokens, OidcError> {
        let request = self.token_request(metadata, code, pending)?;
        let (status, response) = self.send(request).await?;
        match status.is_success() {
            true => parse("token_endpoint", &response),
            // The status is 400 or 401 (RFC 6749, section 5.2). The error code is safe to log, its description may contain any text.
            false if status.is_client_error() => {
                #[derive(Deserialize)]
                struct TokenError {
                    error: String,
                }
                let error_code = serde_json::from_slice(&response)
                    .map_or_else(|_| status.to_string(), |error: TokenError| error.error);
                let message = format!("the provider did not accept the code: {error_code:?}");
                Err(OidcError::Rejected(message))
            }
            false => Err(OidcError::Unavailable(format!("token_endpoint: {status}"))),
        }
    }

    /// Verifies a token's signature; returns its claims.
    async fn verify(&self, metadata: &Metadata, token: &str) -> Result<Claims, OidcError> {
        let rejected = |e: SignatureError| match e {
            SignatureError::UnknownKey => {
                OidcError::Rejected("the token is signed by an unknown key".to_owned())
            }
            SignatureError::Invalid(why) => OidcError::Rejected(why.to_owned()),
        };
        let keys = self.keys(metadata, false).await?;
        match signature::verify(token, &keys) {
            Err(SignatureError::UnknownKey) => {
                let keys = self.keys(metadata, true).await?;
                signature::verify(token, &keys).map_err(rejected)
            }
            result => result.map_err(rejected),
        }
    }

    /// Adds the claims of the userinfo endpoint that the ID token does not have.
    async fn add_userinfo(
        &self,
        url: &str,
        token: &Secret,
        claims: &mut Claims,
    ) -> Result<(), OidcError> {
        let value = format!("Bearer {}", token.expose());
        let request = Request::builder()
            .uri(url)
            .header(ACCEPT, "application/json")
            .header(AUTHORIZATION, sensitive(&value)?)
            .body(Bytes::new());
        let (status, response) = self.send(request).await?;
        if !status.is_success() {
            let message = format!("userinfo_endpoint: {status}");
            return Err(OidcError::Unavailable(message));
        }
        let more: Claims = parse("userinfo_endpoint", &response)?;
        if more.get("sub") != claims.get("sub") {
            let message = "userinfo is of another account".to_owned();
            return Err(OidcError::Rejected(message));
        }
        claims::add_missing(claims, more);
        Ok(())
    }

    async fn metadata(&self) -> Result<Arc<Metadata>, OidcError> {
        let mut cache = self.cache.lock().await;
        let now = self.clock.now();
        if let Some((metadata, read_at)) = &cache.metadata
            && now - read_at < METADATA_TTL
        {
            return Ok(Arc::clone(metadata));
        }
        let issuer = &self.settings.issuer;
        let url = format!(
            "{}/.well-known/openid-configuration",
            issuer.trim_end_matches('/')
        );
        let metadata: Metadata = self.get("metadata", &url).await?;
        if metadata.issuer != *issuer {
            let message = format!(
                "its metadata has the issuer {:?}, oidc.issuer is {issuer:?}",
                metadata.issuer
            );
            return Err(OidcError::Unavailable(message));
        }
        let endpoints = [
            Some(&metadata.authorization_endpoint),
            Some(&metadata.token_endpoint),
            Some(&metadata.jwks_uri),
            metadata.userinfo_endpoint.as_ref(),
        ];
        for endpoint in endpoints.into_iter().flatten() {
            if !Url::parse(endpoint).is_ok_and(|url| is_safe_url(&url)) {
                let message = format!("its metadata has {endpoint:?}, which is not https");
                return Err(OidcError::Unavailable(message));
            }
        }
        let metadata = Arc::new(metadata);
        cache.metadata = Some((Arc::clone(&metadata), now));
        Ok(metadata)
    }

    /// The provider's keys. They are read again after [`METADATA_TTL`], or if `is_missing`: a token, which was received directly from the provider,
    /// has an unknown key.
    async fn keys(
        &self,
        metadata: &Metadata,
        is_missing: bool,
    ) -> Result<Arc<Vec<Jwk>>, OidcError> {
        let mut cache = self.cache.lock().await;
        let now = self.clock.now();
        if let Some((keys, read_at)) = &cache.keys
            && now - read_at < METADATA_TTL
            && !is_missing
        {
            return Ok(Arc::clone(keys));
        }
        let set: KeySet = self.get("jwks_uri", &metadata.jwks_uri).await?;
        let keys = set.keys.into_iter();
        let keys = Arc::new(
            keys.filter_map(|key| serde_json::from_value(key).ok())
                .collect::<Vec<Jwk>>(),
        );
        cache.keys = Some((Arc::clone(&keys), now));
        Ok(keys)
    }

    async fn get<T: DeserializeOwned>(&self, what: &str, url: &str) -> Result<T, OidcError> {
        let request = Request::builder()
            .uri(url)
            .header(ACCEPT, "application/json")
            .body(Bytes::new());
        let (status, response) = self.send(request).await?;
        if !status.is_success() {
            return Err(OidcError::Unavailable(format!("{what}: {status}")));
        }
        parse(what, &response)
    }

    /// Sends `request`, once more if its connection breaks off: providers close idle connections, perhaps at the moment at which a request is sent. That
    /// is safe because a provider accepts a code once.
    async fn send(
        &self,
        request: Result<Request<Bytes>, http::Error>,
    ) -> Result<(StatusCode, Bytes), OidcError> {
        let request = request.map_err(|e| OidcError::Unavailable(e.to_string()))?;
        let mut response = self.send_once(request.clone()).await;
        if matches!(response, Err(EgressError::Broken)) {
            response = self.send_once(request).await;
        }
        response.map_err(|e| OidcError::Unavailable(e.to_string()))
    }

    async fn send_once(&self, request: Request<Bytes>) -> Result<(StatusCode, Bytes), EgressError> {
        let response = self.egress.send(request.map(body), TIMEOUTS).await?;
        let (head, body) = response.into_parts();
        Ok((head.status, body.collect(MAX_RESPONSE_BYTES).await?))
    }
}

fn sensitive(value: &str) -> Result<HeaderValue, OidcError> {
    let value = HeaderValue::from_str(value);
    let mut value =
        value.map_err(|_| OidcError::Unavailable("a secret is no header".to_owned()))?;
    value.set_sensitive(true);
    Ok(value)
}

fn parse<T: DeserializeOwned>(what: &str, response: &[u8]) -> Result<T, OidcError> {
    serde_json::from_slice(response)
        .map_err(|e| OidcError::Unavailable(format!("{what}: not the JSON that is expected: {e}")))
}
