//! The HTTP client of one xAI channel.

use std::sync::Arc;

use tollgate_media::image::ImageFormat;

use super::errors;
use crate::adapter::{HttpResponse, ProviderClient};
use crate::channel::Channel;
use crate::egress;
use crate::error::ProviderError;
use crate::provider::InputFile;
use crate::raster::{self, Upload};

pub(crate) const BASE_URL: &str = "https://api.x.ai/v1";
/// The prefix of the key in the `authorization` header.
pub(super) const BEARER: &str = "Bearer ";
/// The formats of input images that the server accepts.
const ACCEPTED_FORMATS: &[ImageFormat] = &[ImageFormat::Png, ImageFormat::Jpeg, ImageFormat::Webp];

pub(super) struct Client {
    pub(super) http: ProviderClient,
    /// The base URL with the version, without a slash at its end.
    pub(super) base: String,
    pub(super) channel: Arc<Channel>,
}

impl Client {
    pub(super) fn new(channel: &Arc<Channel>, egress: &egress::Client) -> Self {
        let base = channel.base_url.as_deref().unwrap_or(BASE_URL);
        Self {
            http: ProviderClient::new(channel, egress),
            base: base.trim_end_matches('/').to_owned(),
            channel: Arc::clone(channel),
        }
    }

    pub(super) fn url(&self, path: &str) -> String {
        [&self.base, path].concat()
    }

    /// The error of a response that is not the expected one.
    pub(super) fn response_error(&self, response: &HttpResponse) -> ProviderError {
        errors::response_error(&self.http, response)
    }
}

/// `files` in formats that the models accept.
pub(super) async fn readable(files: &[InputFile]) -> Result<Vec<Upload<'_>>, ProviderError> {
    let mut all = Vec::with_capacity(files.len());
    for file in files {
        all.push(raster::readable(file, ACCEPTED_FORMATS).await?);
    }
    Ok(all)
}
