//! Parses settings that are addresses: where to listen, the public URL, the database, networks.

use std::net::IpAddr;
use std::path::PathBuf;

use ipnet::IpNet;
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize, Serializer};
use tollgate_core::Secret;
use url::Url;

use crate::redis_url::check_url;

/// The files that TLS of a listener needs, in PEM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate and its intermediates.
    pub cert: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// The authorities (CAs) that must have signed a client's certificate; `None` if clients need no certificate.
    pub client_ca: Option<PathBuf>,
    /// The table of the configuration that names `cert` and `key`: `tls` or `admin.tls`.
    pub table: &'static str,
}

/// Parses `HOST:PORT`.
pub(super) fn deserialize_listen_address<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    let is_address = text.rsplit_once(':').is_some_and(|(host, port)| {
        let is_host = !host.contains(':') || (host.starts_with('[') && host.ends_with(']'));
        !host.is_empty() && is_host && port.parse::<u16>().is_ok()
    });
    match is_address {
        true => Ok(text),
        false => Err(D::Error::custom(format!(
            "is {text:?}, but it takes HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080"
        ))),
    }
}

/// Parses `HOST:PORT` of an optional listener.
pub(super) fn deserialize_optional_listen_address<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    deserialize_listen_address(deserializer).map(Some)
}

/// Parses the prefix of links; removes a `/` at its end.
pub(super) fn deserialize_public_url<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    match is_base_url(&text) {
        true => Ok(Some(text.trim_end_matches('/').to_owned())),
        // It may contain a password.
        false if text.contains('@') => Err(D::Error::custom(format!("takes {BASE_URL}"))),
        false => Err(D::Error::custom(format!(
            "is {text:?}, but it takes {BASE_URL}"
        ))),
    }
}

/// Parses the base URL of a channel. The error does not repeat it, because it can contain a secret.
pub(super) fn deserialize_base_url<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<String>, D::Error> {
    let text = String::deserialize(deserializer)?;
    match is_base_url(&text) {
        true => Ok(Some(text.trim_end_matches('/').to_owned())),
        false => Err(D::Error::custom(format!("takes {BASE_URL}"))),
    }
}

/// What a base URL can be.
const BASE_URL: &str = "an http:// or https:// URL without user name, query and fragment";

/// Whether a path can be appended to the URL `text`.
fn is_base_url(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.host().is_some()
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
    })
}

/// The settings of the database and of a replica of it.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct DatabaseSettings {
    #[serde(deserialize_with = "deserialize_database_url")]
    pub(super) url: Option<Secret>,
    #[serde(deserialize_with = "deserialize_replica_url")]
    pub(super) replica_url: Option<Secret>,
}

/// Parses the database's settings. Only PostgreSQL can have a replica.
pub(super) fn deserialize_database_settings<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<DatabaseSettings, D::Error> {
    let settings = DatabaseSettings::deserialize(deserializer)?;
    if settings.replica_url.is_some() && settings.url.is_none() {
        return Err(D::Error::custom(
            "has database.replica_url, but needs database.url of a PostgreSQL too",
        ));
    }
    Ok(settings)
}

/// Parses `postgres://…`, the URL of a replica.
fn deserialize_replica_url<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Secret>, D::Error> {
    let url = String::deserialize(deserializer)?;
    match url.starts_with("postgres://") || url.starts_with("postgresql://") {
        true => Ok(Some(Secret::new(url))),
        false => Err(D::Error::custom(
            "takes postgres://USER:PASSWORD@HOST/DATABASE",
        )),
    }
}

/// Parses `sqlite:` (`None`) or `postgres://…`. No error repeats the text, because it can contain a password.
fn deserialize_database_url<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Secret>, D::Error> {
    let text = String::deserialize(deserializer)?;
    match text.as_str() {
        "sqlite:" => Ok(None),
        url if url.starts_with("postgres://") || url.starts_with("postgresql://") => {
            Ok(Some(Secret::new(text)))
        }
        url if url.starts_with("sqlite:") => Err(D::Error::custom(
            "names a file, but SQLite's is in the data directory: set data_dir",
        )),
        _ => Err(D::Error::custom(
            "takes sqlite: or postgres://USER:PASSWORD@HOST/DATABASE",
        )),
    }
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct TlsSettings {
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
}

/// Parses the paths of certificate and key: both files must be set, or neither.
pub(super) fn deserialize_tls_files<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<TlsFiles>, D::Error> {
    let TlsSettings { cert, key } = TlsSettings::deserialize(deserializer)?;
    match (cert, key) {
        (Some(cert), Some(key)) => Ok(Some(TlsFiles {
            cert,
            key,
            client_ca: None,
            table: "tls",
        })),
        (None, None) => Ok(None),
        (Some(_), None) => Err(D::Error::custom("has tls.cert, but needs tls.key too")),
        (None, Some(_)) => Err(D::Error::custom("has tls.key, but needs tls.cert too")),
    }
}

/// Parses the URL of Redis. No error repeats it, because it can contain a password.
pub(super) fn deserialize_redis_url<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Secret>, D::Error> {
    let text = String::deserialize(deserializer)?;
    check_url(&text).map_err(D::Error::custom)?;
    Ok(Some(Secret::new(text)))
}

/// A network in CIDR notation; a single address is a network of one address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Network(pub(super) IpNet);

impl Serialize for Network {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Network {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let network = text.parse::<IpNet>().ok();
        let network = network.or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
        network.map(Self).ok_or_else(|| {
            D::Error::custom(format!(
                "is {text:?}, but it takes a network such as 10.0.0.0/8 or fd00::/8"
            ))
        })
    }
}
