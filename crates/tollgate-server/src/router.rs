//! Every path of the gateway: its table of contents.

use std::sync::Arc;

use axum::Router;
use axum::routing::{get, post};

use crate::app::App;
use crate::http::{reply, trace};
use crate::routes::{balance, files, health, images, models, pages, tasks, uploads};

/// The routes, with request ids, logs and metrics around them.
pub fn router(app: &Arc<App>) -> Router {
    let of_key = get(balance::of_key).options(balance::preflight);
    let of_user = get(balance::of_user).options(balance::preflight);
    let routes = Router::new()
        // Account
        .route("/v1/balance", of_key.clone())
        .route("/balance", of_key)
        .route("/v1/user/balance", of_user.clone())
        .route("/user/balance", of_user)
        // Images
        .route("/v1/images/generations", post(images::generations))
        .route("/v1/images/edits", post(images::edits))
        .route("/v1/uploads/images", post(uploads::image))
        // Tasks
        .route("/v1/tasks", get(tasks::list))
        .route("/v1/tasks/batch", post(tasks::batch))
        .route("/v1/tasks/{task_id}", get(tasks::get))
        .route("/v1/tasks/{task_id}/cancel", post(tasks::cancel))
        .route("/v1/images/generations/{task_id}", get(tasks::generation))
        // Models and files
        .route("/v1/models", get(models::list))
        .route("/files/{name}", get(files::get))
        // For people and machines that look after it
        .route("/openapi.json", get(pages::openapi))
        .route("/docs", get(pages::docs))
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(health::metrics))
        .fallback(reply::unknown_path)
        .method_not_allowed_fallback(reply::wrong_method);
    trace::around(routes, app).with_state(Arc::clone(app))
}
