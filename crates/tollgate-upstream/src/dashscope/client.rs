//! The HTTP client of one DashScope channel.

use std::sync::Arc;

use http::{HeaderName, HeaderValue};
use tollgate_core::Secret;

use super::options;
use crate::adapter::{HttpRequest, HttpResponse, ProviderClient, percent_encode};
use crate::channel::Channel;
use crate::egress;
use crate::error::ProviderError;

/// The base URL of the Beijing site. A key is valid at one site only.
pub(crate) const BASE_URL: &str = "https://dashscope.aliyuncs.com/api/v1";
const WORKSPACE: HeaderName = HeaderName::from_static("x-dashscope-workspace");

pub(super) struct DashScope {
    pub(super) client: ProviderClient,
    /// The base URL, without a slash at its end.
    pub(super) base: String,
    workspace: Option<HeaderValue>,
}

impl DashScope {
    pub(super) fn new(channel: &Arc<Channel>, egress: &egress::Client) -> Self {
        let base = channel.base_url.as_deref().unwrap_or(BASE_URL);
        Self {
            client: ProviderClient::new(channel, egress),
            base: base.trim_end_matches('/').to_owned(),
            workspace: options::workspace(channel).unwrap_or_default(),
        }
    }

    /// Sends a request with the key and the workspace.
    pub(super) async fn send(
        &self,
        request: HttpRequest,
        key: Option<&Secret>,
    ) -> Result<HttpResponse, ProviderError> {
        let request = request.with_authorization("Bearer ", key)?;
        let request = match &self.workspace {
            Some(id) => request.header(WORKSPACE, id.clone()),
            None => request,
        };
        self.client.send(request).await
    }

    pub(super) fn task_url(&self, provider_job_id: &str) -> String {
        format!("{}/tasks/{}", self.base, percent_encode(provider_job_id))
    }
}
