//! Volcengine Ark, and BytePlus ModelArk, its international twin: Seedream images, Seedance videos.
//!
//! Sources: <https://www.volcengine.com/docs/82379> 1541523 (images), 1520757 and 1521309 (videos), 1299023 (errors).

mod errors;
mod field_support;
mod images;
mod models;
mod prompt;
mod videos;

use std::sync::Arc;

use http::{HeaderName, HeaderValue};

use self::models::Site;
use crate::adapter::ProviderClient;
use crate::channel::Channel;
use crate::egress;
use crate::error::{ProviderError, UpstreamErrorKind};
use crate::provider::{Attempt, Provider, Settings};

pub(crate) use self::field_support::FIELD_SUPPORT;

const BASE_URL: &str = "https://ark.cn-beijing.volces.com/api/v3";
/// Documented for finding a request again.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-client-request-id");
/// Images come as links: an answer is small, but for a server that sends them inline all the same.
const ANSWER_MAX: usize = 64 * 1024 * 1024;

/// Opens the provider for one channel.
pub(crate) fn open(channel: &Arc<Channel>, _: &Settings, egress: &egress::Client) -> Provider {
    let base = channel.base_url.as_deref().unwrap_or(BASE_URL);
    let ark = Arc::new(Ark {
        client: ProviderClient::new(channel, egress),
        base: base.trim_end_matches('/').to_owned(),
        site: Site::at(base),
    });
    Provider {
        image: Some(ark.clone()),
        video: Some(ark.clone()),
        queue: Some(ark),
        ..Provider::default()
    }
}

struct Ark {
    client: ProviderClient,
    /// Without a slash at its end.
    base: String,
    site: Site,
}

impl Ark {
    fn uri(&self, path: &str) -> String {
        [&self.base, path].concat()
    }
}

fn request_id(attempt: &Attempt<'_>) -> HeaderValue {
    // Its characters are those of a header.
    HeaderValue::from_str(attempt.external_id).unwrap_or_else(|_| HeaderValue::from_static("-"))
}

fn not_served(family: &str, served: &str) -> ProviderError {
    ProviderError::new(
        UpstreamErrorKind::UnsupportedByChannel,
        format!("a channel of kind ark serves {served}, not {family}"),
    )
}
