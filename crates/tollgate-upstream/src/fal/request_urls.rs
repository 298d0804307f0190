//! The URLs of status, response and cancellation of a request in fal's queue, as fal returned them for the submission.

use url::Url;

/// The URLs of one request, or their paths relative to the channel's base URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestUrls {
    pub(super) status: String,
    pub(super) response: String,
    pub(super) cancel: String,
}

impl RequestUrls {
    fn map(self, change: impl Fn(String) -> String) -> Self {
        Self {
            status: change(self.status),
            response: change(self.response),
            cancel: change(self.cancel),
        }
    }

    /// The URLs as paths relative to `base`. The key is sent only to the configured base, whatever origin the response names; a base with a path (a
    /// proxy) keeps its path.
    pub(super) fn relative_to(self, base: &str) -> Self {
        let base = Url::parse(base).ok();
        self.map(|text| {
            let Ok(url) = Url::parse(&text) else {
                return text;
            };
            let mut path = url.path().to_owned();
            if let Some(query) = url.query() {
                path = format!("{path}?{query}");
            }
            let base = base.as_ref().filter(|base| base.origin() == url.origin());
            let prefix = base.map_or("", |base| base.path().trim_end_matches('/'));
            let rest = path
                .strip_prefix(prefix)
                .filter(|rest| rest.starts_with('/'));
            rest.unwrap_or(&path).to_owned()
        })
    }

    /// The absolute URLs on `base`.
    pub(super) fn absolute(self, base: &str) -> Self {
        self.map(|path| [base, &path].concat())
    }

    /// The provider job id: only the response's path if the other paths are derived from it in the usual way.
    pub(super) fn to_job_id(&self) -> String {
        if *self == Self::from_response_path(&self.response) {
            return self.response.clone();
        }
        [&*self.status, &self.response, &self.cancel].join(" ")
    }

    /// The paths in a provider job id.
    pub(super) fn from_job_id(provider_job_id: &str) -> Self {
        let mut paths = provider_job_id.split(' ').map(str::to_owned);
        match (paths.next(), paths.next(), paths.next()) {
            (Some(status), Some(response), Some(cancel)) => Self {
                status,
                response,
                cancel,
            },
            _ => Self::from_response_path(provider_job_id),
        }
    }

    fn from_response_path(response: &str) -> Self {
        Self {
            status: format!("{response}/status"),
            response: response.to_owned(),
            cancel: format!("{response}/cancel"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_tables::rows;

    fn urls(origin: &str) -> RequestUrls {
        RequestUrls::from_response_path(&format!("{origin}/fal-ai/x/requests/1"))
    }

    #[test]
    fn requests_stay_on_the_channels_base_url() {
        for [origin, base, expected] in rows::<[String; 3]>("fal_request_urls") {
            let paths = urls(&origin).relative_to(&base);
            assert_eq!(paths.response, expected, "{origin} {base}");
            let absolute = paths.absolute(&base);
            assert_eq!(absolute.status, format!("{base}{expected}/status"));
            assert_eq!(absolute.cancel, format!("{base}{expected}/cancel"));
        }
    }

    #[test]
    fn a_job_id_is_parsed_as_it_was_written() {
        let usual = urls("");
        assert_eq!(usual.to_job_id(), "/fal-ai/x/requests/1");
        let other = RequestUrls {
            status: "/a?b=1".to_owned(),
            response: "/c".to_owned(),
            cancel: "/d".to_owned(),
        };
        for urls in [usual, other] {
            assert_eq!(RequestUrls::from_job_id(&urls.to_job_id()), urls);
        }
    }
}
