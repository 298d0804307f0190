//! Where every request comes in, on its way to a handler.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::response::Response;
use futures_util::FutureExt as _;
use futures_util::future::Either;
use http::{Method, Request, Uri};
use hyper::body::Incoming;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;

use crate::app::App;
use crate::chat::mount::Mount;
use crate::http::trace::{self, Answering};
use crate::relay::{self, relay};
use crate::router::{self, CHATS};

/// The gateway's one service.
///
/// The router knows every path. A chat, which most requests are, is found without it: a request that goes through the router is boxed,
/// cloned and put into maps so often that a plain chat took 6 % more of the processor.
#[derive(Clone)]
pub struct Entrance {
    app: Arc<App>,
    router: TowerToHyperService<Router>,
}

impl Entrance {
    /// To `app`.
    pub fn new(app: &Arc<App>) -> Self {
        Self {
            app: Arc::clone(app),
            router: TowerToHyperService::new(router::router(app)),
        }
    }

    fn chat(&self, path: &str, mount: Mount, request: Request<Incoming>) -> Answering {
        trace::traced(&self.app, path, request, |request, request_id, notes| {
            let (parts, body) = request.into_parts();
            let request = relay::Request {
                mount,
                path: None,
                json_array: false,
                query_key: None,
                headers: parts.headers,
                request_id,
                notes,
                body,
            };
            relay(Arc::clone(&self.app), request).map(Ok)
        })
    }
}

impl Service<Request<Incoming>> for Entrance {
    type Response = Response;
    type Error = Infallible;
    type Future =
        Either<<TowerToHyperService<Router> as Service<Request<Incoming>>>::Future, Answering>;

    fn call(&self, mut request: Request<Incoming>) -> Self::Future {
        if let Some(uri) = tidied(request.uri()) {
            *request.uri_mut() = uri;
        }
        let path = request.uri().path();
        let chat = CHATS.iter().find(|(known, _)| *known == path);
        match chat.filter(|_| request.method() == Method::POST) {
            Some((path, mount)) => Either::Right(self.chat(path, *mount, request)),
            None => Either::Left(self.router.call(request)),
        }
    }
}

/// The same place without doubled slashes, where there are any outside of the models' own names.
fn tidied(uri: &Uri) -> Option<Uri> {
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
