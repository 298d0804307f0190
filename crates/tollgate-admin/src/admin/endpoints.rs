//! The list of all endpoints of the admin API. The router and the OpenAPI document are generated from it.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use axum::routing::{MethodFilter, on};
use tollgate_server::http::reply;
use tollgate_server::routes::erased_handler::{erase, get};
use tollgate_server::state::App;

use super::endpoint::{Endpoint, PREFIX, handle};
use super::{
    admins, alerts, audits, budgets, channel_writes, channels, chats, config, custom_models,
    entries, events, keys, me, models, openapi, prices, quote, refunds, search, sessions, tail,
    tasks, tokens, usage, users,
};

/// Every endpoint.
pub fn all() -> impl Iterator<Item = &'static Endpoint> {
    let lists: [&[Endpoint]; 24] = [
        me::ENDPOINTS,
        sessions::ENDPOINTS,
        admins::ENDPOINTS,
        tokens::ENDPOINTS,
        users::ENDPOINTS,
        entries::ENDPOINTS,
        usage::ENDPOINTS,
        budgets::ENDPOINTS,
        refunds::ENDPOINTS,
        tasks::ENDPOINTS,
        chats::ENDPOINTS,
        tail::ENDPOINTS,
        search::ENDPOINTS,
        keys::ENDPOINTS,
        events::ENDPOINTS,
        audits::ENDPOINTS,
        quote::ENDPOINTS,
        models::ENDPOINTS,
        prices::ENDPOINTS,
        channels::ENDPOINTS,
        channel_writes::ENDPOINTS,
        config::ENDPOINTS,
        custom_models::ENDPOINTS,
        alerts::ENDPOINTS,
    ];
    lists.into_iter().flatten()
}

/// The routes of the admin API.
pub fn routes() -> Router<Arc<App>> {
    let mut routes = Router::new().route("/admin/openapi.json", get(openapi_document));
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

/// `GET /admin/openapi.json`.
async fn openapi_document() -> Response {
    static DOCUMENT: LazyLock<String> = LazyLock::new(|| openapi::document(all()).to_string());
    reply::json_text(DOCUMENT.as_str())
}
