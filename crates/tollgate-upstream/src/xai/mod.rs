//! xAI: Grok Imagine images and videos, and speech. <https://docs.x.ai/docs/api-reference>

mod errors;
mod field_support;
mod images;
mod models;
mod options;
mod speech;
mod videos;

use std::sync::Arc;

use tollgate_media::image::ImageFormat;

use crate::adapter::{HttpResponse, ProviderClient};
use crate::channel::Channel;
use crate::egress;
use crate::error::ProviderError;
use crate::provider::{InputFile, Provider, Settings};
use crate::raster::{self, Upload};

pub(crate) use field_support::FIELD_SUPPORT;
pub(crate) use options::check;

const BASE_URL: &str = "https://api.x.ai/v1";
/// How the key stands in its header.
const BEARER: &str = "Bearer ";
/// What images may be that are sent along.
const READS: &[ImageFormat] = &[ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Webp];

/// Opens the provider for one channel.
pub(crate) fn open(channel: &Arc<Channel>, _: &Settings, egress: &egress::Client) -> Provider {
    let base = channel.base_url.as_deref().unwrap_or(BASE_URL);
    let server = Arc::new(Server {
        client: ProviderClient::new(channel, egress),
        base: base.trim_end_matches('/').to_owned(),
        channel: Arc::clone(channel),
    });
    let videos = Arc::new(videos::Videos(Arc::clone(&server)));
    Provider {
        image: Some(Arc::new(images::Images(Arc::clone(&server)))),
        video: Some(videos.clone()),
        queue: Some(videos),
        speech: Some(Arc::new(speech::Speech(server))),
        ..Provider::default()
    }
}

/// The server of one channel.
struct Server {
    client: ProviderClient,
    /// With the version, without a slash at its end.
    base: String,
    channel: Arc<Channel>,
}

impl Server {
    fn url(&self, path: &str) -> String {
        [&self.base, path].concat()
    }

    /// What an answer means that is not the one asked for.
    fn response_error(&self, answer: &HttpResponse) -> ProviderError {
        errors::read(&self.client, answer)
    }
}

/// `files` in formats that the models read.
async fn readable(files: &[InputFile]) -> Result<Vec<Upload<'_>>, ProviderError> {
    let mut all = Vec::with_capacity(files.len());
    for file in files {
        all.push(raster::readable(file, READS).await?);
    }
    Ok(all)
}
