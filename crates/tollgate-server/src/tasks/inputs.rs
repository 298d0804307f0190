//! The input images of a submission: stored, checked as early as possible, and fetched and checked before the provider is called.

use std::io::{self, BufReader};
use std::time::Duration;

use tollgate_core::{ApiError, Millis, TaskKind, clock};
use tollgate_media::image::{ImageMetadata, ImageMetadataError, ImageSource, InputImage};
use tollgate_media::input::{Input, InputRole, InputSource};
use tollgate_media::{AnyFamily, Job, MediaJob as _, Submission};
use tollgate_storage::files::{FileStorage, LocalCopy, Visibility};
use tollgate_upstream::InputFile;
use tollgate_upstream::egress::{EgressError, FetchLimits};

use crate::http::errors;
use crate::spawn::spawn_detached;
use crate::tasks::context::TaskContext;

/// How long fetching one image may take, redirects included.
const FETCH_TIMEOUT: Duration = Duration::from_secs(60);
const MAX_REDIRECTS: u32 = 3;
/// How much longer than its task's deadline a private copy is kept, for a worker that is late.
const TTL_MARGIN: Millis = clock::HOUR;

/// The input images of a job, which are on disk and checked.
#[derive(Default)]
pub struct Inputs {
    /// In the job's order.
    pub references: Vec<InputFile>,
    /// The inpainting mask.
    pub mask: Option<InputFile>,
    /// Keeps the files on disk.
    local_copies: Vec<LocalCopy>,
}

/// The private files of a submission that is not a task yet: deleted when this is dropped, for example because the client has disconnected.
pub struct UnusedImages {
    files: FileStorage,
    names: Vec<String>,
}

impl UnusedImages {
    /// Begins without files; `files` is where they are deleted.
    pub fn new(files: &FileStorage) -> Self {
        Self {
            files: files.clone(),
            names: Vec::new(),
        }
    }

    /// Keeps the files: a task may have them from now on.
    pub fn keep(mut self) {
        self.names.clear();
    }
}

impl Drop for UnusedImages {
    fn drop(&mut self) {
        let (files, names) = (self.files.clone(), std::mem::take(&mut self.names));
        if names.is_empty() {
            return;
        }
        spawn_detached(async move {
            for name in names {
                files.delete(Visibility::Private, &name).await;
            }
        });
    }
}

/// At submission: stores the images of data URIs as private files, recognises links to the gateway's own files, and leaves other URLs to be fetched
/// when the task runs. Returns the complete job, and the metadata of its references, in their order, as far as it is known.
///
/// # Errors
/// 400 for an image that is invalid or has expired: all images are checked before the first one is stored, so this leaves no files. 503 if the
/// storage failed. The files are added to `stored`.
pub async fn store_submitted(
    context: &TaskContext,
    family: AnyFamily,
    mut submission: Submission,
    deadline_at: Millis,
    stored: &mut UnusedImages,
) -> Result<(Job, Vec<Option<ImageMetadata>>), ApiError> {
    let references = check_available(context, family, &submission.inputs).await?;
    let mut sources = Vec::with_capacity(submission.inputs.len());
    for input in &mut submission.inputs {
        sources.push(match &mut input.source {
            InputSource::Data { metadata, bytes } => {
                let bytes = std::mem::take(bytes);
                let name = store_private(context, metadata, &bytes, deadline_at).await?;
                stored.names.push(name.clone());
                ImageSource::Stored(name)
            }
            InputSource::Url(url) => match context.files.own_name(url) {
                Some(name) => ImageSource::Stored(name),
                None => ImageSource::Url(std::mem::take(url)),
            },
        });
    }
    Ok((submission.into_job(sources), references))
}

/// The job of a submission that is not stored, for a quote. Checks what [`store_submitted`] checks, and stores nothing.
pub async fn check_submitted(
    context: &TaskContext,
    family: AnyFamily,
    submission: Submission,
) -> Result<(Job, Vec<Option<ImageMetadata>>), ApiError> {
    let references = check_available(context, family, &submission.inputs).await?;
    let sources = submission.inputs.iter().map(|input| match &input.source {
        InputSource::Data { metadata, .. } => {
            ImageSource::Url(format!("data:{}", metadata.format.media_type()))
        }
        InputSource::Url(url) => ImageSource::Url(url.clone()),
    });
    let sources = sources.collect();
    Ok((submission.into_job(sources), references))
}

/// Checks the images that are available at submission; returns the metadata of the references, `None` for those that must be fetched.
async fn check_available(
    context: &TaskContext,
    family: AnyFamily,
    inputs: &[Input],
) -> Result<Vec<Option<ImageMetadata>>, ApiError> {
    let mut references: Vec<Option<ImageMetadata>> = Vec::new();
    for input in inputs {
        let metadata = match &input.source {
            InputSource::Data { metadata, .. } => Some(*metadata),
            InputSource::Url(url) => match context.files.own_name(url) {
                Some(name) => Some(read_own_file(context, &input.field, &name).await?),
                None => None,
            },
        };
        if let Some(metadata) = &metadata {
            let first = references.first().and_then(Option::as_ref);
            family.check_input_image(input.role, &input.field, metadata, first)?;
        }
        if let InputRole::Reference(_) = input.role {
            references.push(metadata);
        }
    }
    Ok(references)
}

async fn store_private(
    context: &TaskContext,
    metadata: &ImageMetadata,
    bytes: &[u8],
    deadline_at: Millis,
) -> Result<String, ApiError> {
    let expires_at = (deadline_at + TTL_MARGIN) / 1000;
    let extension = metadata.format.extension();
    let stored = async {
        let mut file = context
            .files
            .create(Visibility::Private, expires_at, extension)
            .await?;
        file.write(bytes).await?;
        file.finish().await
    };
    stored.await.map_err(|e| {
        tracing::error!(error = %e, "cannot store an input image");
        write_error(context, &e)
    })
}

/// The error if the gateway's own storage did not store an image.
fn write_error(context: &TaskContext, error: &io::Error) -> ApiError {
    context.files.record_write_error(error);
    errors::from_storage()
}

/// The error if a stored image cannot be read: `expired` if it does not exist.
fn read_error(error: &io::Error, expired: impl FnOnce() -> ApiError) -> ApiError {
    if error.kind() == io::ErrorKind::NotFound {
        return expired();
    }
    tracing::error!(%error, "cannot read an input image");
    errors::from_storage()
}

async fn read_own_file(
    context: &TaskContext,
    field: &str,
    name: &str,
) -> Result<ImageMetadata, ApiError> {
    let expired = || {
        ApiError::invalid(format!(
            "`{field}` is a link of this service that has expired: upload the image again"
        ))
    };
    let now = context.clock.now();
    let copied = context.files.local_copy(Visibility::Public, name, now);
    let copy = copied.await.map_err(|e| read_error(&e, expired))?;
    read_metadata(&copy, field, expired).await
}

/// Before the provider is called: fetches the URLs, checks every image against the family's limits, and determines the sizes that depend on the
/// references.
///
/// # Errors
/// The error that the client receives as the task's; one of kind `Unavailable` if the gateway's own storage accepts no writes, or a file on it cannot
/// be read, which the task did not cause.
pub async fn prepare(
    context: &TaskContext,
    family: AnyFamily,
    job: &mut Job,
    deadline_at: Millis,
) -> Result<Inputs, ApiError> {
    let mut inputs = Inputs::default();
    let mut references = Vec::new();
    // References precede the mask, which must have the size of the first one.
    for (role, image) in job.input_images() {
        let copy = copy_image(context, family, image, deadline_at).await?;
        let (file, metadata) = inspect_image(&copy, &image.field).await?;
        inputs.local_copies.push(copy);
        family.check_input_image(role, &image.field, &metadata, references.first())?;
        match role {
            InputRole::Reference(_) => {
                inputs.references.push(file);
                references.push(metadata);
            }
            InputRole::Mask => inputs.mask = Some(file),
        }
    }
    let references: Vec<Option<ImageMetadata>> = references.into_iter().map(Some).collect();
    family.apply_reference_metadata(job, &references)?;
    Ok(inputs)
}

/// Whether the job has images that must be downloaded.
pub fn needs_fetch(job: &Job) -> bool {
    let mut images = job.input_images().into_iter();
    images.any(|(_, image)| matches!(image.source, ImageSource::Url(_)))
}

/// Copies the image to this machine's disk.
async fn copy_image(
    context: &TaskContext,
    family: AnyFamily,
    image: &InputImage,
    deadline_at: Millis,
) -> Result<LocalCopy, ApiError> {
    let field = &image.field;
    match &image.source {
        ImageSource::Stored(name) => {
            let (files, now) = (&context.files, context.clock.now());
            let mut copied = files.local_copy(Visibility::Private, name, now).await;
            if matches!(&copied, Err(e) if e.kind() == io::ErrorKind::NotFound) {
                copied = files.local_copy(Visibility::Public, name, now).await;
            }
            copied.map_err(|e| read_error(&e, || expired(field)))
        }
        ImageSource::Url(url) => download(context, family, field, url, deadline_at).await,
    }
}

fn expired(field: &str) -> ApiError {
    ApiError::invalid(format!("the image of `{field}` has expired"))
}

async fn inspect_image(
    copy: &LocalCopy,
    field: &str,
) -> Result<(InputFile, ImageMetadata), ApiError> {
    let metadata = read_metadata(copy, field, || expired(field)).await?;
    let file = InputFile {
        field: field.to_owned(),
        path: copy.path().to_owned(),
        format: metadata.format,
        size: metadata.size,
        bytes: metadata.bytes,
    };
    Ok((file, metadata))
}

/// Downloads a client's URL through the egress guard to a file that is deleted when the returned value is dropped.
async fn download(
    context: &TaskContext,
    family: AnyFamily,
    field: &str,
    url: &str,
    deadline_at: Millis,
) -> Result<LocalCopy, ApiError> {
    let storage_error = |e: io::Error| {
        tracing::error!(error = %e, "cannot store a fetched image");
        write_error(context, &e)
    };
    let expires_at = (deadline_at + TTL_MARGIN) / 1000;
    let mut file = context
        .files
        .create(Visibility::Private, expires_at, "bin")
        .await
        .map_err(storage_error)?;
    let limits = FetchLimits {
        max_bytes: family.input_limits().max_bytes,
        total_time: FETCH_TIMEOUT,
        max_redirects: MAX_REDIRECTS,
    };
    context
        .egress
        .fetch_guarded(url, &limits, file.writer())
        .await
        .map_err(|e| match e {
            EgressError::Sink(e) => storage_error(e),
            e => ApiError::invalid(format!("`{field}` could not be fetched: {e}")),
        })?;
    file.finish_locally().await.map_err(storage_error)
}

/// Reads the metadata of an image file. The error is `expired` if the file does not exist.
async fn read_metadata(
    copy: &LocalCopy,
    field: &str,
    expired: impl FnOnce() -> ApiError,
) -> Result<ImageMetadata, ApiError> {
    let path = copy.path().to_owned();
    let read = tokio::task::spawn_blocking(move || {
        let file = std::fs::File::open(path)?;
        let bytes = file.metadata()?.len();
        ImageMetadata::read_complete(BufReader::new(file), bytes)
    });
    let why = match read.await {
        Ok(Ok(metadata)) => return Ok(metadata),
        Ok(Err(ImageMetadataError::Io(error))) => return Err(read_error(&error, expired)),
        Ok(Err(error)) => error.to_string(),
        // Reading it panicked: the file is the cause.
        Err(_) => "it could not be read".to_owned(),
    };
    let message = format!("`{field}` must be an image, but {why}");
    Err(ApiError::invalid(message))
}

/// Deletes the private images of a job that is stored as text. Does nothing if the text cannot be parsed.
pub async fn delete_private_images_of_text(files: &FileStorage, kind: TaskKind, job: &str) {
    let Ok(job) = Job::from_text(kind, job) else {
        return;
    };
    for (_, image) in job.input_images() {
        if let ImageSource::Stored(name) = &image.source {
            files.delete(Visibility::Private, name).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use tollgate_core::{ErrorKind, id};

    use super::*;

    #[tokio::test]
    async fn images_of_a_submission_that_ends_early_are_deleted() {
        let root = std::env::temp_dir().join(id::short_id("tollgate-inputs-"));
        let files = FileStorage::open(&root, "https://gateway.example").unwrap();
        let mut names = Vec::new();
        for is_kept in [true, false] {
            let file = files.create(Visibility::Private, 4_000_000_000, "png");
            let name = file.await.unwrap().finish().await.unwrap();
            let mut images = UnusedImages::new(&files);
            images.names.push(name.clone());
            match is_kept {
                true => images.keep(),
                false => drop(images),
            }
            names.push(name);
        }
        let exists =
            async |name: &str| files.local_copy(Visibility::Private, name, 0).await.is_ok();
        while exists(&names[1]).await {
            tokio::task::yield_now().await;
        }
        assert!(exists(&names[0]).await);
        std::fs::remove_dir_all(root).unwrap();
    }

    #[tokio::test]
    async fn only_a_missing_image_has_expired() {
        let root = std::env::temp_dir().join(id::short_id("tollgate-inputs-"));
        let files = FileStorage::open(&root, "https://gateway.example").unwrap();
        let file = files.create(Visibility::Private, 4_000_000_000, "png");
        let mut file = file.await.unwrap();
        file.write(b"no image").await.unwrap();
        let name = file.finish().await.unwrap();
        let copy = files.local_copy(Visibility::Private, &name, 0);
        let copy = copy.await.unwrap();
        let error = async || inspect_image(&copy, "image").await.map(drop).unwrap_err();
        let malformed = error().await;
        assert_eq!(malformed.kind, ErrorKind::InvalidRequest);
        assert!(
            malformed.message.contains("must be an image"),
            "{malformed}"
        );
        std::fs::remove_file(copy.path()).unwrap();
        assert_eq!(error().await, expired("image"));
        // Reading a folder fails, but not because it is missing.
        std::fs::create_dir(copy.path()).unwrap();
        assert_eq!(error().await.kind, ErrorKind::Unavailable);
        std::fs::remove_dir_all(root).unwrap();
    }
}
