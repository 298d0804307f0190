//! Every path of the API, and the service that handles requests: chats with the model in the body directly, everything else through axum's router.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::response::Response;
use axum::routing::{self, MethodRouter};
use futures_util::FutureExt as _;
use futures_util::future::Either;
use http::{Method, Request, Uri};
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;

use crate::chat::endpoint::{CHAT_PATHS, ChatOperation, ChatPath, Endpoint};
use crate::chat::handler;
use crate::chat::request::ChatRequest;
use crate::http::client_address::PeerAddress;
use crate::http::trace::{TraceLayer, TracedResponse, trace_request};
use crate::listener_role::ListenerRole;
use crate::routes::erased_handler::{ErasedHandler, erase, get, post};
use crate::routes::{
    balance, chat, fallback, files, health, images, models, quote, speech, tasks, uploads, videos,
    webhooks,
};
use crate::state::App;

/// The gateway's HTTP service.
///
/// Chats with the model in the body, which most requests are, bypass axum's router: it boxes and clones requests and fills maps so often that a plain
/// chat needed 6 % more CPU time.
#[derive(Clone)]
pub struct GatewayService {
    app: Arc<App>,
    router: TowerToHyperService<Router>,
    has_chats: bool,
    /// `None` outside of a connection.
    peer: Option<PeerAddress>,
}

impl GatewayService {
    /// The service of `app` on a listener of this role; `others` are the routes outside the client API.
    pub fn new(app: &Arc<App>, role: ListenerRole, others: Router<Arc<App>>) -> Self {
        Self {
            app: Arc::clone(app),
            router: TowerToHyperService::new(router(app, role, others)),
            has_chats: true,
            peer: None,
        }
    }

    /// The service of `metrics.listen`: health checks, and metrics without a key.
    pub fn for_operations(app: &Arc<App>) -> Self {
        Self {
            app: Arc::clone(app),
            router: TowerToHyperService::new(operations_router(app)),
            has_chats: false,
            peer: None,
        }
    }

    /// The same service for a connection of this client.
    #[must_use]
    pub fn for_connection(&self, peer: PeerAddress) -> Self {
        Self {
            peer: Some(peer),
            ..self.clone()
        }
    }

    fn chat(&self, path: &str, endpoint: Endpoint, request: Request<Incoming>) -> TracedResponse {
        trace_request(
            &self.app.trace,
            path,
            self.peer,
            request,
            |request, request_id, notes| {
                let (parts, body) = request.into_parts();
                let request = ChatRequest::new(endpoint, parts.headers, request_id, notes, body);
                handler::handle(Arc::clone(&self.app.chat), request).map(Ok)
            },
        )
    }
}

impl Service<Request<Incoming>> for GatewayService {
    type Response = Response;
    type Error = Infallible;
    type Future =
        Either<<TowerToHyperService<Router> as Service<Request<Incoming>>>::Future, TracedResponse>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        if let Some(uri) = collapse_slashes(request.uri()) {
            *request.uri_mut() = uri;
        }
        let path = request.uri().path();
        let chat = CHAT_PATHS
            .iter()
            .find(|chat| chat.path == path && chat.operation == ChatOperation::ModelInBody);
        match chat.filter(|_| self.has_chats && request.method() == Method::POST) {
            Some(chat) => Either::Right(self.chat(chat.path, chat.endpoint, request)),
            None => {
                if let Some(peer) = self.peer {
                    request.extensions_mut().insert(peer);
                }
                Either::Left(self.router.call(request))
            }
        }
    }
}

/// The URI with doubled slashes in its path replaced by single ones. `None` if there are none.
fn collapse_slashes(uri: &Uri) -> Option<Uri> {
    if !uri.path().contains("//") {
        return None;
    }
    let mut path = String::with_capacity(uri.path().len());
    for c in uri.path().chars() {
        if !(c == '/' && path.ends_with('/')) {
            path.push(c);
        }
    }
    if let Some(query) = uri.query() {
        path.push('?');
        path.push_str(query);
    }
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(path.parse().ok()?);
    Uri::from_parts(parts).ok()
}

/// All routes of a listener, wrapped by tracing.
fn router(app: &Arc<App>, role: ListenerRole, others: Router<Arc<App>>) -> Router {
    let key_balance = get(balance::key_balance).options(erase(balance::preflight));
    let user_balance = get(balance::user_balance).options(erase(balance::preflight));
    let routes = Router::new()
        // Account
        .route("/v1/balance", key_balance.clone())
        .route("/balance", key_balance)
        .route("/v1/user/balance", user_balance.clone())
        .route("/user/balance", user_balance)
        .route("/v1/quote", post(quote::create))
        // Images
        .route("/v1/images/generations", post(images::generations))
        .route("/v1/images/edits", post(images::edits))
        .route("/v1/uploads/images", post(uploads::image))
        // Videos
        .route("/v1/video/generations", post(videos::generations))
        .route("/v1/videos", post(videos::create))
        .route("/v1/videos/{task_id}", get(videos::get))
        .route("/v1/videos/{task_id}/content", get(videos::content))
        // Speech
        .route("/v1/audio/speech", post(speech::speech))
        .route("/v1/multimodal/audio/generations", post(speech::multimodal))
        .route("/native/v1/audio/tts", post(speech::native))
        .route("/native/v1/audio/tts/{task_id}", get(speech::native_task))
        .route("/kling/v1/audio/tts", post(speech::native))
        .route("/kling/v1/audio/tts/{task_id}", get(speech::native_task))
        // Tasks
        .route("/v1/tasks", get(tasks::list))
        .route("/v1/tasks/batch", post(tasks::batch))
        .route("/v1/tasks/{task_id}", get(tasks::get))
        .route("/v1/tasks/{task_id}/cancel", post(tasks::cancel))
        .route("/v1/tasks/{task_id}/callbacks", get(webhooks::delivery_log))
        .route("/v1/callbacks/secret", get(webhooks::secret))
        .route("/v1/images/generations/{task_id}", get(tasks::generation))
        // Models and files
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*named}", get(models::get))
        .route("/files/{name}", get(files::get))
        .merge(chat_routes())
        // Operation
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        // Admin API, portal, sign-in, their pages, documentation: `routes` of tollgate-admin
        .merge(others);
    let routes = match role {
        // The router does not know whether this listener is on loopback, so metrics need the key.
        ListenerRole::Operators => routes.route("/metrics", get(health::keyed_metrics)),
        _ => routes.route("/metrics", get(health::metrics)),
    };
    let routes = routes
        .fallback(erase(fallback::unknown_path))
        .method_not_allowed_fallback(erase(fallback::method_not_allowed));
    let traced = routes.layer(TraceLayer(Arc::clone(&app.trace)));
    traced.with_state(Arc::clone(app))
}

/// The routes of `metrics.listen`.
fn operations_router(app: &Arc<App>) -> Router {
    let routes = Router::new()
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(health::own_metrics))
        .fallback(erase(fallback::unknown_path))
        .method_not_allowed_fallback(erase(fallback::method_not_allowed));
    let traced = routes.layer(TraceLayer(Arc::clone(&app.trace)));
    traced.with_state(Arc::clone(app))
}

/// [`CHAT_PATHS`] and the lists of models.
fn chat_routes() -> Router<Arc<App>> {
    let mut routes = Router::new();
    for ChatPath {
        path,
        endpoint,
        operation,
        ..
    } in CHAT_PATHS.iter().copied()
    {
        let route = match operation {
            ChatOperation::ModelInBody => chat_route(erase(move |parts, body| {
                chat::model_in_body(endpoint, parts, body)
            })),
            ChatOperation::ModelInPath => chat_route(erase(move |parts, body| {
                chat::model_in_path(endpoint, parts, body)
            }))
            .get(erase(chat::get_model)),
            ChatOperation::CountTokens => chat_route(erase(move |parts, body| {
                chat::count_tokens(endpoint, parts, body)
            })),
        };
        routes = routes.route(path, route);
    }
    routes
        .route(
            "/v1beta/models",
            get(chat::list_models).options(erase(chat::preflight)),
        )
        .route(
            "/openai/v1/models",
            get(chat::list_models).options(erase(chat::preflight)),
        )
        .route(
            "/openai/v1/models/{*named}",
            get(chat::get_model).options(erase(chat::preflight)),
        )
        .route(
            "/anthropic/v1/models",
            get(chat::list_models).options(erase(chat::preflight)),
        )
        .route(
            "/anthropic/v1/models/{*named}",
            get(chat::get_model).options(erase(chat::preflight)),
        )
        .route(
            "/gemini/v1beta/models",
            get(chat::list_models).options(erase(chat::preflight)),
        )
        .route(
            "/gemini/v1/models",
            get(chat::list_models).options(erase(chat::preflight)),
        )
}

/// A chat route, which browser pages of any origin may call.
fn chat_route(handler: ErasedHandler) -> MethodRouter<Arc<App>> {
    routing::post(handler).options(erase(chat::preflight))
}
