//! An endpoint of the admin API (method, path, scope, schemas), the checks before its handler, and how its request is read.

use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{FromRequestParts as _, RawPathParams, Request};
use axum::response::Response;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Method, StatusCode, header};
use http_body_util::{BodyExt as _, Limited};
use tollgate_core::Millis;
use tollgate_server::http::admin_error::AdminError;
use tollgate_server::http::client_address::{PeerAddress, client_address};
use tollgate_server::http::request_id::RequestId;
use tollgate_server::state::App;

use super::authenticate::{Actor, authenticate};
use super::call::Call;
use super::query::Query;
use super::reply::Reply;
use super::scope::Scope;

/// The path prefix of the admin API.
pub const PREFIX: &str = "/admin/v1";
/// Largest body of a request, in bytes.
const MAX_BODY: usize = 1 << 20;
/// How long a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Who may call an endpoint.
#[derive(Debug, Clone, Copy)]
pub enum Access {
    /// Anybody, without authentication: sign-in.
    Public,
    /// Any authenticated caller.
    Any,
    /// Callers with the scope.
    Scope(Scope),
    /// Callers with at least one of the scopes.
    AnyOf(&'static [Scope]),
}

/// What an endpoint returns.
#[derive(Debug, Clone, Copy)]
pub enum Returns {
    /// An object: the name of its schema, and the status.
    Object(&'static str, u16),
    /// A list of objects: the name of their schema.
    List(&'static str),
    /// A list of objects without pages: the name of their schema.
    CompleteList(&'static str),
    /// A text of that media type.
    Text(&'static str),
    /// 204, without a body.
    Nothing,
}

/// The future of a handler.
pub type Handling = Pin<Box<dyn Future<Output = Result<Reply, AdminError>> + Send>>;

/// An endpoint of the admin API or the portal's API.
pub struct Endpoint {
    /// The HTTP method.
    pub method: Method,
    /// The path below the prefix of its API: [`PREFIX`], or `/v1/me` for the portal.
    pub path: &'static str,
    /// Who may call it.
    pub access: Access,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// Query parameters; lists with pages also have `limit` and `cursor`.
    pub query: &'static [&'static str],
    /// The name of the schema of the body; `None` if the endpoint needs no body.
    pub body: Option<&'static str>,
    /// What it returns.
    pub returns: Returns,
    /// The function that handles a request.
    pub handler: fn(Call) -> Handling,
}

/// An async function as an [`Endpoint::handler`].
macro_rules! handler {
    ($function:path) => {
        |call| Box::pin($function(call))
    };
}
pub(crate) use handler;

/// Handles a request to the endpoint and returns its response.
pub(super) async fn handle(
    app: Arc<App>,
    endpoint: &'static Endpoint,
    request: Request,
) -> Response {
    let request_id = request.extensions().get::<RequestId>().cloned();
    let request_id = request_id.map(|id| id.as_str().to_owned());
    let request_id = request_id.unwrap_or_default();
    let result = check_and_run(app, endpoint, request, request_id.clone()).await;
    match result {
        Ok(reply) => reply.into_response(),
        Err(error) => error.into_response(&request_id),
    }
}

/// The checks that come before every handler: caller, origin, scope.
async fn check_and_run(
    app: Arc<App>,
    endpoint: &'static Endpoint,
    request: Request,
    request_id: String,
) -> Result<Reply, AdminError> {
    let (mut parts, body) = request.into_parts();
    set_host(&mut parts);
    let now = app.clock.now();
    let actor = match endpoint.access {
        Access::Public => None,
        _ => Some(authenticate(&app, &parts.method, &parts.headers).await?),
    };
    if let Some(actor) = &actor {
        match endpoint.access {
            Access::Scope(scope) => actor.check_scope(scope, now)?,
            Access::AnyOf(scopes) if !scopes.iter().any(|scope| actor.scopes.contains(*scope)) => {
                let names: Vec<&str> = scopes.iter().map(|scope| scope.name()).collect();
                let message = format!("needs {}", names.join(" or "));
                return Err(AdminError::forbidden("missing_scope", message));
            }
            _ => {}
        }
    }
    let call = read_call(app, endpoint, actor, parts, body, request_id, now).await?;
    run_handler(endpoint, call).await
}

/// Runs the endpoint's handler. A write's changes of users and keys take effect on this node before the reply is sent; on others within a second.
pub(crate) async fn run_handler(
    endpoint: &'static Endpoint,
    call: Call,
) -> Result<Reply, AdminError> {
    let auth = (call.method != Method::GET).then(|| Arc::clone(&call.app.auth));
    let reply = (endpoint.handler)(call).await?;
    if let Some(auth) = auth {
        auth.forget_changed_keys().await;
    }
    Ok(reply)
}

/// Sets the header `Host` if it is missing: in HTTP/2 the host is in the URI.
pub(crate) fn set_host(parts: &mut Parts) {
    if let Some(authority) = parts.uri.authority()
        && !parts.headers.contains_key(header::HOST)
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        parts.headers.insert(header::HOST, host);
    }
}

/// Reads a request whose caller was already checked. An error of the body is stored in the call: it is returned when a handler reads the body.
///
/// # Errors
/// 404 for a path that is not UTF-8.
pub(crate) async fn read_call(
    app: Arc<App>,
    endpoint: &'static Endpoint,
    actor: Option<Actor>,
    mut parts: Parts,
    body: Body,
    request_id: String,
    now: Millis,
) -> Result<Call, AdminError> {
    let ids = RawPathParams::from_request_parts(&mut parts, &()).await;
    let ids = ids.map(|ids| ids.iter().map(|(_, value)| value.to_owned()).collect());
    let peer = parts.extensions.get::<PeerAddress>();
    let peer = peer.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |peer| peer.0.ip());
    Ok(Call {
        actor,
        parameters: endpoint.query,
        is_list: matches!(endpoint.returns, Returns::List(_)),
        path: parts.uri.path().to_owned(),
        ids: ids.map_err(|_| AdminError::not_found("object"))?,
        query: Query::parse(parts.uri.query()),
        address: client_address(peer, &parts.headers, &app.trace.trusted_proxies),
        peer,
        body: read_body(body).await,
        method: parts.method,
        headers: parts.headers,
        request_id,
        now,
        app,
    })
}

async fn read_body(body: Body) -> Result<Bytes, AdminError> {
    let collected = Limited::new(body, MAX_BODY).collect();
    match tokio::time::timeout(BODY_TIMEOUT, collected).await {
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(e)) if e.is::<http_body_util::LengthLimitError>() => Err(AdminError::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "too_large",
            format!("the body has more than {MAX_BODY} bytes"),
        )),
        _ => Err(AdminError::new(
            StatusCode::BAD_REQUEST,
            "invalid",
            "the body did not arrive",
        )),
    }
}
