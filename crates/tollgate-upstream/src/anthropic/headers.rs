//! Headers of Anthropic's API. <https://docs.anthropic.com/en/api/versioning>

use http::{HeaderName, HeaderValue};

pub(super) const KEY: HeaderName = HeaderName::from_static("x-api-key");
pub(super) const VERSION: HeaderName = HeaderName::from_static("anthropic-version");
pub(super) const BETA: HeaderName = HeaderName::from_static("anthropic-beta");
/// The API version that the gateway sends: of the versions in use, the one that accepts sampling parameters wherever the model does.
pub(super) const OUR_VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");
