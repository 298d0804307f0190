//! The API of the portal, `/v1/me` (docs/portal.md), for callers with an API key or a session of the portal. It uses the admin API's code for lists,
//! bodies and replies; its errors have the client API's envelope.

mod account;
mod authenticate;
mod history;
mod keys;
mod session;

pub(crate) use session::portal_cookie_header;

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, on};
use tollgate_core::ApiError;
use tollgate_server::auth::caller::Caller;
use tollgate_server::http::admin_error::AdminError;
use tollgate_server::http::reply::ErrorResponse;
use tollgate_server::http::request_id::RequestId;
use tollgate_server::http::request_notes::RequestNotes;
use tollgate_server::routes::erased_handler::erase;
use tollgate_server::state::App;

use crate::admin::endpoint::{Access, Endpoint, read_call, run_handler, set_host};
use crate::admin::{Actor, Reply};

/// The path prefix of the portal's API.
pub const PREFIX: &str = "/v1/me";

/// Every endpoint.
pub fn all() -> impl Iterator<Item = &'static Endpoint> {
    let lists: [&[Endpoint]; 4] = [
        account::ENDPOINTS,
        session::ENDPOINTS,
        keys::ENDPOINTS,
        history::ENDPOINTS,
    ];
    lists.into_iter().flatten()
}

/// The routes of the portal's API.
pub fn routes() -> Router<Arc<App>> {
    let mut routes = Router::new();
    for endpoint in all() {
        let method = MethodFilter::try_from(endpoint.method.clone());
        let method = method.expect("the methods of endpoints are those of HTTP");
        let handler =
            move |State(app): State<Arc<App>>, request: Request| handle(app, endpoint, request);
        routes = routes.route(
            &format!("{PREFIX}{}", endpoint.path),
            on(method, erase(handler)),
        );
    }
    routes
}

async fn handle(app: Arc<App>, endpoint: &'static Endpoint, request: Request) -> Response {
    match check_and_run(app, endpoint, request).await {
        Ok(reply) => reply.into_response(),
        Err(error) => ErrorResponse::from(error).into_response(),
    }
}

/// The checks that come before every handler: caller, origin, rate limits.
async fn check_and_run(
    app: Arc<App>,
    endpoint: &'static Endpoint,
    request: Request,
) -> Result<Reply, ApiError> {
    let (mut parts, body) = request.into_parts();
    set_host(&mut parts);
    let request_id = parts.extensions.get::<RequestId>();
    let request_id = request_id.map_or_else(String::new, |id| id.as_str().to_owned());
    let now = app.clock.now();
    let caller = match endpoint.access {
        Access::Public => None,
        _ => Some(authenticate::authenticate(&app, &parts.method, &parts.headers).await?),
    };
    // The request counts as in flight until the reply.
    let mut admitted = None;
    if let Some((key, _)) = &caller {
        if let Some(notes) = parts.extensions.get::<RequestNotes>() {
            notes.set_key(key);
        }
        let key = Arc::clone(key);
        admitted = Some(Caller::admit(&app.limits, key, &parts.method, now).await?);
    }
    let actor = caller.map(|(key, session_id)| Actor::of_key(key, session_id));
    let call = read_call(app, endpoint, actor, parts, body, request_id, now);
    let call = call.await.map_err(AdminError::into_api_error)?;
    let reply = run_handler(endpoint, call).await;
    drop(admitted);
    reply.map_err(AdminError::into_api_error)
}
