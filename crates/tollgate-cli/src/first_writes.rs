//! The writes of `tollgate serve` to the database at its start. If the disk is full, the gateway still serves reads: the writes are retried until the
//! disk accepts them, and no task is worked on before that.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;
use tollgate_admin::admin::sign_in_link;
use tollgate_core::{Amount, id};
use tollgate_server::state::App;
use tollgate_store::{KeyLimits, RateLimits, StoreError};

use super::common::Failed;
use super::key;

/// Pause between attempts while the disk accepts no writes.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// The name of the user that the first start creates.
const DEMO: &str = "demo";

/// Writes once; if the disk of the database is full, a background loop retries. The returned token is cancelled when everything is written.
///
/// # Errors
/// Any other failure of the database.
pub(super) async fn write_or_retry(app: &Arc<App>) -> Result<CancellationToken, Failed> {
    let written = CancellationToken::new();
    match write(app).await {
        Ok(()) => {
            prepare_first_use(app).await?;
            written.cancel();
        }
        Err(StoreError::DiskFull(why)) => {
            tracing::error!(
                error = why,
                "the database's disk takes no writes: only reads are served until it does"
            );
            let (app, written) = (Arc::clone(app), written.clone());
            tokio::spawn(async move { retry(&app, &written).await });
        }
        Err(e) => return Err(e.into()),
    }
    Ok(written)
}

async fn retry(app: &App, written: &CancellationToken) {
    while let Err(e) = write(app).await {
        tracing::debug!(error = %e, "the writes of the start are tried again");
        tokio::time::sleep(RETRY_PAUSE).await;
    }
    tracing::info!("the database takes writes again");
    if let Err(Failed(why)) = prepare_first_use(app).await {
        tracing::error!(error = why, "a first start's user or link is missing");
    }
    written.cancel();
}

/// Registers this node, and releases the leases that the last run left if the database is not shared. May be repeated until the workers start.
async fn write(app: &App) -> Result<(), StoreError> {
    app.store.reserve_disk().await?;
    app.heartbeat.start().await?;
    // A node that does not share its database releases at once the leases that its last run left.
    let has_crashed = if app.store.is_shared() {
        // Unfinished tasks may be those of running nodes or of a crashed one: the database does not show which.
        app.store.has_unfinished_tasks().await?
    } else {
        app.store.release_leases(None, app.clock.now()).await? > 0
    };
    // If the last run crashed because it worked on too many tasks at once, this one would crash too.
    if has_crashed {
        app.tasks.signals.workload.begin_with_few();
    }
    app.peers.report().await
}

/// Creates the user `demo` if there is no user and `demo` is configured; prints a link to the console as long as there is no admin.
async fn prepare_first_use(app: &App) -> Result<(), Failed> {
    if app.config.demo && !app.store.has_users().await? {
        create_demo_user(app).await?;
    }
    if !app.store.has_admins().await? {
        print_first_link(app).await?;
    }
    Ok(())
}

/// On the first start: creates the user `demo` with one API key, and prints both with commands to paste.
async fn create_demo_user(app: &App) -> Result<(), Failed> {
    app.store
        .create_user(
            DEMO,
            true,
            Amount::ZERO,
            RateLimits::default(),
            app.clock.now(),
        )
        .await?;
    let (_, key) = key::create(&app.store, DEMO, "first start", None, KeyLimits::default()).await?;
    let url = &app.public_url;
    let body =
        r#"{"model": "gpt-image-2-official", "prompt": "a lighthouse at dawn", "size": "16:9"}"#;
    let text = format!(
        "\nFirst start: created user {DEMO:?} (unlimited) with this API key, which is shown only once:\n\n  {key}\n\n\
         Generate an image:\n\n  curl -s {url}/v1/images/generations -H 'Authorization: Bearer {key}' \\\n    \
         -H 'Content-Type: application/json' -d '{body}'\n\n\
         Poll the task with its id from the response:\n\n  \
         curl -s {url}/v1/tasks/TASK_ID -H 'Authorization: Bearer {key}'\n\n"
    );
    Ok(std::io::stderr().write_all(text.as_bytes())?)
}

/// As long as there is no admin: prints the one-time link with which the first admin signs in.
async fn print_first_link(app: &App) -> Result<(), Failed> {
    let code = id::random_secret("");
    let now = app.clock.now();
    app.store
        .create_first_link(&id::key_hash(&code), now)
        .await?;
    let link = sign_in_link(&app.console_url, &code);
    Ok(writeln!(std::io::stderr(), "first sign-in: {link}")?)
}
