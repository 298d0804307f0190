//! An OpenID provider that checks what clients must send, and that can return wrong data. Its page signs in at once, as the account that the test
//! set.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use futures_util::stream;
use ring::digest;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::now;

const CLIENT: &str = "gateway";
const SECRET: &str = "secret of the gateway/at+the provider";

/// A fault of the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The metadata is of another issuer.
    ForeignMetadata,
    /// The metadata sends clients to another site without TLS.
    PlainEndpoint,
    /// The parameter `iss` of the response is another provider's.
    ForeignResponse,
    /// The token is of another issuer.
    ForeignIssuer,
    /// The token is for another client.
    ForeignAudience,
    /// The token is of another sign-in.
    ForeignNonce,
    /// The token of the last sign-in is returned again.
    Replay,
    /// The token is not signed.
    NoSignature,
    /// The token is "signed" with the client's secret, as HS256 does.
    SymmetricSignature,
    /// The token is signed with a key that is not published.
    ForeignKey,
    /// The token has expired.
    Expired,
    /// The token has no expiry.
    NoExpiry,
    /// The token has no subject.
    NoSubject,
    /// Userinfo describes another account.
    ForeignUserinfo,
    /// There is no token.
    NoToken,
    /// The token endpoint fails.
    ServerError,
    /// The next request breaks off before the provider reads it.
    BreakOff,
    /// The account denied its consent.
    Denied,
}

struct Grant {
    nonce: String,
    challenge: String,
    redirect_uri: String,
}

#[derive(Default)]
struct Shared {
    origin: String,
    /// The claims of the account that signs in next; claims that begin with `userinfo:` are only in userinfo.
    account: Value,
    fault: Option<Fault>,
    grants: BTreeMap<String, Grant>,
    last_token: Option<String>,
    /// Key ids and key pairs; the last one signs, all are published.
    keys: Vec<(String, Vec<u8>)>,
    /// How often clients fetched the keys.
    keys_read: usize,
    /// The query of the last request for the page.
    authorize_query: BTreeMap<String, String>,
}

/// Listens until it is dropped.
pub(crate) struct FakeOidc {
    shared: Arc<Mutex<Shared>>,
    server: JoinHandle<()>,
}

fn new_key() -> Vec<u8> {
    let rng = SystemRandom::new();
    let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &rng);
    pkcs8.unwrap().as_ref().to_vec()
}

fn pair(pkcs8: &[u8]) -> EcdsaKeyPair {
    let rng = SystemRandom::new();
    EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pkcs8, &rng).unwrap()
}

impl FakeOidc {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        let shared = Arc::new(Mutex::new(Shared {
            origin: format!("http://{address}"),
            keys: vec![("key-1".to_owned(), new_key())],
            ..Shared::default()
        }));
        let routes = Router::new().fallback(respond).with_state(shared.clone());
        let server = tokio::spawn(async move {
            let _ = axum::serve(listener, routes).await;
        });
        Self { shared, server }
    }

    /// The table `[oidc]` of a gateway whose users sign in with this provider.
    pub(crate) fn config(&self, more: &str) -> String {
        let origin = &self.shared.lock().unwrap().origin;
        format!(
            "[oidc]\nissuer = \"{origin}\"\nclient_id = \"{CLIENT}\"\nclient_secret = \"{SECRET}\"\n{more}\n"
        )
    }

    /// Sets the account that signs in next.
    pub(crate) fn set_account(&self, claims: Value) {
        self.shared.lock().unwrap().account = claims;
    }

    pub(crate) fn set_fault(&self, fault: Option<Fault>) {
        self.shared.lock().unwrap().fault = fault;
    }

    /// Whether a fault is set: [`Fault::BreakOff`] ends after one request.
    pub(crate) fn has_fault(&self) -> bool {
        self.shared.lock().unwrap().fault.is_some()
    }

    /// Signs with a new key from then on; the previous keys stay published.
    pub(crate) fn rotate_key(&self) {
        let mut shared = self.shared.lock().unwrap();
        let id = format!("key-{}", shared.keys.len() + 1);
        shared.keys.push((id, new_key()));
    }

    pub(crate) fn keys_read(&self) -> usize {
        self.shared.lock().unwrap().keys_read
    }

    /// A parameter of the last request for its page.
    pub(crate) fn authorize_query(&self, name: &str) -> String {
        let shared = self.shared.lock().unwrap();
        shared
            .authorize_query
            .get(name)
            .cloned()
            .unwrap_or_default()
    }

    /// Requests the page, which signs in; returns the URL to which it redirects. `url` is the URL to which the gateway redirected.
    pub(crate) fn visit(&self, url: &str) -> String {
        let mut shared = self.shared.lock().unwrap();
        let url = url::Url::parse(url).unwrap();
        assert!(
            url.as_str()
                .starts_with(&format!("{}/authorize?", shared.origin)),
            "{url}"
        );
        let query: BTreeMap<String, String> = url.query_pairs().into_owned().collect();
        for (name, value) in [
            ("response_type", "code"),
            ("client_id", CLIENT),
            ("code_challenge_method", "S256"),
        ] {
            assert_eq!(query[name], value);
        }
        assert!(query["scope"].split(' ').any(|scope| scope == "openid"));
        assert!(
            query["state"].len() >= 32 && query["nonce"].len() >= 32,
            "{query:?}"
        );
        let code = format!("code-{}", shared.grants.len());
        let mut back = url::Url::parse(&query["redirect_uri"]).unwrap();
        let issuer = match shared.fault {
            Some(Fault::ForeignResponse) => "https://evil.example",
            _ => shared.origin.as_str(),
        };
        back.query_pairs_mut()
            .append_pair("state", &query["state"])
            .append_pair("iss", issuer);
        match shared.fault {
            Some(Fault::Denied) => back.query_pairs_mut().append_pair("error", "access_denied"),
            _ => back.query_pairs_mut().append_pair("code", &code),
        };
        let grant = Grant {
            nonce: query["nonce"].clone(),
            challenge: query["code_challenge"].clone(),
            redirect_uri: query["redirect_uri"].clone(),
        };
        shared.grants.insert(code, grant);
        shared.authorize_query = query;
        let path_and_query = back.as_str().split_once("://").unwrap().1;
        path_and_query[path_and_query.find('/').unwrap()..].to_owned()
    }
}

impl Drop for FakeOidc {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn json_response(value: &Value) -> Response {
    (
        [(header::CONTENT_TYPE, "application/json")],
        value.to_string(),
    )
        .into_response()
}

fn error_response(status: StatusCode, error: &str) -> Response {
    (status, json!({ "error": error }).to_string()).into_response()
}

async fn respond(
    State(shared): State<Arc<Mutex<Shared>>>,
    uri: Uri,
    headers: HeaderMap,
    body: String,
) -> Response {
    let mut shared = shared.lock().unwrap();
    if shared.fault == Some(Fault::BreakOff) {
        shared.fault = None;
        let broken = stream::once(async { Err::<Bytes, _>(io::Error::other("test")) });
        return Body::from_stream(broken).into_response();
    }
    match uri.path() {
        "/.well-known/openid-configuration" => metadata(&shared),
        "/jwks" => {
            shared.keys_read += 1;
            let keys: Vec<Value> = shared.keys.iter().map(|(id, key)| jwk(id, key)).collect();
            // Keys of an unknown type must not make a client fail.
            let unknown = json!({ "kty": "AKP", "alg": "ML-DSA-65", "pub": "AA" });
            let keys = [&[unknown][..], &keys].concat();
            json_response(&json!({ "keys": keys }))
        }
        "/token" => token(&mut shared, &headers, &body),
        "/userinfo" if headers[header::AUTHORIZATION] == "Bearer access" => {
            let mut claims = json!({});
            for (name, value) in shared.account.as_object().unwrap() {
                claims[name.trim_start_matches("userinfo:")] = value.clone();
            }
            if shared.fault == Some(Fault::ForeignUserinfo) {
                claims["sub"] = json!("somebody else");
            }
            json_response(&claims)
        }
        _ => error_response(StatusCode::NOT_FOUND, "not_found"),
    }
}

fn metadata(shared: &Shared) -> Response {
    let origin = &shared.origin;
    let issuer = match shared.fault {
        Some(Fault::ForeignMetadata) => "https://evil.example",
        _ => origin,
    };
    let token_endpoint = match shared.fault {
        Some(Fault::PlainEndpoint) => "http://evil.example/token".to_owned(),
        _ => format!("{origin}/token"),
    };
    json_response(&json!({
        "issuer": issuer,
        "authorization_endpoint": format!("{origin}/authorize"),
        "token_endpoint": token_endpoint,
        "jwks_uri": format!("{origin}/jwks"),
        "userinfo_endpoint": format!("{origin}/userinfo"),
        "authorization_response_iss_parameter_supported": true,
    }))
}

fn jwk(id: &str, key: &[u8]) -> Value {
    let pair = pair(key);
    let point = pair.public_key().as_ref();
    json!({
        "kty": "EC", "crv": "P-256", "kid": id, "use": "sig", "alg": "ES256",
        "x": URL_SAFE_NO_PAD.encode(&point[1..33]), "y": URL_SAFE_NO_PAD.encode(&point[33..]),
    })
}

fn token(shared: &mut Shared, headers: &HeaderMap, body: &str) -> Response {
    let form: BTreeMap<String, String> = url::form_urlencoded::parse(body.as_bytes())
        .into_owned()
        .collect();
    let encode =
        |text: &str| -> String { url::form_urlencoded::byte_serialize(text.as_bytes()).collect() };
    let expected = STANDARD.encode(format!("{}:{}", encode(CLIENT), encode(SECRET)));
    if headers.get(header::AUTHORIZATION).unwrap() != &format!("Basic {expected}") {
        return error_response(StatusCode::UNAUTHORIZED, "invalid_client");
    }
    // A code can be used once.
    let grant = shared.grants.get_mut(&form["code"]).map(|grant| Grant {
        nonce: std::mem::take(&mut grant.nonce),
        challenge: std::mem::take(&mut grant.challenge),
        redirect_uri: grant.redirect_uri.clone(),
    });
    let verifier = digest::digest(&digest::SHA256, form["code_verifier"].as_bytes());
    let grant = grant.filter(|grant| {
        grant.challenge == URL_SAFE_NO_PAD.encode(verifier)
            && grant.redirect_uri == form["redirect_uri"]
            && form["grant_type"] == "authorization_code"
    });
    let Some(grant) = grant else {
        return error_response(StatusCode::BAD_REQUEST, "invalid_grant");
    };
    match shared.fault {
        Some(Fault::ServerError) => return error_response(StatusCode::BAD_GATEWAY, "broken"),
        Some(Fault::NoToken) => return json_response(&json!({ "access_token": "access" })),
        _ => {}
    }
    let token = match (shared.fault, &shared.last_token) {
        (Some(Fault::Replay), Some(token)) => token.clone(),
        _ => id_token(shared, &grant.nonce),
    };
    shared.last_token = Some(token.clone());
    json_response(&json!({ "id_token": token, "access_token": "access", "token_type": "Bearer" }))
}

fn id_token(shared: &Shared, nonce: &str) -> String {
    let seconds = now();
    let mut claims = json!({
        "iss": shared.origin, "aud": [CLIENT], "azp": CLIENT, "nonce": nonce,
        "iat": seconds, "exp": seconds + 300,
    });
    for (name, value) in shared.account.as_object().unwrap() {
        if !name.starts_with("userinfo:") {
            claims[name] = value.clone();
        }
    }
    match shared.fault {
        Some(Fault::ForeignIssuer) => claims["iss"] = json!("https://evil.example"),
        Some(Fault::ForeignAudience) => claims["aud"] = json!("another client"),
        Some(Fault::ForeignNonce) => claims["nonce"] = json!("of another sign-in"),
        Some(Fault::Expired) => claims["exp"] = json!(seconds - 3600),
        Some(Fault::NoExpiry) => claims["exp"] = Value::Null,
        Some(Fault::NoSubject) => claims["sub"] = Value::Null,
        _ => {}
    }
    let (id, key) = shared.keys.last().unwrap();
    let foreign = new_key();
    let (header, key) = match shared.fault {
        Some(Fault::NoSignature) => (json!({ "alg": "none" }), None),
        Some(Fault::SymmetricSignature) => (json!({ "alg": "HS256", "kid": id }), None),
        Some(Fault::ForeignKey) => (json!({ "alg": "ES256", "kid": id }), Some(&foreign)),
        _ => (json!({ "alg": "ES256", "kid": id }), Some(key)),
    };
    let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let message = format!("{}.{}", part(&header), part(&claims));
    let signature = match (key, shared.fault) {
        (Some(key), _) => {
            let signed = pair(key).sign(&SystemRandom::new(), message.as_bytes());
            URL_SAFE_NO_PAD.encode(signed.unwrap())
        }
        (None, Some(Fault::SymmetricSignature)) => {
            let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, SECRET.as_bytes());
            URL_SAFE_NO_PAD.encode(ring::hmac::sign(&key, message.as_bytes()))
        }
        (None, _) => String::new(),
    };
    format!("{message}.{signature}")
}
