//! Authenticates the callers of the admin API: the owner (`admin.key`), a token, or an admin with a session of the console.

use std::sync::Arc;

use http::{HeaderMap, Method, header};
use serde_json::{Value, json};
use tollgate_core::clock::MINUTE;
use tollgate_core::{Millis, Secret, id};
use tollgate_server::http::admin_error::AdminError;
use tollgate_server::http::cookies::find_cookie;
use tollgate_server::state::App;
use tollgate_store::{Key, Session, Store, StoreError, time_json};

use super::scope::{Role, Scope, Scopes};

/// The name of the session cookie, and its name on loopback without TLS.
const COOKIE: &str = "__Host-tollgate_session";
const LOOPBACK_COOKIE: &str = "tollgate_session";
/// A header that pages of other origins cannot send: it protects requests with a cookie against cross-site request forgery.
const CONSOLE_HEADER: &str = "x-tollgate-console";
/// How long a browser keeps a session cookie of console or portal, in seconds; the session may end earlier.
pub(crate) const COOKIE_AGE_S: u32 = 7 * 86_400;
/// Shortest time between two writes of the last use of a token or session.
pub(crate) const USE_INTERVAL: Millis = MINUTE;

/// How a caller was authenticated.
#[derive(Debug, Clone, PartialEq)]
pub enum ActorKind {
    /// By `admin.key`.
    Owner,
    /// By the token with this id.
    Token(String),
    /// By a session of the console.
    Session(Box<Session>),
    /// A user of the portal: by this API key. With an id: by the session of the portal with this id, which acts for the key.
    Key(Arc<Key>, Option<String>),
}

/// A caller of the admin API, or of the portal's API.
#[derive(Debug, Clone)]
pub struct Actor {
    /// How the caller was authenticated.
    pub kind: ActorKind,
    /// Its name in the trail.
    pub name: String,
    /// The role, if the caller is an admin.
    pub role: Option<Role>,
    /// What it may do.
    pub scopes: Scopes,
    /// The names of its scopes; for a token, the ones that it was created with.
    pub scope_names: Vec<String>,
    /// When its token expires. `None` if the caller used no token, or the token does not expire.
    pub expires_at: Option<Millis>,
}

impl Actor {
    /// The id of the caller, which stays the same if it is renamed.
    pub fn id(&self) -> &str {
        match &self.kind {
            ActorKind::Owner => "owner",
            ActorKind::Token(id) => id,
            ActorKind::Session(session) => &session.admin_id,
            ActorKind::Key(key, _) => &key.id,
        }
    }

    /// The JSON object that `GET /me` returns.
    pub fn to_json(&self) -> Value {
        let (kind, fresh_until) = match &self.kind {
            ActorKind::Owner => ("owner", None),
            ActorKind::Token(_) => ("token", None),
            ActorKind::Session(session) => ("session", Some(session.fresh_until)),
            ActorKind::Key(..) => ("key", None),
        };
        json!({
            "kind": kind,
            "name": self.name,
            "role": self.role.map(Role::name),
            "scopes": self.scope_names,
            "expires_at": self.expires_at.map(time_json),
            "fresh_until": fresh_until.map(time_json),
        })
    }

    /// Checks that the caller has a scope that the endpoint needs and, for money and secrets, that the session's password was entered recently.
    ///
    /// # Errors
    /// 403: `missing_scope`, which names the scope, or `fresh_auth_required`.
    pub fn check_scope(&self, scope: Scope, now: Millis) -> Result<(), AdminError> {
        if !self.scopes.contains(scope) {
            let message = format!("needs {}", scope.name());
            return Err(AdminError::forbidden("missing_scope", message));
        }
        if let ActorKind::Session(session) = &self.kind
            && scope.needs_fresh_session()
            && session.fresh_until <= now
        {
            let message = "enter the password again: POST /admin/v1/session/fresh";
            return Err(AdminError::forbidden("fresh_auth_required", message));
        }
        Ok(())
    }

    /// Checks that the caller may grant the scopes to an admin or a token: it has all of them and, for money and secrets, the session's password was
    /// entered recently.
    ///
    /// # Errors
    /// 403: `escalation`, which names a missing scope, or `fresh_auth_required`.
    pub fn check_grant(&self, scopes: Scopes, now: Millis) -> Result<(), AdminError> {
        self.check_includes(scopes)?;
        let mut granted = scopes.names().into_iter().filter_map(Scope::from_name);
        granted.try_for_each(|scope| self.check_scope(scope, now))
    }

    /// Checks that the caller has all of these scopes.
    ///
    /// # Errors
    /// 403 `escalation`, which names a missing scope.
    pub fn check_includes(&self, scopes: Scopes) -> Result<(), AdminError> {
        if self.scopes.includes(scopes) {
            return Ok(());
        }
        let names = scopes.names();
        let mut missing = names
            .iter()
            .filter(|name| !self.scopes.names().contains(name));
        let missing = missing.next().copied().unwrap_or_default();
        let message = format!("{missing} cannot be granted without having it");
        Err(AdminError::forbidden("escalation", message))
    }

    /// The id of the session of the portal by which the caller was authenticated, if it was.
    pub(crate) fn portal_session_id(&self) -> Option<&str> {
        match &self.kind {
            ActorKind::Key(_, session_id) => session_id.as_deref(),
            _ => None,
        }
    }

    /// The actor for a user of the portal.
    pub(crate) fn of_key(key: Arc<Key>, session_id: Option<String>) -> Self {
        Self {
            name: format!("user:{}", key.user_id),
            role: None,
            scopes: Scopes::default(),
            scope_names: Vec::new(),
            expires_at: None,
            kind: ActorKind::Key(key, session_id),
        }
    }

    /// The actor of a session.
    pub(super) fn of_session(session: Session) -> Self {
        let role = Role::from_name(&session.role);
        let scopes = role.map_or_else(Scopes::default, Role::scopes);
        Self {
            name: session.admin.clone(),
            role,
            scopes,
            scope_names: to_owned(scopes.names()),
            expires_at: None,
            kind: ActorKind::Session(Box::new(session)),
        }
    }
}

fn to_owned(names: Vec<&str>) -> Vec<String> {
    names.into_iter().map(str::to_owned).collect()
}

/// Returns the caller of a request: by its bearer token if it has one, else by its session cookie.
///
/// # Errors
/// 401; 403 `csrf` for an unsafe request with a cookie that may come from another origin.
pub(super) async fn authenticate(
    app: &App,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Actor, AdminError> {
    let now = app.clock.now();
    if let Some(token) = bearer(headers) {
        return bearer_actor(&app.admin_key, &app.store, token, now).await;
    }
    let session = find_session(&app.store, &app.console_url, headers, now).await?;
    let session = session.ok_or_else(AdminError::unauthorized)?;
    if !method.is_safe() {
        check_same_origin(&app.console_url, headers)?;
    }
    if session.last_seen_at + USE_INTERVAL <= now {
        app.store.note_session_use(&session.id, now);
    }
    Ok(Actor::of_session(session))
}

/// The session of the request's cookie, if it has not ended.
async fn find_session(
    store: &Store,
    console_url: &str,
    headers: &HeaderMap,
    now: Millis,
) -> Result<Option<Session>, StoreError> {
    let Some(secret) = find_cookie(headers, session_cookie_name(console_url, headers)) else {
        return Ok(None);
    };
    let hash = id::key_hash(secret);
    store.session_by_hash(&hash, now).await
}

/// The session of the request's cookie, if the request has one and the database can be read.
pub(crate) async fn admin_session(
    store: &Store,
    console_url: &str,
    headers: &HeaderMap,
    now: Millis,
) -> Option<Session> {
    let session = find_session(store, console_url, headers, now).await;
    session.ok().flatten()
}

async fn bearer_actor(
    admin_key: &Secret,
    store: &Store,
    token: &str,
    now: Millis,
) -> Result<Actor, AdminError> {
    if admin_key.matches(token) {
        return Ok(Actor {
            kind: ActorKind::Owner,
            name: "owner".to_owned(),
            role: None,
            scopes: Scopes::ALL,
            scope_names: to_owned(Scopes::ALL.names()),
            expires_at: None,
        });
    }
    if !token.starts_with("adm_") {
        return Err(AdminError::unauthorized());
    }
    let found = store.admin_token_by_hash(&id::key_hash(token)).await?;
    let found = found.filter(|token| token.expires_at.is_none_or(|at| at > now));
    let token = found.ok_or_else(AdminError::unauthorized)?;
    if token.last_used_at.is_none_or(|at| at + USE_INTERVAL <= now) {
        store.note_admin_token_use(&token.id, now);
    }
    let scopes = token
        .scopes
        .iter()
        .filter_map(|name| Scope::from_name(name));
    Ok(Actor {
        scopes: scopes.collect(),
        kind: ActorKind::Token(token.id),
        name: token.name,
        role: None,
        scope_names: token.scopes,
        expires_at: token.expires_at,
    })
}

/// The token of `Authorization: Bearer`; other schemes are ignored.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Whether the browser uses the gateway without TLS on loopback, where it would not send a `Secure` cookie back. `url` is the public URL of the
/// pages.
pub(crate) fn is_plain_loopback(url: &str, headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|v| v.to_str().ok());
    let host = host.unwrap_or_default();
    let name = host.rsplit_once(':').map_or(
        host,
        |(name, port)| {
            if port.ends_with(']') { host } else { name }
        },
    );
    let is_loopback = name == "localhost" || name == "[::1]" || name.starts_with("127.");
    is_loopback && !url.starts_with("https://")
}

/// The name of the session cookie.
pub(super) fn session_cookie_name(console_url: &str, headers: &HeaderMap) -> &'static str {
    if is_plain_loopback(console_url, headers) {
        LOOPBACK_COOKIE
    } else {
        COOKIE
    }
}

/// Checks that an unsafe request comes from a page of this gateway, whose public URL is `url`.
///
/// # Errors
/// 403 `csrf`.
pub(crate) fn check_same_origin(url: &str, headers: &HeaderMap) -> Result<(), AdminError> {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or(""));
    let host = text("host").unwrap_or_default();
    let is_own = match text("origin") {
        Some(origin) => {
            let of_host = origin.split_once("://").is_some_and(|(scheme, rest)| {
                ["http", "https"].contains(&scheme) && !host.is_empty() && rest == host
            });
            of_host || is_origin_of(url, origin)
        }
        None => text("sec-fetch-site") == Some("same-origin"),
    };
    if is_own && text(CONSOLE_HEADER) == Some("1") {
        return Ok(());
    }
    let message = "a request with a session cookie needs the header `X-Tollgate-Console: 1` and must come from the gateway's own origin";
    Err(AdminError::forbidden("csrf", message))
}

fn is_origin_of(url: &str, origin: &str) -> bool {
    url::Url::parse(url).is_ok_and(|url| url.origin().ascii_serialization() == origin)
}
