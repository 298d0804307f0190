//! Fetches files whose URLs a client sent, for an upstream that accepts files only inline. Requests go through the egress guard.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use base64::Engine as _;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use tokio::io::AsyncWrite;
use tollgate_chat::hub::{Part, PartKind, Request, Source};
use tollgate_chat::{InvalidRequest, media};
use tollgate_upstream::egress::{self, FetchLimits};

use crate::chat::error::ChatErrorResponse;

/// Largest file, in bytes: 20 MB.
const MAX_FILE_BYTES: u64 = 20 * 1_048_576;
/// Largest sum of all files of a request, in bytes: 64 MB.
const MAX_TOTAL_BYTES: u64 = 64 * 1_048_576;
/// How long fetching one file may take.
const FETCH_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_REDIRECTS: u32 = 3;
/// Files that are fetched at the same time.
const CONCURRENCY: usize = 4;
/// Maximum number of files of one request.
const MAX_FILES: usize = 100;

/// Replaces the URLs that the upstream does not accept by the files that they point to, as base64.
///
/// # Errors
/// 400 that names the URL and why it could not be fetched, or that its file is of an unknown type; 400 for more than 100 URLs, or more than
/// 64 MB together.
pub async fn inline_urls(
    egress: &egress::Client,
    request: &mut Request,
    accepts_url: impl Fn(&PartKind) -> bool,
) -> Result<(), ChatErrorResponse> {
    let mut wanted: Vec<&mut Source> = Vec::new();
    for turn in &mut request.turns {
        for part in &mut turn.parts {
            collect_urls(part, &accepts_url, &mut wanted);
        }
    }
    if wanted.is_empty() {
        return Ok(());
    }
    if wanted.len() > MAX_FILES {
        return Err(InvalidRequest::body(format!(
            "at most {MAX_FILES} files may be given by URL, got {}",
            wanted.len()
        ))
        .into());
    }
    let urls: Vec<String> = wanted
        .iter()
        .map(|source| url_of(source).to_owned())
        .collect();
    let fetching: Vec<_> = urls.iter().map(|url| fetch_file(egress, url)).collect();
    let mut fetching = stream::iter(fetching).buffered(CONCURRENCY);
    let mut fetched: Vec<Vec<u8>> = Vec::with_capacity(urls.len());
    let mut total = 0;
    while let Some(bytes) = fetching.try_next().await? {
        total += bytes.len() as u64;
        if total > MAX_TOTAL_BYTES {
            let message = format!(
                "the files behind the URLs are larger than {} MB together",
                MAX_TOTAL_BYTES / 1_048_576
            );
            return Err(InvalidRequest::body(message).into());
        }
        fetched.push(bytes);
    }
    drop(fetching);
    for ((source, url), bytes) in wanted.into_iter().zip(&urls).zip(fetched) {
        let Some(media_type) = media::sniff_media_type(&bytes) else {
            let message = format!(
                "{} is not an image, audio or document of a known type",
                describe_url(url)
            );
            return Err(InvalidRequest::body(message).into());
        };
        *source = Source::Base64 {
            media_type: media_type.to_owned(),
            data: base64::engine::general_purpose::STANDARD.encode(bytes),
        };
    }
    Ok(())
}

/// Whether a part is a file at a web address. Other addresses belong to the provider.
pub fn is_web(part: &PartKind) -> bool {
    let (PartKind::Image { source, .. }
    | PartKind::Audio { source }
    | PartKind::Video { source }
    | PartKind::File { source, .. }) = part
    else {
        return false;
    };
    matches!(source, Source::Url { url, .. } if url.starts_with("http://") || url.starts_with("https://"))
}

/// Collects the sources in `part` that must be fetched.
fn collect_urls<'a>(
    part: &'a mut Part,
    accepts_url: &impl Fn(&PartKind) -> bool,
    wanted: &mut Vec<&'a mut Source>,
) {
    let is_accepted = accepts_url(&part.kind);
    match &mut part.kind {
        PartKind::Image { source, .. }
        | PartKind::Audio { source }
        | PartKind::Video { source }
        | PartKind::File { source, .. }
            if matches!(source, Source::Url { .. }) && !is_accepted =>
        {
            wanted.push(source);
        }
        PartKind::ToolResult { content, .. } => {
            for part in content {
                collect_urls(part, accepts_url, wanted);
            }
        }
        _ => {}
    }
}

fn url_of(source: &Source) -> &str {
    match source {
        Source::Url { url, .. } => url,
        _ => "",
    }
}

async fn fetch_file(egress: &egress::Client, url: &str) -> Result<Vec<u8>, ChatErrorResponse> {
    let limits = FetchLimits {
        max_bytes: MAX_FILE_BYTES,
        total_time: FETCH_TIMEOUT,
        max_redirects: MAX_REDIRECTS,
    };
    let mut sink = MemorySink(Vec::new());
    match egress.fetch_guarded(url, &limits, &mut sink).await {
        Ok(_) => Ok(sink.0),
        Err(e) => Err(InvalidRequest::body(format!(
            "{} could not be fetched: {e}",
            describe_url(url)
        ))
        .into()),
    }
}

/// A URL as error messages show it, cut to 200 characters.
fn describe_url(url: &str) -> String {
    let mut text: String = url.chars().filter(|c| !c.is_control()).take(200).collect();
    if text.len() < url.len() {
        text.push('…');
    }
    format!("the file at {text}")
}

/// Collects a fetched file in memory.
struct MemorySink(Vec<u8>);

impl AsyncWrite for MemorySink {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
