//! `/oidc/start` redirects the browser to the provider's sign-in page; `/oidc/callback` receives it back and begins a session of the console or the
//! portal.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::{Extension, Router};
use http::request::Parts;
use http::{HeaderValue, StatusCode, header};
use serde_json::Value;
use tollgate_core::clock::MINUTE;
use tollgate_core::{ApiError, Millis, id};
use tollgate_server::http::client_address::{PeerAddress, client_address};
use tollgate_server::http::cookies::find_cookie;
use tollgate_server::http::reply::ErrorResponse;
use tollgate_server::http::request_id::RequestId;
use tollgate_server::listener_role::ListenerRole;
use tollgate_server::oidc::cookie::{self, Pages, Pending};
use tollgate_server::oidc::{Account, OidcError, OidcProvider};
use tollgate_server::routes::erased_handler::get;
use tollgate_server::state::App;
use tollgate_store::{
    AdminRejection, AdminReply, AdminRequest, KeyLimits, NewKey, NewPortalSession, NewSession,
    OidcRefresh, SignIn, SignInAttempt, SignInAttemptOutcome, StoreError,
};
use url::form_urlencoded;

use crate::admin::endpoint::set_host;
use crate::admin::{COOKIE_AGE_S, Query, admin_cookie_header, admin_session, is_plain_loopback};
use crate::portal::portal_cookie_header;

/// Failed sign-ins of one address in 15 minutes, after which further ones are rejected.
const MAX_FAILURES: i64 = 20;
/// How long ago the password may have been entered at the provider for a session to become fresh again.
const MAX_PASSWORD_AGE: Millis = 5 * MINUTE;
/// The actor, in the trail, of what a sign-in creates or changes.
const ACTOR: &str = "oidc";
/// The name of the API key that the gateway creates for a user's sessions of the portal.
const PORTAL_KEY: &str = "Portal";
/// The page that a browser is redirected to after a failed sign-in: it shows the error. A window that was opened for a sign-in also ends on it, and
/// closes.
const RESULT_PAGE: &str = "/signed-in";

/// Why a sign-in ends without a session: an error code for the page that shows it.
#[derive(Debug)]
struct Failure(&'static str);

impl From<OidcError> for Failure {
    fn from(error: OidcError) -> Self {
        tracing::warn!("{error}");
        Self(error.code())
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        tracing::error!("a sign-in failed: {error}");
        Self("unavailable")
    }
}

/// The request of a browser that signs in.
struct Visit {
    app: Arc<App>,
    provider: Arc<OidcProvider>,
    parts: Parts,
    peer: IpAddr,
    role: ListenerRole,
    now: Millis,
}

impl Visit {
    /// # Errors
    /// 404 if there is no provider.
    fn new(app: Arc<App>, request: Request) -> Result<Self, ApiError> {
        let message = "sign-in by an OpenID provider is not configured: see `[oidc]`";
        let provider = app.oidc.clone();
        let provider = provider.ok_or_else(|| ApiError::not_found(message))?;
        let (mut parts, _) = request.into_parts();
        set_host(&mut parts);
        let peer = parts.extensions.get::<PeerAddress>();
        let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0.ip());
        Ok(Self {
            now: app.clock.now(),
            app,
            provider,
            role: *parts
                .extensions
                .get::<ListenerRole>()
                .unwrap_or(&ListenerRole::Everybody),
            parts,
            peer,
        })
    }

    /// Whether the listener of the request serves these pages.
    fn serves(&self, pages: Pages) -> bool {
        match pages {
            Pages::Console => self.role.serves_operators(),
            Pages::Portal => self.role.serves_portal(),
        }
    }

    /// The pages that the listener of the request serves; the console if it serves both.
    fn default_pages(&self) -> Pages {
        match self.role.serves_operators() {
            true => Pages::Console,
            false => Pages::Portal,
        }
    }

    fn is_plain_loopback(&self) -> bool {
        let url = match self.default_pages() {
            Pages::Console => &self.app.console_url,
            Pages::Portal => &self.app.public_url,
        };
        is_plain_loopback(url, &self.parts.headers)
    }

    fn address(&self) -> String {
        let proxies = &self.app.trace.trusted_proxies;
        client_address(self.peer, &self.parts.headers, proxies).to_string()
    }

    /// The author of a write, as the trail records it.
    fn request(&self, actor: &str) -> AdminRequest {
        let request_id = self.parts.extensions.get::<RequestId>();
        AdminRequest {
            actor: actor.to_owned(),
            token_id: None,
            address: Some(self.address()),
            request_id: request_id.map(|id| id.as_str().to_owned()),
            reason: None,
            idempotency: None,
            now: self.now,
        }
    }
}

/// The routes for signing in to the pages of a listener.
pub(super) fn routes(role: ListenerRole) -> Router<Arc<App>> {
    Router::new()
        .route("/oidc/start", get(start))
        .route("/oidc/callback", get(callback))
        .layer(Extension(role))
}

/// `GET /oidc/start?to=console|portal&next=PATH&fresh=1`: redirects to the provider's page.
async fn start(State(app): State<Arc<App>>, request: Request) -> Response {
    let visit = match Visit::new(app, request) {
        Ok(visit) => visit,
        Err(error) => return ErrorResponse::from(error).into_response(),
    };
    let pending = match read_start(&visit).await {
        Ok(pending) => pending,
        Err(error) => return ErrorResponse::from(error).into_response(),
    };
    match visit.provider.sign_in_url(&pending).await {
        Ok(url) => redirect(&url, vec![pending.set_cookie(visit.is_plain_loopback())]),
        Err(error) => redirect_with_error(pending.pages, &pending.next, &error.into()),
    }
}

/// # Errors
/// 400 that names a parameter.
async fn read_start(visit: &Visit) -> Result<Pending, ApiError> {
    let query = Query::parse(visit.parts.uri.query());
    let invalid = |name: &str, message: &str| ApiError::invalid(format!("{name} {message}"));
    query
        .allow(&["to", "next", "fresh"])
        .map_err(|error| error.into_api_error())?;
    let pages = match query.get("to") {
        None => visit.default_pages(),
        Some("console") => Pages::Console,
        Some("portal") => Pages::Portal,
        Some(_) => return Err(invalid("to", "must be console or portal")),
    };
    if !visit.serves(pages) {
        let message = "names pages that are not on this listener: see `admin.listen`";
        return Err(invalid("to", message));
    }
    let next = match query.get("next") {
        None => format!("{}/", pages.base()),
        Some(next) if is_page_of(pages, next) => next.to_owned(),
        Some(_) => {
            return Err(invalid(
                "next",
                "must be the path of a page of the same site",
            ));
        }
    };
    let session = match query.get("fresh") {
        None => None,
        Some("1") if pages == Pages::Console => {
            let (store, url) = (&visit.app.store, &visit.app.console_url);
            admin_session(store, url, &visit.parts.headers, visit.now).await
        }
        Some(_) => return Err(invalid("fresh", "must be 1, and only for the console")),
    };
    Ok(Pending::new(pages, next, session.map(|session| session.id)))
}

/// Whether a path belongs to these pages. Other paths are rejected, so that a link cannot redirect to another site.
fn is_page_of(pages: Pages, path: &str) -> bool {
    let is_plain = path
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"-._~/?&=%+:,@".contains(&b));
    let inside = path.strip_prefix(pages.base());
    is_plain
        && path.len() <= 1000
        && !path.contains("//")
        && !path.contains("..")
        && inside.is_some_and(|rest| rest.starts_with('/'))
}

/// `GET /oidc/callback`: the provider's page redirects the browser here.
async fn callback(State(app): State<Arc<App>>, request: Request) -> Response {
    let visit = match Visit::new(app, request) {
        Ok(visit) => visit,
        Err(error) => return ErrorResponse::from(error).into_response(),
    };
    let name = cookie::name(visit.is_plain_loopback());
    let pending = find_cookie(&visit.parts.headers, name).and_then(Pending::from_cookie);
    let is_usable =
        |pending: &Pending| visit.serves(pending.pages) && is_page_of(pending.pages, &pending.next);
    let Some(pending) = pending.filter(is_usable) else {
        return redirect_with_error(visit.default_pages(), "", &Failure("expired"));
    };
    let delete_cookie = cookie::delete_cookie(visit.is_plain_loopback());
    match sign_in(&visit, &pending).await {
        Ok(cookie) => {
            let cookies = [Some(delete_cookie), cookie];
            redirect(&pending.next, cookies.into_iter().flatten().collect())
        }
        Err(failure) => {
            let mut response = redirect_with_error(pending.pages, &pending.next, &failure);
            let headers = response.headers_mut();
            headers.append(header::SET_COOKIE, delete_cookie);
            response
        }
    }
}

/// Exchanges the provider's code for an account and begins a session. Returns the session's cookie; `None` if an existing session was made fresh.
async fn sign_in(visit: &Visit, pending: &Pending) -> Result<Option<HeaderValue>, Failure> {
    let query = Query::parse(visit.parts.uri.query());
    let is_state_valid = query.get("state").is_some_and(|state| {
        bool::from(subtle::ConstantTimeEq::ct_eq(
            state.as_bytes(),
            pending.state.as_bytes(),
        ))
    });
    if !is_state_valid {
        return Err(Failure("expired"));
    }
    if let Some(error) = query.get("error") {
        tracing::warn!(error, "the OpenID provider rejected a sign-in");
        return Err(Failure("denied"));
    }
    let code = query.get("code").ok_or(Failure("rejected"))?;
    let attempt = begin_attempt(visit).await?;
    let account = visit
        .provider
        .redeem(code, query.get("iss"), pending)
        .await?;
    let nonce_hash = id::key_hash(&pending.nonce);
    match (pending.pages, &pending.session_id) {
        (Pages::Console, Some(session_id)) => {
            refresh_session(visit, session_id, account, nonce_hash, attempt).await?;
            Ok(None)
        }
        (Pages::Console, None) => begin_admin_session(visit, account, nonce_hash, attempt)
            .await
            .map(Some),
        (Pages::Portal, _) => begin_portal_session(visit, account, nonce_hash, attempt)
            .await
            .map(Some),
    }
}

/// Counts the attempt as failed until it succeeds. Attempts are limited because each one makes the gateway send requests to the provider.
async fn begin_attempt(visit: &Visit) -> Result<SignInAttempt, Failure> {
    let subjects = vec![(format!("oidc:{}", visit.peer), MAX_FAILURES)];
    match visit.app.store.begin_sign_in(subjects, visit.now).await? {
        SignInAttemptOutcome::Allowed(attempt) => Ok(attempt),
        SignInAttemptOutcome::Throttled { .. } => Err(Failure("throttled")),
    }
}

/// The reply to a write of a sign-in, or the reason why it was rejected.
fn written(result: Result<AdminReply, AdminRejection>) -> Result<AdminReply, Failure> {
    result.map_err(|rejection| match rejection {
        AdminRejection::NotFound => Failure("no_user"),
        AdminRejection::Conflict {
            code: code @ ("disabled" | "name_taken"),
            message,
            ..
        } => {
            tracing::warn!("a sign-in was rejected: {message}");
            Failure(code)
        }
        other => {
            tracing::warn!("a sign-in was rejected: {other:?}");
            Failure("rejected")
        }
    })
}

fn text(body: &Value, member: &str) -> String {
    body[member].as_str().unwrap_or_default().to_owned()
}

/// Makes a session fresh, and gives its admin the role that the account has now.
async fn refresh_session(
    visit: &Visit,
    session_id: &str,
    account: Account,
    nonce_hash: String,
    attempt: SignInAttempt,
) -> Result<(), Failure> {
    let store = &visit.app.store;
    let Some(role) = account.admin_role else {
        store.end_oidc_sessions(account.identity).await?;
        return Err(Failure("no_role"));
    };
    let authenticated_at = account.authenticated_at.ok_or(Failure("not_fresh"))?;
    if authenticated_at + MAX_PASSWORD_AGE <= visit.now {
        return Err(Failure("not_fresh"));
    }
    let refresh = OidcRefresh {
        identity: account.identity.clone(),
        nonce_hash,
        authenticated_at,
        attempt,
        now: visit.now,
    };
    if !store.refresh_oidc_session(session_id, refresh).await? {
        return Err(Failure("other_account"));
    }
    // The session belongs to the account's admin, so this creates no admin.
    let request = visit.request(ACTOR);
    let admin = store.sign_in_oidc_admin(&request, account.identity, &account.name, role.name());
    written(admin.await?).map(drop)
}

async fn begin_admin_session(
    visit: &Visit,
    account: Account,
    nonce_hash: String,
    attempt: SignInAttempt,
) -> Result<HeaderValue, Failure> {
    let store = &visit.app.store;
    let Some(role) = account.admin_role else {
        store.end_oidc_sessions(account.identity).await?;
        return Err(Failure("no_role"));
    };
    let request = visit.request(ACTOR);
    let admin = store.sign_in_oidc_admin(&request, account.identity, &account.name, role.name());
    let admin = written(admin.await?)?.body;
    let secret = id::random_secret("");
    let new = NewSession {
        hash: id::key_hash(&secret),
        address: visit.address(),
        sign_in: SignIn::Oidc {
            admin_id: text(&admin, "id"),
            nonce_hash,
            authenticated_at: account.authenticated_at,
        },
        attempt: Some(attempt),
    };
    let request = visit.request(&text(&admin, "name"));
    written(store.begin_session(&request, new).await?)?;
    Ok(admin_cookie_header(
        &visit.app.console_url,
        &visit.parts.headers,
        &secret,
        COOKIE_AGE_S,
    ))
}

async fn begin_portal_session(
    visit: &Visit,
    account: Account,
    nonce_hash: String,
    attempt: SignInAttempt,
) -> Result<HeaderValue, Failure> {
    if !account.is_user {
        return Err(Failure("no_role"));
    }
    let store = &visit.app.store;
    let users = visit.provider.settings().users;
    let request = visit.request(ACTOR);
    let identity = account.identity;
    let user = store.sign_in_oidc_user(&request, identity.clone(), &account.name, users);
    let user_id = text(&written(user.await?)?.body, "id");
    let request = visit.request(&format!("user:{user_id}"));
    // The key's secret is discarded: the key is used only through sessions.
    let unused = id::api_key();
    let key = NewKey {
        id: id::short_id("key_"),
        hash: id::key_hash(&unused),
        hint: id::hint(&unused, "sk-"),
        user: String::new(),
        label: PORTAL_KEY.to_owned(),
        quota: None,
        limits: KeyLimits::default(),
        now: visit.now,
    };
    let key = store.oidc_portal_key(&request, identity, &user_id, key);
    let key_id = text(&written(key.await?)?.body, "id");
    let secret = id::random_secret("");
    let new = NewPortalSession {
        hash: id::key_hash(&secret),
        key_id,
        user_id,
        attempt,
        nonce_hash: Some(nonce_hash),
    };
    written(store.begin_portal_session(&request, new).await?)?;
    Ok(portal_cookie_header(
        &visit.app.public_url,
        &visit.parts.headers,
        &secret,
        COOKIE_AGE_S,
    ))
}

/// Redirects to the page that shows why there is no session.
fn redirect_with_error(pages: Pages, next: &str, failure: &Failure) -> Response {
    let query: String = form_urlencoded::Serializer::new(String::new())
        .append_pair("error", failure.0)
        .append_pair("next", next)
        .finish();
    redirect(
        &format!("{}{RESULT_PAGE}?{query}", pages.base()),
        Vec::new(),
    )
}

fn redirect(to: &str, cookies: Vec<HeaderValue>) -> Response {
    let location = HeaderValue::from_str(to).unwrap_or(HeaderValue::from_static("/"));
    let mut response = StatusCode::SEE_OTHER.into_response();
    let headers = response.headers_mut();
    headers.insert(header::LOCATION, location);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // The URL contains the provider's code, so the browser must not send it to other sites as a referrer.
    let policy = HeaderValue::from_static("no-referrer");
    headers.insert(header::REFERRER_POLICY, policy);
    for cookie in cookies {
        headers.append(header::SET_COOKIE, cookie);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_in_ends_on_a_page_of_the_same_site() {
        for path in [
            "/console/",
            "/console/tasks?state=failed",
            "/console/users/user_1",
        ] {
            assert!(is_page_of(Pages::Console, path), "{path}");
        }
        for path in [
            "/console",
            "/consoles/",
            "//evil.example/console/",
            "https://evil.example/console/",
            "/console//evil.example",
            "/console/../files",
            "/console/\\evil",
            "/console/\r\nset-cookie:a=b",
            "/portal/",
            "",
        ] {
            assert!(!is_page_of(Pages::Console, path), "{path}");
        }
        assert!(is_page_of(Pages::Portal, "/portal/keys"));
    }
}
