//! The pictures that come with a submission: kept, checked as early as they can be, ready for the provider.

use std::io::BufReader;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{ApiError, Millis, TaskKind, clock};
use tollgate_media::image::{ImageFacts, InputImage, Source, facts};
use tollgate_media::input::{Input, InputRole, InputSource};
use tollgate_media::{AnyFamily, Job, MediaJob as _, Submission};
use tollgate_upstream::InputFile;
use tollgate_upstream::egress::FetchLimits;

use crate::app::App;
use crate::blobs::Shelf;

/// How long a reference may take to come, redirects included.
const FETCH_TIME: Duration = Duration::from_secs(60);
const REDIRECTS: u32 = 3;
/// How much longer than its task a private copy is kept, for a worker that is late.
const SLACK: Millis = clock::HOUR;

/// The pictures of a job, on disk and checked.
#[derive(Default)]
pub struct Inputs {
    /// In the job's order.
    pub references: Vec<InputFile>,
    /// The inpainting mask.
    pub mask: Option<InputFile>,
}

/// At submission: data URIs go to private storage, links to our own files are looked at, other URLs are left for the
/// run. Returns the whole job and what is known of its references, in their order. Everything is looked at before
/// anything is kept: what is refused leaves nothing behind.
pub async fn take(
    app: &App,
    family: AnyFamily,
    mut submission: Submission,
    deadline_at: Millis,
) -> Result<(Job, Vec<Option<ImageFacts>>), ApiError> {
    let references = look(app, family, &submission.inputs).await?;
    let mut sources = Vec::with_capacity(submission.inputs.len());
    for input in &mut submission.inputs {
        sources.push(match &mut input.source {
            InputSource::Data { facts, bytes } => {
                let bytes = std::mem::take(bytes);
                Source::Stored(keep(app, facts, &bytes, deadline_at).await?)
            }
            InputSource::Url(url) => match app.blobs.own_name(&app.public_url, url) {
                Some(name) => Source::Stored(name),
                None => Source::Url(std::mem::take(url)),
            },
        });
    }
    Ok((submission.into_job(sources), references))
}

/// Checks what is here; returns what is known of the references.
async fn look(
    app: &App,
    family: AnyFamily,
    inputs: &[Input],
) -> Result<Vec<Option<ImageFacts>>, ApiError> {
    let mut references: Vec<Option<ImageFacts>> = Vec::new();
    for input in inputs {
        let found = match &input.source {
            InputSource::Data { facts, .. } => Some(*facts),
            InputSource::Url(url) => match app.blobs.own_name(&app.public_url, url) {
                Some(name) => Some(look_at_own(app, &input.field, &name).await?),
                None => None,
            },
        };
        if let Some(found) = &found {
            let first = references.first().and_then(Option::as_ref);
            family.check_input(input.role, &input.field, found, first)?;
        }
        if let InputRole::Reference(_) = input.role {
            references.push(found);
        }
    }
    Ok(references)
}

async fn keep(
    app: &App,
    facts: &ImageFacts,
    bytes: &[u8],
    deadline_at: Millis,
) -> Result<String, ApiError> {
    let expires_at = (deadline_at + SLACK) / 1000;
    let stored = async {
        let mut file = app
            .blobs
            .create(Shelf::Private, expires_at, facts.format.extension())
            .await?;
        file.write(bytes).await?;
        file.finish().await
    };
    stored.await.map_err(|e| {
        tracing::error!(error = %e, "cannot store a reference image");
        ApiError::internal()
    })
}

async fn look_at_own(app: &App, field: &str, name: &str) -> Result<ImageFacts, ApiError> {
    let path = app.blobs.path(Shelf::Public, name, app.clock.now());
    let gone = || {
        ApiError::invalid(format!(
            "`{field}` is a link of this service that has expired: upload the image again"
        ))
    };
    read_facts(path.ok_or_else(gone)?, field)
        .await
        .map_err(|e| match e {
            Unreadable::Missing => gone(),
            Unreadable::NoImage(why) => ApiError::invalid(why),
        })
}

/// When the task runs: fetches what was left, checks everything against the family's limits, settles the size.
///
/// # Errors
/// What the client is told as the task's error.
pub async fn prepare(
    app: &Arc<App>,
    family: AnyFamily,
    job: &mut Job,
    deadline_at: Millis,
) -> Result<Inputs, ApiError> {
    let mut inputs = Inputs::default();
    let mut found = Vec::new();
    // References come first: what a mask must fit is known by then.
    for (role, image) in job.pictures() {
        let (file, facts) = fetch(app, family, image, deadline_at).await?;
        family.check_input(role, &image.field, &facts, found.first())?;
        match role {
            InputRole::Reference(_) => {
                inputs.references.push(file);
                found.push(facts);
            }
            InputRole::Mask => inputs.mask = Some(file),
        }
    }
    let known: Vec<Option<ImageFacts>> = found.into_iter().map(Some).collect();
    family.settle(job, &known)?;
    Ok(inputs)
}

async fn fetch(
    app: &Arc<App>,
    family: AnyFamily,
    image: &InputImage,
    deadline_at: Millis,
) -> Result<(InputFile, ImageFacts), ApiError> {
    let field = &image.field;
    let path = match &image.source {
        Source::Stored(name) => {
            let now = app.clock.now();
            let path = app.blobs.path(Shelf::Private, name, now);
            let path = path
                .filter(|p| p.exists())
                .or_else(|| app.blobs.path(Shelf::Public, name, now));
            path.ok_or_else(|| ApiError::invalid(format!("the image of `{field}` has expired")))?
        }
        Source::Url(url) => download(app, family, field, url, deadline_at).await?,
    };
    let facts = read_facts(path.clone(), field).await.map_err(|e| match e {
        Unreadable::Missing => ApiError::invalid(format!("the image of `{field}` has expired")),
        Unreadable::NoImage(why) => ApiError::invalid(why),
    })?;
    let file = InputFile {
        field: field.clone(),
        path,
        format: facts.format,
        size: facts.size,
        bytes: facts.bytes,
    };
    Ok((file, facts))
}

/// Fetches a client-given URL through the egress guard into private storage.
async fn download(
    app: &App,
    family: AnyFamily,
    field: &str,
    url: &str,
    deadline_at: Millis,
) -> Result<PathBuf, ApiError> {
    let storage = |e: std::io::Error| {
        tracing::error!(error = %e, "cannot store a fetched image");
        ApiError::internal()
    };
    let expires_at = (deadline_at + SLACK) / 1000;
    let mut file = app
        .blobs
        .create(Shelf::Private, expires_at, "bin")
        .await
        .map_err(storage)?;
    let limits = FetchLimits {
        max_bytes: family.inputs().max_bytes,
        total_time: FETCH_TIME,
        max_redirects: REDIRECTS,
    };
    app.egress
        .fetch_guarded(url, &limits, file.sink())
        .await
        .map_err(|e| ApiError::invalid(format!("`{field}` could not be fetched: {e}")))?;
    let name = file.finish().await.map_err(storage)?;
    app.blobs
        .path(Shelf::Private, &name, app.clock.now())
        .ok_or_else(ApiError::internal)
}

enum Unreadable {
    Missing,
    NoImage(String),
}

async fn read_facts(path: PathBuf, field: &str) -> Result<ImageFacts, Unreadable> {
    let read = tokio::task::spawn_blocking(move || {
        let file = std::fs::File::open(path).map_err(|_| Unreadable::Missing)?;
        let bytes = file.metadata().map_err(|_| Unreadable::Missing)?.len();
        facts::read(BufReader::new(file), bytes).map_err(|e| Unreadable::NoImage(e.to_string()))
    });
    match read.await.unwrap_or(Err(Unreadable::Missing)) {
        Err(Unreadable::NoImage(why)) => Err(Unreadable::NoImage(format!("`{field}` {why}"))),
        other => other,
    }
}

/// Deletes the private copies of a task that has ended.
pub async fn discard(app: &App, kind: TaskKind, job: &str) {
    if let Ok(job) = Job::from_text(kind, job) {
        discard_of(app, &job).await;
    }
}

/// Deletes the private copies of a job.
pub async fn discard_of(app: &App, job: &Job) {
    for (_, image) in job.pictures() {
        if let Source::Stored(name) = &image.source {
            app.blobs.delete(Shelf::Private, name).await;
        }
    }
}
