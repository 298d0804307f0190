//! Sessions of the console: sign in, sign out, and enter the password again.

use std::net::IpAddr;

use async_trait::async_trait;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde_json::{Value, json};
use tollgate_core::id;
use tollgate_server::http::admin_error::AdminError;
use tollgate_server::http::cookies::{SameSite, format_set_cookie};
use tollgate_server::routes::health::FORWARDING_HEADERS;
use tollgate_store::{
    AdminRejection, AdminRequest, NewSession, Session, SignIn, SignInAttempt, SignInAttemptOutcome,
    Store,
};

use super::authenticate::{Actor, ActorKind, COOKIE_AGE_S, check_same_origin, session_cookie_name};
use super::call::{Call, written};
use super::endpoint::{Access, Endpoint, Returns, handler};
use super::fields::{self, Fields};
use super::list::{self, Item, Listing};
use super::reply::Reply;

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::POST,
        path: "/session",
        access: Access::Public,
        summary: "Signs in: with name and password, or with the code of a one-time link and a new password.",
        query: &[],
        body: Some("sign_in"),
        returns: Returns::Object("me", 201),
        handler: handler!(sign_in),
    },
    Endpoint {
        method: Method::DELETE,
        path: "/session",
        access: Access::Any,
        summary: "Signs out.",
        query: &[],
        body: None,
        returns: Returns::Nothing,
        handler: handler!(sign_out),
    },
    Endpoint {
        method: Method::GET,
        path: "/session/methods",
        access: Access::Public,
        summary: "The sign-in methods: `oidc` has the label of the OpenID provider; null if there is none.",
        query: &[],
        body: None,
        returns: Returns::Object("sign_in_methods", 200),
        handler: handler!(methods),
    },
    Endpoint {
        method: Method::POST,
        path: "/session/fresh",
        access: Access::Any,
        summary: "Verifies the password: for the next five minutes the session may change money and secrets.",
        query: &[],
        body: Some("password"),
        returns: Returns::Object("me", 200),
        handler: handler!(refresh),
    },
    Endpoint {
        method: Method::GET,
        path: "/sessions",
        access: Access::Any,
        summary: "The caller's own sessions, newest first.",
        query: &[],
        body: None,
        returns: Returns::List("session"),
        handler: handler!(list_sessions),
    },
];

/// Shortest new password, in characters; longest of any.
const MIN_PASSWORD: usize = 12;
const MAX_PASSWORD: usize = 1000;
/// Failed sign-ins in 15 minutes, with one name or from one address, after which further ones are rejected.
const MAX_FAILURES_OF_NAME: i64 = 5;
const MAX_FAILURES_OF_ADDRESS: i64 = 20;

/// The credentials that an admin signs in with.
struct Credentials {
    name: Option<String>,
    password: String,
    code: Option<String>,
}

impl Credentials {
    fn parse(body: Value) -> Result<Self, AdminError> {
        let mut fields = Fields::new(body)?;
        let code = fields.optional("code", fields::parse_text)?;
        let name = match code {
            Some(_) => fields.optional("name", fields::parse_object_name)?,
            None => Some(fields.required("name", fields::parse_text)?),
        };
        let password = fields.required("password", password)?;
        fields.finish(&[])?;
        if code.is_some() && password.chars().count() < MIN_PASSWORD {
            let message = format!("must have at least {MIN_PASSWORD} characters");
            return Err(AdminError::invalid("password", message));
        }
        Ok(Self {
            name,
            password,
            code,
        })
    }
}

fn password(name: &str, value: &Value) -> Result<String, AdminError> {
    let text = value.as_str();
    let text = text.filter(|text| (1..=MAX_PASSWORD).contains(&text.chars().count()));
    let message = || format!("must be a text of 1 to {MAX_PASSWORD} characters");
    text.map(str::to_owned)
        .ok_or_else(|| AdminError::invalid(name, message()))
}

fn invalid_credentials() -> AdminError {
    let message = "name, password or code is wrong, or the code was used or has expired";
    AdminError::new(StatusCode::UNAUTHORIZED, "bad_credentials", message)
}

async fn sign_in(call: Call) -> Result<Reply, AdminError> {
    check_same_origin(&call.app.console_url, &call.headers)?;
    let credentials = Credentials::parse(call.json_body()?)?;
    let mut subjects = vec![(format!("address:{}", call.peer), MAX_FAILURES_OF_ADDRESS)];
    if let (Some(name), None) = (&credentials.name, &credentials.code) {
        subjects.push((format!("name:{name}"), MAX_FAILURES_OF_NAME));
    }
    let attempt = begin_attempt(&call, subjects).await?;
    let sign_in = match credentials.code {
        Some(code) => link_sign_in(&call, &code, credentials.name, credentials.password).await?,
        None => password_sign_in(&call, credentials.name, credentials.password).await?,
    };
    let secret = id::random_secret("");
    let hash = id::key_hash(&secret);
    let new = NewSession {
        hash: hash.clone(),
        address: call.address.to_string(),
        sign_in: sign_in.0,
        attempt: Some(attempt),
    };
    let request = AdminRequest {
        actor: sign_in.1,
        token_id: None,
        address: Some(call.address.to_string()),
        request_id: Some(call.request_id.clone()),
        reason: None,
        idempotency: None,
        now: call.now,
    };
    match call.app.store.begin_session(&request, new).await? {
        Ok(_) => {}
        Err(AdminRejection::NotFound) => return Err(invalid_credentials()),
        Err(rejection) => return Err(AdminError::from_rejection(rejection, "admin")),
    }
    let session = call.app.store.session_by_hash(&hash, call.now).await?;
    let me = Actor::of_session(session.ok_or_else(invalid_credentials)?).to_json();
    let url = &call.app.console_url;
    let cookie = admin_cookie_header(url, &call.headers, &secret, COOKIE_AGE_S);
    let reply = Reply::json(me).status(StatusCode::CREATED);
    Ok(reply.header(header::SET_COOKIE, cookie))
}

/// The methods of signing in to console and portal besides a password or an API key.
pub(crate) async fn methods(call: Call) -> Result<Reply, AdminError> {
    call.check_query()?;
    let provider = call.app.oidc.as_ref();
    let oidc = provider.map(|provider| json!({ "label": provider.settings().label }));
    Ok(Reply::json(json!({ "oidc": oidc })))
}

/// Counts the sign-in as failed until it succeeds.
async fn begin_attempt(
    call: &Call,
    subjects: Vec<(String, i64)>,
) -> Result<SignInAttempt, AdminError> {
    match call.app.store.begin_sign_in(subjects, call.now).await? {
        SignInAttemptOutcome::Allowed(attempt) => Ok(attempt),
        SignInAttemptOutcome::Throttled { retry_after_s } => {
            Err(AdminError::throttled(retry_after_s))
        }
    }
}

/// A sign-in, and the name of the person who signs in.
type NamedSignIn = (SignIn, String);

async fn password_sign_in(
    call: &Call,
    name: Option<String>,
    password: String,
) -> Result<NamedSignIn, AdminError> {
    let name = name.unwrap_or_default();
    let found = call.app.store.admin_sign_in(&name).await?;
    let found = found.filter(|found| !found.admin.disabled);
    let hash = found.as_ref().and_then(|found| found.password.clone());
    let is_right = call.app.passwords.verify(password, hash).await?;
    let found = found.filter(|_| is_right).ok_or_else(invalid_credentials)?;
    let admin_id = found.admin.id;
    Ok((SignIn::Password { admin_id }, name))
}

async fn link_sign_in(
    call: &Call,
    code: &str,
    name: Option<String>,
    password: String,
) -> Result<NamedSignIn, AdminError> {
    let store = &call.app.store;
    let hash = id::key_hash(code);
    let owner = store.admin_link(&hash, call.now).await?;
    let admin_id = owner.ok_or_else(invalid_credentials)?;
    let (first_name, actor) = if admin_id.is_empty() {
        if !comes_from_this_machine(call) {
            return Err(invalid_credentials());
        }
        let message = "is required: the link of a first start creates an admin";
        let name = name.ok_or_else(|| AdminError::invalid("name", message))?;
        fields::check_actor_name(&name).map_err(|e| AdminError::invalid("name", e))?;
        (Some(name.clone()), name)
    } else {
        let admin = store
            .admin(&admin_id)
            .await?
            .ok_or_else(invalid_credentials)?;
        if name.is_some_and(|name| name != admin.name) {
            let message = "is not the name of the admin whom the link is for; leave it out";
            return Err(AdminError::invalid("name", message));
        }
        (None, admin.name)
    };
    let password = call.app.passwords.hash(password).await?;
    let sign_in = SignIn::Link {
        hash,
        password,
        name: first_name,
    };
    Ok((sign_in, actor))
}

/// Whether the client is on this machine: the connection comes from loopback and the request has no header of a proxy.
fn comes_from_this_machine(call: &Call) -> bool {
    let is_loopback = match call.peer {
        IpAddr::V4(address) => address.is_loopback(),
        IpAddr::V6(address) => address.to_canonical().is_loopback(),
    };
    is_loopback
        && !FORWARDING_HEADERS
            .iter()
            .any(|name| call.headers.contains_key(*name))
}

/// The `Set-Cookie` header for a session of the console. The browser keeps the cookie for `age_s` seconds; 0 deletes it.
pub(crate) fn admin_cookie_header(
    console_url: &str,
    headers: &HeaderMap,
    secret: &str,
    age_s: u32,
) -> HeaderValue {
    let name = session_cookie_name(console_url, headers);
    format_set_cookie(name, secret, age_s, SameSite::Strict)
}

/// The session of the caller.
fn own_session(call: &Call) -> Result<&Session, AdminError> {
    match &call.actor()?.kind {
        ActorKind::Session(session) => Ok(session),
        _ => Err(AdminError::not_found("session")),
    }
}

async fn sign_out(call: Call) -> Result<Reply, AdminError> {
    let session = own_session(&call)?;
    let request = call.action()?;
    let result = call.app.store.end_session(&request, &session.id).await;
    let cookie = admin_cookie_header(&call.app.console_url, &call.headers, "", 0);
    Ok(written(result, "session")?.header(header::SET_COOKIE, cookie))
}

async fn refresh(call: Call) -> Result<Reply, AdminError> {
    let session = own_session(&call)?;
    let mut fields = call.fields()?;
    let password = fields.required("password", password)?;
    fields.finish(&[])?;
    let subjects = vec![
        (format!("address:{}", call.peer), MAX_FAILURES_OF_ADDRESS),
        (format!("name:{}", session.admin), MAX_FAILURES_OF_NAME),
    ];
    let attempt = begin_attempt(&call, subjects).await?;
    let store = &call.app.store;
    let found = store.admin_sign_in(&session.admin).await?;
    let hash = found.and_then(|found| found.password);
    if !call.app.passwords.verify(password, hash).await? {
        return Err(invalid_credentials());
    }
    let mut session = session.clone();
    session.fresh_until = store
        .refresh_session(&session.id, attempt, call.now)
        .await?;
    Ok(Reply::json(Actor::of_session(session).to_json()))
}

struct Sessions {
    sessions: Vec<Session>,
    current: Option<String>,
}

#[async_trait]
impl Listing for Sessions {
    fn columns(&self) -> &'static [&'static str] {
        &["id", "created_at", "last_seen_at", "address", "current"]
    }

    async fn page(
        &self,
        _store: &Store,
        after: Option<&[String]>,
        limit: usize,
    ) -> Result<Vec<Item>, AdminError> {
        let last = after.and_then(|after| after.first());
        let start = last.and_then(|id| self.sessions.iter().position(|s| s.id == *id));
        let rest = self.sessions.iter().skip(start.map_or(0, |at| at + 1));
        let items = rest.take(limit).map(|session| Item {
            value: session.to_json(self.current.as_deref()),
            position: vec![session.id.clone()],
        });
        Ok(items.collect())
    }
}

async fn list_sessions(call: Call) -> Result<Reply, AdminError> {
    call.check_query()?;
    let (sessions, current) = match own_session(&call) {
        Ok(session) => {
            let own = call.app.store.list_sessions(&session.admin_id, call.now);
            (own.await?, Some(session.id.clone()))
        }
        Err(_) => (Vec::new(), None),
    };
    list::reply(&call, Sessions { sessions, current }).await
}
