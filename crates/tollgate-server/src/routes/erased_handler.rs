//! `get` and `post` like axum's, for handlers whose type is erased.
//!
//! axum wraps every type of handler in several services. The compiler instantiates each of them and proves each time that the handler's future is
//! `Send`, which was a sixth of the time that this crate took to compile.

use std::pin::Pin;
use std::sync::Arc;

use axum::extract::Request;
use axum::handler::Handler;
use axum::response::Response;
use axum::routing::{self, MethodRouter};

use crate::state::App;

/// The future of a handler.
type Handling = Pin<Box<dyn Future<Output = Response> + Send>>;

/// A handler of any type.
#[derive(Clone)]
pub struct ErasedHandler(Arc<dyn Fn(Request, Arc<App>) -> Handling + Send + Sync>);

/// Distinguishes the implementation for [`ErasedHandler`] from those for functions.
pub struct Erased;

impl Handler<Erased, Arc<App>> for ErasedHandler {
    type Future = Handling;

    fn call(self, request: Request, app: Arc<App>) -> Handling {
        (self.0)(request, app)
    }
}

/// Erases the type of a handler, an async function with extractors as parameters.
pub fn erase<H, T>(handler: H) -> ErasedHandler
where
    H: Handler<T, Arc<App>, Future = Handling>,
{
    ErasedHandler(Arc::new(move |request, app| {
        handler.clone().call(request, app)
    }))
}

/// The handler of `GET` and `HEAD` requests to a path.
pub fn get<H, T>(handler: H) -> MethodRouter<Arc<App>>
where
    H: Handler<T, Arc<App>, Future = Handling>,
{
    routing::get(erase(handler))
}

/// The handler of `POST` requests to a path.
pub fn post<H, T>(handler: H) -> MethodRouter<Arc<App>>
where
    H: Handler<T, Arc<App>, Future = Handling>,
{
    routing::post(erase(handler))
}
