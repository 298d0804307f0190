//! Fetches what a client named by URL and an upstream takes only as bytes, through the egress guard.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use base64::Engine as _;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use tokio::io::AsyncWrite;
use tollgate_chat::hub::{Kind, ModelTraits, Part, Request, Source};
use tollgate_chat::{Bad, Format, media};
use tollgate_upstream::egress::FetchLimits;

use super::refused::Refused;
use crate::app::App;

/// One file (SPEC.md › Limits, responses format): 20 MB.
const ONE: u64 = 20 * 1_048_576;
/// All of a request together.
const ALL: u64 = 64 * 1_048_576;
const TIME: Duration = Duration::from_secs(30);
const REDIRECTS: u32 = 3;
/// Fetched side by side.
const AT_ONCE: usize = 4;
/// Files of one request.
const MOST: usize = 100;

/// Replaces the URLs that an upstream of `format` does not take by what is behind them.
///
/// # Errors
/// 400 that names the URL's host and why it could not be fetched.
pub async fn fetch(
    app: &App,
    request: &mut Request,
    format: &dyn Format,
    traits: &ModelTraits,
) -> Result<(), Refused> {
    let mut wanted: Vec<&mut Source> = Vec::new();
    for turn in &mut request.turns {
        for part in &mut turn.parts {
            want(part, format, traits, &mut wanted);
        }
    }
    if wanted.is_empty() {
        return Ok(());
    }
    if wanted.len() > MOST {
        return Err(Bad::body(format!(
            "at most {MOST} files may be given by URL, got {}",
            wanted.len()
        ))
        .into());
    }
    let urls: Vec<String> = wanted
        .iter()
        .map(|source| url_of(source).to_owned())
        .collect();
    let fetching: Vec<_> = urls.iter().map(|url| get(app, url)).collect();
    let fetched: Vec<Vec<u8>> = stream::iter(fetching)
        .buffered(AT_ONCE)
        .try_collect()
        .await?;
    if fetched.iter().map(|bytes| bytes.len() as u64).sum::<u64>() > ALL {
        let message = format!(
            "the files behind the URLs are larger than {} MB together",
            ALL / 1_048_576
        );
        return Err(Bad::body(message).into());
    }
    for ((source, url), bytes) in wanted.into_iter().zip(&urls).zip(fetched) {
        let Some(media_type) = media::sniff(&bytes) else {
            let message = format!(
                "{} is no picture, sound or document of a known kind",
                shown(url)
            );
            return Err(Bad::body(message).into());
        };
        *source = Source::Base64 {
            media_type: media_type.to_owned(),
            data: base64::engine::general_purpose::STANDARD.encode(bytes),
        };
    }
    Ok(())
}

fn want<'a>(
    part: &'a mut Part,
    format: &dyn Format,
    traits: &ModelTraits,
    wanted: &mut Vec<&'a mut Source>,
) {
    let takes = format.takes_url(&part.kind, traits);
    match &mut part.kind {
        Kind::Image { source, .. }
        | Kind::Audio { source }
        | Kind::Video { source }
        | Kind::File { source, .. } => {
            let is_web = matches!(source, Source::Url { url, .. } if url.starts_with("http://") || url.starts_with("https://"));
            if is_web && !takes {
                wanted.push(source);
            }
        }
        Kind::ToolResult { content, .. } => {
            for part in content {
                want(part, format, traits, wanted);
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

async fn get(app: &App, url: &str) -> Result<Vec<u8>, Refused> {
    let limits = FetchLimits {
        max_bytes: ONE,
        total_time: TIME,
        max_redirects: REDIRECTS,
    };
    let mut sink = Memory(Vec::new());
    match app.egress.fetch_guarded(url, &limits, &mut sink).await {
        Ok(_) => Ok(sink.0),
        Err(e) => Err(Bad::body(format!("{} could not be fetched: {e}", shown(url))).into()),
    }
}

/// As much of a URL as an error message shows.
fn shown(url: &str) -> String {
    let mut text: String = url.chars().filter(|c| !c.is_control()).take(200).collect();
    if text.len() < url.len() {
        text.push('…');
    }
    format!("the file at {text}")
}

struct Memory(Vec<u8>);

impl AsyncWrite for Memory {
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
