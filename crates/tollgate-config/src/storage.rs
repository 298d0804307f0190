//! Where files are stored: in a folder, or in a bucket of an S3-compatible server.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use percent_encoding::percent_decode_str;
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize, Serializer};
use url::Url;

use super::fields::deserialize_optional_integer;

/// Where files are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum StorageLocation {
    /// A folder; `None` means one in the data directory.
    Folder(Option<PathBuf>),
    /// A bucket.
    S3(S3Location),
}

impl Default for StorageLocation {
    fn default() -> Self {
        Self::Folder(None)
    }
}

/// The table `[storage]`.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct StorageSettings {
    #[serde(deserialize_with = "deserialize_storage_url")]
    pub(super) url: StorageLocation,
    #[serde(deserialize_with = "deserialize_optional_integer::<_, _, 0, 1_000_000_000>")]
    pub(super) reserve_mb: Option<u64>,
    /// The server of S3, if the URL has none.
    #[serde(deserialize_with = "deserialize_endpoint")]
    endpoint: Option<Url>,
    /// The region of S3, if the URL has none.
    region: Option<String>,
    pub(super) serve: ServeMode,
}

impl StorageSettings {
    /// The location, completed with the settings beside the URL.
    pub(super) fn location(self) -> StorageLocation {
        match self.url {
            StorageLocation::S3(mut location) => {
                location.endpoint = location.endpoint.or(self.endpoint);
                location.region = location.region.or(self.region);
                StorageLocation::S3(location)
            }
            folder => folder,
        }
    }
}

/// A bucket of an S3-compatible server, or the part of one with a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3Location {
    /// The bucket's name.
    pub bucket: String,
    /// The beginning of every key: empty, or with a `/` at its end.
    pub prefix: String,
    /// The URL of the server; `None` means the one in the environment, or Amazon's for the region.
    pub endpoint: Option<Url>,
    /// The region; `None` means the one in the environment, or `us-east-1`.
    pub region: Option<String>,
    /// Whether URLs have the bucket in their path and not in their host; `None` means that they have it there if there is an endpoint.
    pub path_style: Option<bool>,
}

/// How clients download public files that are in a bucket.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ServeMode {
    /// The gateway sends the file.
    #[default]
    Proxy,
    /// The gateway redirects to a link of the bucket that is valid for minutes.
    Redirect,
}

impl Serialize for ServeMode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match self {
            Self::Proxy => "proxy",
            Self::Redirect => "redirect",
        })
    }
}

impl<'de> Deserialize<'de> for ServeMode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match text.as_str() {
            "proxy" => Ok(Self::Proxy),
            "redirect" => Ok(Self::Redirect),
            _ => Err(D::Error::custom(format!(
                "is {text:?}, but it takes proxy or redirect"
            ))),
        }
    }
}

/// Parses `file:`, `file:///absolute/dir` or `s3://BUCKET/PREFIX`.
pub(super) fn deserialize_storage_url<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<StorageLocation, D::Error> {
    let text = String::deserialize(deserializer)?;
    if text.starts_with("s3:") {
        let location = parse_s3(&text).map_err(D::Error::custom)?;
        return Ok(StorageLocation::S3(location));
    }
    let invalid = || {
        D::Error::custom(format!(
            "is {text:?}, but it takes file:, file:///absolute/dir or s3://BUCKET/PREFIX"
        ))
    };
    let path = text.strip_prefix("file:").ok_or_else(invalid)?;
    let path = path.strip_prefix("//").unwrap_or(path);
    if path.is_empty() {
        return Ok(StorageLocation::Folder(None));
    }
    let path = percent_decode_str(path).decode_utf8();
    let path = path.map_err(|_| invalid())?;
    let path = Path::new(path.as_ref());
    match path.is_absolute() {
        true => Ok(StorageLocation::Folder(Some(path.to_owned()))),
        false => Err(invalid()),
    }
}

/// Parses the URL of the bucket's server.
pub(super) fn deserialize_endpoint<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Url>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let endpoint = parse_endpoint(&text).ok_or_else(|| {
        D::Error::custom(match text.contains('@') {
            // It may contain a password.
            true => format!("takes {ENDPOINT}"),
            false => format!("is {text:?}, but it takes {ENDPOINT}"),
        })
    });
    endpoint.map(Some)
}

/// Parses the URL of a bucket. The error is the end of a sentence. It does not repeat the text, because some people write a password into such a URL.
fn parse_s3(text: &str) -> Result<S3Location, String> {
    const FORM: &str = "takes s3://BUCKET/PREFIX?endpoint=URL&region=NAME&path_style=true";
    let url = Url::parse(text).map_err(|_| FORM.to_owned())?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(
            "has a user name: keys come from AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
                .to_owned(),
        );
    }
    let bucket = url.host_str().unwrap_or_default();
    let is_bucket = |c: u8| c.is_ascii_alphanumeric() || b"-._".contains(&c);
    if !(3..=63).contains(&bucket.len()) || !bucket.bytes().all(is_bucket) || url.port().is_some() {
        return Err(format!(
            "names the bucket {bucket:?}, but a bucket's name has 3 to 63 letters, digits, hyphens, underscores and dots"
        ));
    }
    let prefix = url.path().trim_matches('/');
    let is_key = |c: u8| c.is_ascii_alphanumeric() || b"-._/".contains(&c);
    if !prefix.bytes().all(is_key) || prefix.len() > 512 {
        return Err(format!(
            "has the prefix {prefix:?}, but a prefix has at most 512 letters, digits, hyphens, dots, underscores and slashes"
        ));
    }
    let mut location = S3Location {
        bucket: bucket.to_owned(),
        prefix: match prefix {
            "" => String::new(),
            prefix => format!("{prefix}/"),
        },
        endpoint: None,
        region: None,
        path_style: None,
    };
    for (name, value) in url.query_pairs() {
        set_parameter(&mut location, &name, value)?;
    }
    Ok(location)
}

fn set_parameter(location: &mut S3Location, name: &str, value: Cow<'_, str>) -> Result<(), String> {
    match name {
        "endpoint" => {
            let endpoint = parse_endpoint(&value).ok_or_else(|| match value.contains('@') {
                true => format!("has an endpoint that is not {ENDPOINT}"),
                false => format!("has endpoint={value}, but it takes {ENDPOINT}"),
            })?;
            location.endpoint = Some(endpoint);
        }
        "region" if value.is_empty() => return Err("has an empty region".to_owned()),
        "region" => location.region = Some(value.into_owned()),
        "path_style" => {
            let path_style = value.parse();
            let path_style = path_style
                .map_err(|_| format!("has path_style={value}, but it takes true or false"))?;
            location.path_style = Some(path_style);
        }
        other => {
            return Err(format!(
                "has the parameter {other:?}, but it takes endpoint, region and path_style"
            ));
        }
    }
    Ok(())
}

/// What an endpoint can be.
const ENDPOINT: &str = "an http:// or https:// URL without user name, path and query";

fn parse_endpoint(text: &str) -> Option<Url> {
    let url = Url::parse(text).ok()?;
    let is_endpoint = matches!(url.scheme(), "http" | "https")
        && url.username().is_empty()
        && url.password().is_none()
        && url.path() == "/"
        && url.query().is_none()
        && url.fragment().is_none();
    is_endpoint.then_some(url)
}

impl std::fmt::Display for S3Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "s3://{}/{}", self.bucket, self.prefix)
    }
}
