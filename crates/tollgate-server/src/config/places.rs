//! Where the gateway is, keeps things and may reach: addresses, folders, the database, networks.

use std::net::{AddrParseError, IpAddr};
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use percent_encoding::percent_decode_str;
use tollgate_core::Secret;

use super::ConfigError;
use super::channels::is_base;
use super::field::Field;

/// `HOST:PORT`.
pub(super) fn listen(field: &Field<'_>) -> Result<Option<String>, ConfigError> {
    let Some(text) = field.text()? else {
        return Ok(None);
    };
    let is_address = text.rsplit_once(':').is_some_and(|(host, port)| {
        let bare = !host.contains(':') || (host.starts_with('[') && host.ends_with(']'));
        !host.is_empty() && bare && port.parse::<u16>().is_ok()
    });
    if !is_address {
        let why =
            format!("is {text:?}, but it takes HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080");
        return Err(field.error(why));
    }
    Ok(Some(text))
}

/// The prefix of links, without a `/` at its end.
pub(super) fn public_url(field: &Field<'_>) -> Result<Option<String>, ConfigError> {
    let Some(text) = field.text()? else {
        return Ok(None);
    };
    if !is_base(&text) {
        let why = format!("is {text:?}, but it takes an http:// or https:// URL without query");
        return Err(field.error(why));
    }
    Ok(Some(text.trim_end_matches('/').to_owned()))
}

/// `sqlite:` (none) or `postgres://…`. The text may hold a password: no error repeats it.
pub(super) fn database_url(field: &Field<'_>) -> Result<Option<Secret>, ConfigError> {
    match field.text()? {
        None => Ok(None),
        Some(text) if text == "sqlite:" => Ok(None),
        Some(text) if text.starts_with("postgres://") || text.starts_with("postgresql://") => {
            Ok(Some(Secret::new(text)))
        }
        Some(text) if text.starts_with("sqlite:") => {
            Err(field.error("names a file, but SQLite's is in the data directory: set data_dir"))
        }
        Some(_) => Err(field.error("takes sqlite: or postgres://USER:PASSWORD@HOST/DATABASE")),
    }
}

/// `file:` (none) or `file:///absolute/dir`.
pub(super) fn storage(field: &Field<'_>) -> Result<Option<PathBuf>, ConfigError> {
    let Some(text) = field.text()? else {
        return Ok(None);
    };
    if text.starts_with("s3:") {
        let why =
            "is an s3:// URL, but this version stores files in a folder: use file:///absolute/dir";
        return Err(field.error(why));
    }
    let wrong = || {
        field.error(format!(
            "is {text:?}, but it takes file: or file:///absolute/dir"
        ))
    };
    let path = text.strip_prefix("file:").ok_or_else(wrong)?;
    let path = path.strip_prefix("//").unwrap_or(path);
    if path.is_empty() {
        return Ok(None);
    }
    let path = percent_decode_str(path)
        .decode_utf8()
        .map_err(|_| wrong())?;
    let path = Path::new(path.as_ref());
    if path.is_absolute() {
        Ok(Some(path.to_owned()))
    } else {
        Err(wrong())
    }
}

/// Networks in CIDR notation; a bare address is a network of one.
pub(super) fn networks(field: &Field<'_>) -> Result<Vec<IpNet>, ConfigError> {
    let items = field.items().into_iter();
    items
        .map(|item| {
            let text = item.required()?;
            let network = text
                .parse()
                .or_else(|_| text.parse::<IpAddr>().map(IpNet::from));
            network.map_err(|_: AddrParseError| {
                item.error(format!(
                    "is {text:?}, but it takes a network such as 10.0.0.0/8 or fd00::/8"
                ))
            })
        })
        .collect()
}
