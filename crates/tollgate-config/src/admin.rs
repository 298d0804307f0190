//! `[admin]`: the operator's key, and a separate listener for the admin API and the console.

use std::path::PathBuf;

use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use tollgate_core::Secret;

use super::deserializer::Error;
use super::document::{Node, Table, Value};
use super::{addresses, fields};
use crate::addresses::TlsFiles;

/// The listener of the admin API and the console.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdminListener {
    /// `HOST:PORT` to listen on.
    pub listen: String,
    /// Prefix of the links to the console, without a `/` at its end; `None` means the address listened on.
    pub public_url: Option<String>,
    /// Its certificate, and the authorities of client certificates that it accepts; `None` for plain HTTP.
    pub tls: Option<TlsFiles>,
}

impl AdminListener {
    /// The scheme of the listener's URLs: `http` or `https`.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}

/// `[admin]` as it is written in the configuration.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct AdminSettings {
    #[serde(deserialize_with = "fields::deserialize_secret")]
    pub(super) key: Option<Secret>,
    #[serde(deserialize_with = "addresses::deserialize_optional_listen_address")]
    listen: Option<String>,
    #[serde(deserialize_with = "addresses::deserialize_public_url")]
    public_url: Option<String>,
    #[serde(deserialize_with = "deserialize_admin_tls")]
    tls: AdminTls,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct AdminTls {
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
    client_ca: Option<PathBuf>,
}

/// Parses `[admin.tls]`: certificate and key must both be set, or neither.
fn deserialize_admin_tls<'de, D: Deserializer<'de>>(deserializer: D) -> Result<AdminTls, D::Error> {
    let tls = AdminTls::deserialize(deserializer)?;
    match (&tls.cert, &tls.key) {
        (Some(_), None) => Err(D::Error::custom("has cert, but needs key too")),
        (None, Some(_)) => Err(D::Error::custom("has key, but needs cert too")),
        _ => Ok(tls),
    }
}

impl AdminSettings {
    /// The listener; if it has no certificate itself, it uses that of the gateway's listener (`main`). `None` if no admin listener is configured.
    pub(super) fn listener(self, main: Option<&TlsFiles>) -> Option<AdminListener> {
        let AdminTls {
            cert,
            key,
            client_ca,
        } = self.tls;
        let own = cert.zip(key).map(|(cert, key)| TlsFiles {
            cert,
            key,
            client_ca: None,
            table: "admin.tls",
        });
        let files = own.or_else(|| main.cloned());
        Some(AdminListener {
            listen: self.listen?,
            public_url: self.public_url,
            tls: files.map(|files| TlsFiles { client_ca, ..files }),
        })
    }
}

/// Checks that settings of the admin listener are set only with that listener, and client certificates only with a certificate of the server.
pub(super) fn check_admin_listener(table: &Table) -> Result<(), Error> {
    let Some(admin) = member(table, "admin").and_then(members) else {
        return Ok(());
    };
    let has_listener = member(admin, "listen").is_some();
    for name in ["public_url", "tls"] {
        if let Some(node) = member(admin, name).filter(|_| !has_listener) {
            let message = "needs admin.listen, the address of the listener that it is for";
            return Err(Error::at(
                format!("admin.{name}"),
                node.origin.clone(),
                message,
            ));
        }
    }
    let has_cert = |tls: Option<&Node>| {
        let tls = tls.and_then(members);
        tls.is_some_and(|tls| member(tls, "cert").is_some())
    };
    let tls = member(admin, "tls");
    let client_ca = tls
        .and_then(members)
        .and_then(|tls| member(tls, "client_ca"));
    if let Some(client_ca) = client_ca
        && !has_cert(tls)
        && !has_cert(member(table, "tls"))
    {
        let message = "needs a certificate of the gateway: set tls.cert and tls.key, or admin.tls.cert and admin.tls.key";
        let path = "admin.tls.client_ca".to_owned();
        return Err(Error::at(path, client_ca.origin.clone(), message));
    }
    Ok(())
}

fn member<'a>(table: &'a Table, name: &str) -> Option<&'a Node> {
    let found = table.iter().find(|(known, _)| known == name);
    found.map(|(_, node)| node)
}

fn members(node: &Node) -> Option<&Table> {
    match &node.value {
        Value::Table(table) => Some(table),
        _ => None,
    }
}
