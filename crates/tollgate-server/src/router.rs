//! Every path of the gateway: its table of contents.

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodRouter, get, post};

use crate::app::App;
use crate::chat::mount::{self, Mount};
use crate::http::{reply, trace};
use crate::routes::{
    balance, callbacks, chat, files, health, images, models, pages, speech, tasks, uploads, videos,
};

/// The chat endpoints whose body names the model.
pub const CHATS: [(&str, Mount); 7] = [
    // In SPEC.md's envelope
    ("/api/v1/chat/completions", mount::SPEC_CHAT),
    ("/v1/responses", mount::SPEC_RESPONSES),
    ("/v1/messages", mount::SPEC_MESSAGES),
    // As the providers' own APIs
    ("/v1/chat/completions", mount::BARE_CHAT),
    ("/openai/v1/chat/completions", mount::BARE_CHAT),
    ("/openai/v1/responses", mount::BARE_RESPONSES),
    ("/anthropic/v1/messages", mount::BARE_MESSAGES),
];

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
        .route("/v1/tasks/{task_id}/callbacks", get(callbacks::log))
        .route("/v1/callbacks/secret", get(callbacks::secret))
        .route("/v1/images/generations/{task_id}", get(tasks::generation))
        // Models and files
        .route("/v1/models", get(models::list))
        .route("/files/{name}", get(files::get))
        .merge(chats())
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

/// [`CHATS`], and what else is asked for beside them.
fn chats() -> Router<Arc<App>> {
    let mut routes = Router::new();
    for (path, mount) in CHATS {
        routes = routes.route(
            path,
            chat(move |parts, body| chat::in_body(mount, parts, body)),
        );
    }
    routes
        // Chat, in SPEC.md's envelope
        .route("/v1/messages/count_tokens", chat(chat::count_messages))
        .route(
            "/v1beta/models/{*named}",
            chat(chat::generate).get(chat::get_model),
        )
        .route(
            "/v1beta/models",
            get(chat::list_models).options(chat::preflight),
        )
        // Chat, as the providers' own APIs
        .route(
            "/openai/v1/models",
            get(chat::list_models).options(chat::preflight),
        )
        .route(
            "/openai/v1/models/{*named}",
            get(chat::get_model).options(chat::preflight),
        )
        .route(
            "/anthropic/v1/messages/count_tokens",
            chat(chat::bare_count_messages),
        )
        .route(
            "/anthropic/v1/models",
            get(chat::list_models).options(chat::preflight),
        )
        .route(
            "/anthropic/v1/models/{*named}",
            get(chat::get_model).options(chat::preflight),
        )
        .route(
            "/gemini/v1beta/models",
            get(chat::list_models).options(chat::preflight),
        )
        .route(
            "/gemini/v1beta/models/{*named}",
            chat(chat::bare_generate).get(chat::get_model),
        )
        .route(
            "/gemini/v1/models",
            get(chat::list_models).options(chat::preflight),
        )
        .route(
            "/gemini/v1/models/{*named}",
            chat(chat::bare_generate).get(chat::get_model),
        )
}

/// A chat endpoint, open to browsers.
fn chat<H, T>(handler: H) -> MethodRouter<Arc<App>>
where
    H: Handler<T, Arc<App>>,
    T: 'static,
{
    post(handler).options(chat::preflight)
}
