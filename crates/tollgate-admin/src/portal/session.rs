//! Sessions of the portal: sign in with an API key, sign out.

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use tollgate_core::id;
use tollgate_server::auth::keys::AuthError;
use tollgate_server::http::admin_error::AdminError;
use tollgate_server::http::cookies::{SameSite, format_set_cookie};
use tollgate_store::{AdminRequest, NewPortalSession, SignInAttemptOutcome};

use super::account::me;
use super::authenticate::cookie_name;
use crate::admin::endpoint::{Access, Endpoint, Returns, handler};
use crate::admin::{
    Actor, ActorKind, COOKIE_AGE_S, Call, Reply, check_same_origin, fields, sign_in_methods,
    written,
};

pub(super) const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: Method::POST,
        path: "/session",
        access: Access::Public,
        summary: "Signs in with an API key: the response sets a cookie.",
        query: &[],
        body: Some("portal_sign_in"),
        returns: Returns::Object("portal_me", 201),
        handler: handler!(sign_in),
    },
    Endpoint {
        method: Method::GET,
        path: "/session/methods",
        access: Access::Public,
        summary: "The sign-in methods besides an API key: `oidc` has the label of the OpenID provider; null if there is none.",
        query: &[],
        body: None,
        returns: Returns::Object("sign_in_methods", 200),
        handler: handler!(sign_in_methods),
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
];

/// Failed sign-ins of one address in 15 minutes, after which further ones are rejected.
const MAX_FAILURES: i64 = 20;

async fn sign_in(call: Call) -> Result<Reply, AdminError> {
    check_same_origin(&call.app.public_url, &call.headers)?;
    let mut fields = call.fields()?;
    let api_key = fields.required("api_key", fields::parse_text)?;
    fields.finish(&[])?;
    let subjects = vec![(format!("portal:{}", call.peer), MAX_FAILURES)];
    let attempt = match call.app.store.begin_sign_in(subjects, call.now).await? {
        SignInAttemptOutcome::Allowed(attempt) => attempt,
        SignInAttemptOutcome::Throttled { retry_after_s } => {
            return Err(AdminError::throttled(retry_after_s));
        }
    };
    let presented = [Some(api_key.trim()), None, None, None];
    let key = match call.app.auth.authenticate_any(&presented).await {
        Ok(key) => key,
        Err(AuthError::Store(e)) => return Err(e.into()),
        Err(e) => {
            let status = match e {
                AuthError::UserDisabled => StatusCode::FORBIDDEN,
                _ => StatusCode::UNAUTHORIZED,
            };
            let message = tollgate_core::ApiError::from(e).message;
            return Err(AdminError::new(status, "bad_credentials", message));
        }
    };
    let secret = id::random_secret("");
    let new = NewPortalSession {
        hash: id::key_hash(&secret),
        key_id: key.id.clone(),
        user_id: key.user_id.clone(),
        attempt,
        nonce_hash: None,
    };
    let request = AdminRequest {
        actor: Actor::of_key(key.clone(), None).name,
        token_id: None,
        address: Some(call.address.to_string()),
        request_id: Some(call.request_id.clone()),
        reason: None,
        idempotency: None,
        now: call.now,
    };
    let started = call.app.store.begin_portal_session(&request, new).await?;
    started.map_err(|rejection| AdminError::from_rejection(rejection, "session"))?;
    let me = me(&call, &key).await?;
    let url = &call.app.public_url;
    let cookie = portal_cookie_header(url, &call.headers, &secret, COOKIE_AGE_S);
    let reply = Reply::json(me).status(StatusCode::CREATED);
    Ok(reply.header(header::SET_COOKIE, cookie))
}

async fn sign_out(call: Call) -> Result<Reply, AdminError> {
    let ActorKind::Key(_, Some(session_id)) = &call.actor()?.kind else {
        return Err(AdminError::not_found("session"));
    };
    let request = call.action()?;
    let ended = call
        .app
        .store
        .end_portal_session(&request, session_id)
        .await;
    let cookie = portal_cookie_header(&call.app.public_url, &call.headers, "", 0);
    Ok(written(ended, "session")?.header(header::SET_COOKIE, cookie))
}

/// The `Set-Cookie` header for a session of the portal. The browser keeps the cookie for `age_s` seconds; 0 deletes it.
pub(crate) fn portal_cookie_header(
    public_url: &str,
    headers: &HeaderMap,
    secret: &str,
    age_s: u32,
) -> HeaderValue {
    let name = cookie_name(public_url, headers);
    format_set_cookie(name, secret, age_s, SameSite::Strict)
}
