//! Everything that operators, users of the portal and browsers request outside the client API: the admin API, the API of the portal, sign-in by an
//! OpenID provider, the pages of console, portal and documentation, the OpenAPI documents.
//!
//! It is a separate crate because chats and tasks do not depend on it, and so an ordinary build need not optimise it (docs/performance.md).

pub mod admin;
mod console;
mod docs;
pub mod openapi;
pub mod portal;
mod sign_in;

use std::sync::Arc;

use axum::Router;
use tollgate_server::listener_role::ListenerRole;
use tollgate_server::routes::erased_handler::get;
use tollgate_server::state::App;

/// All these routes, on a listener of this role, for [`tollgate_server::router::GatewayService`].
pub fn routes(app: &App, role: ListenerRole) -> Router<Arc<App>> {
    let mut routes = Router::new()
        .route("/openapi.json", get(openapi::endpoint::openapi))
        .route("/docs", get(docs::home))
        .route("/docs/api", get(docs::api))
        .merge(docs::routes())
        .merge(sign_in::routes(role))
        .merge(console::assets());
    // The routes for operators and those for users: the pages, and the API that they use.
    if role.serves_operators() {
        routes = routes
            .merge(admin::endpoints::routes())
            .merge(console::console_pages(role, &app.public_url));
    }
    if role.serves_portal() {
        routes = routes
            .merge(portal::routes())
            .merge(console::portal_pages(role, &app.public_url));
    }
    routes
}
