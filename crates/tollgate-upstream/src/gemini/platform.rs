//! Google's two platforms: the Developer API, and the Agent Platform (Vertex AI until 2026), which serves the same models under other paths and with
//! other credentials.

use serde_json::Value;
use url::Url;

use super::service_account;
use crate::channel::{Channel, known_options};

const DEVELOPER: &str = "https://generativelanguage.googleapis.com";
/// The API version that supports tools, system instructions and thinking.
const VERSION: &str = "v1beta";
/// The part of every path of the Agent Platform before its models.
const PUBLISHER: &str = "/publishers/google";
const LOCATION: &str = "us-central1";

/// One of Google's two surfaces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Surface {
    /// The Developer API, with API keys of AI Studio.
    Developer,
    /// The Agent Platform, with OAuth tokens.
    AgentPlatform,
}

/// A surface and its base URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) surface: Surface,
    /// The part of a URL before `/models`, without a slash at its end.
    pub(super) base: String,
}

/// The options of a channel.
const OPTIONS: &[&str] = &["platform", "project", "location", "version"];

impl Endpoint {
    /// The endpoint of `channel`.
    ///
    /// # Errors
    /// A sentence that names the invalid option.
    pub(super) fn for_channel(channel: &Channel) -> Result<Self, String> {
        known_options(channel, OPTIONS, &[])?;
        let base = channel.base_url.as_deref().map(|b| b.trim_end_matches('/'));
        let names_publisher = base.is_some_and(|base| base.contains(PUBLISHER));
        let surface = match text(channel, "platform")? {
            None if names_publisher => Surface::AgentPlatform,
            None | Some("developer") => Surface::Developer,
            Some("vertex") => Surface::AgentPlatform,
            Some(other) => {
                return Err(format!(
                    "option `platform` must be \"developer\" or \"vertex\", got {other:?}"
                ));
            }
        };
        let base = match surface {
            Surface::Developer => developer(channel, base)?,
            Surface::AgentPlatform => agent_platform(channel, base.filter(|_| names_publisher))?,
        };
        Ok(Self { surface, base })
    }
}

/// The base URL of a channel's models; `None` if an option is invalid.
pub(crate) fn base_url(channel: &Channel) -> Option<String> {
    Endpoint::for_channel(channel)
        .ok()
        .map(|endpoint| endpoint.base)
}

fn developer(channel: &Channel, base: Option<&str>) -> Result<String, String> {
    for name in ["project", "location"] {
        if text(channel, name)?.is_some() {
            return Err(format!("option `{name}` needs `platform = \"vertex\"`"));
        }
    }
    let version = text(channel, "version")?.unwrap_or(VERSION);
    Ok(format!("{}/{version}", base.unwrap_or(DEVELOPER)))
}

/// `base_url` is a base URL that contains version, project and location itself.
fn agent_platform(channel: &Channel, base_url: Option<&str>) -> Result<String, String> {
    if let Some(base_url) = base_url {
        for name in ["project", "location", "version"] {
            if text(channel, name)?.is_some() {
                return Err(format!(
                    "option `{name}` has no effect beside a base_url with {PUBLISHER}"
                ));
            }
        }
        return Ok(base_url.to_owned());
    }
    let version = text(channel, "version")?.unwrap_or("v1");
    let location = text(channel, "location")?.unwrap_or(LOCATION);
    let project = match text(channel, "project")? {
        Some(project) => project.to_owned(),
        None => service_account::project(channel)
            .ok_or("option `project` is missing: it is part of every path of the Agent Platform")?,
    };
    let host = match (channel.base_url.as_deref(), location) {
        (Some(base), _) => base.trim_end_matches('/').to_owned(),
        (None, "global") => "https://aiplatform.googleapis.com".to_owned(),
        (None, location) => format!("https://{location}-aiplatform.googleapis.com"),
    };
    let base = format!("{host}/{version}/projects/{project}/locations/{location}{PUBLISHER}");
    Url::parse(&base).map_err(|_| "project and location do not form a valid address".to_owned())?;
    Ok(base)
}

/// A text option: it becomes a part of a host or path, so only letters, digits and `-_.:` are allowed.
fn text<'a>(channel: &'a Channel, name: &str) -> Result<Option<&'a str>, String> {
    let Some(value) = channel.options.get(name) else {
        return Ok(None);
    };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:".contains(c);
    match value {
        Value::String(text) if !text.is_empty() && text.chars().all(is_plain) => Ok(Some(text)),
        _ => Err(format!(
            "option `{name}` must be letters, digits and `-_.:`, got {value}"
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;
    use crate::test_tables::rows;

    /// A row of `tests/tables/gemini_endpoints.jsonl`: base URL, options, surface, address.
    type Row = (Option<String>, Map<String, Value>, String, String);

    #[test]
    fn options_and_base_url_determine_the_endpoint() {
        for (base_url, options, surface, expected) in rows::<Row>("gemini_endpoints") {
            let channel = Channel {
                base_url,
                options,
                ..Channel::new("main", "gemini")
            };
            let endpoint = Endpoint::for_channel(&channel).unwrap();
            let found = (format!("{:?}", endpoint.surface), endpoint.base);
            assert_eq!(found, (surface, expected));
        }
    }
}
