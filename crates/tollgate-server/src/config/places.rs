//! Where the gateway keeps things and how it is reached: addresses, folders, the database.

use std::path::{Path, PathBuf};

use ipnet::IpNet;
use percent_encoding::percent_decode_str;
use tollgate_core::Secret;

use super::ConfigError;
use super::channels::is_base;
use super::field::Field;

/// Which database, `database.url`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Database {
    /// A SQLite file.
    Sqlite(PathBuf),
    /// A `postgres://` URL, which holds a password.
    Postgres(Secret),
}

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
        let why = format!("is {text:?}, but it takes HOST:PORT, such as 127.0.0.1:8080 or [::1]:8080");
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

/// `sqlite:`, `sqlite:PATH` or `postgres://…`.
pub(super) fn database(field: &Field<'_>, data_dir: &Path) -> Result<Database, ConfigError> {
    let in_data_dir = || Database::Sqlite(data_dir.join("tollgate.db"));
    let Some(text) = field.text()? else {
        return Ok(in_data_dir());
    };
    if text.starts_with("postgres://") || text.starts_with("postgresql://") {
        return Ok(Database::Postgres(Secret::new(text)));
    }
    // The text may hold a password, whatever its scheme: no error repeats it.
    let path = text.strip_prefix("sqlite:").ok_or_else(|| {
        field.error("takes sqlite:, sqlite:/absolute/file or postgres://user:password@host/database")
    })?;
    match path.strip_prefix("//").unwrap_or(path) {
        "" => Ok(in_data_dir()),
        path => Ok(Database::Sqlite(PathBuf::from(path))),
    }
}

/// `file:` or `file:///absolute/dir`.
pub(super) fn storage(field: &Field<'_>, data_dir: &Path) -> Result<PathBuf, ConfigError> {
    let Some(text) = field.text()? else {
        return Ok(data_dir.join("files"));
    };
    if text.starts_with("s3:") {
        return Err(field.error("is an s3:// URL, but this version stores files in a folder only: file:///absolute/dir"));
    }
    let wrong = || field.error(format!("is {text:?}, but it takes file: or file:///absolute/dir"));
    let path = text.strip_prefix("file:").ok_or_else(wrong)?;
    let path = path.strip_prefix("//").unwrap_or(path);
    if path.is_empty() {
        return Ok(data_dir.join("files"));
    }
    let path = percent_decode_str(path).decode_utf8().map_err(|_| wrong())?;
    let path = Path::new(path.as_ref());
    if path.is_absolute() { Ok(path.to_owned()) } else { Err(wrong()) }
}

/// Networks in CIDR notation; a bare address is a network of one.
pub(super) fn networks(field: &Field<'_>) -> Result<Vec<IpNet>, ConfigError> {
    let items = field.items().into_iter();
    items
        .map(|item| {
            let text = item.required()?;
            let network = text.parse().or_else(|_| text.parse().map(IpNet::from));
            network.map_err(|_: std::net::AddrParseError| {
                item.error(format!("is {text:?}, but it takes a network such as 10.0.0.0/8 or fd00::/8"))
            })
        })
        .collect()
}
