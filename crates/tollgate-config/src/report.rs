//! The settings in effect, each with its origin. Secrets are not shown.

use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use tollgate_core::Secret;
use url::Url;
use url::form_urlencoded::byte_serialize;

use super::config::{Config, Overrides, PREFIX};
use super::document::{self, Variables};
use super::error::ConfigError;
use super::oidc::Oidc;
use super::origins::MAPS;
use super::storage::{S3Location, StorageLocation};
use super::values::Sandbox;

/// The text that is shown instead of a secret.
const HIDDEN: &str = "(secret)";

/// A setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Its path, such as `limits.rpm`.
    pub key: String,
    /// Null if it is not set and has no default.
    pub value: Json,
    /// `default`, `file`, `env` or `flag`.
    pub source: &'static str,
    /// The text `env:NAME` that was written as the value. `None` if the value itself was written.
    pub reference: Option<String>,
    /// Whether the value is a secret that is not shown.
    pub is_hidden: bool,
}

/// The settings of the sandbox, below the name of their table.
#[derive(Serialize)]
struct Delays {
    sandbox: Sandbox,
}

/// Whether the setting `field` is `path` or a part of it.
fn is_within(field: &str, path: &str) -> bool {
    let rest = field.strip_prefix(path);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// The text that is shown for a secret; `None` if it is not set.
fn hidden(secret: &Option<Secret>) -> Option<&'static str> {
    secret.as_ref().map(|_| HIDDEN)
}

impl Config {
    /// All settings except channels, prices and models, with their paths.
    pub fn settings(&self) -> Vec<Setting> {
        let networks = self.allow_private_urls.iter().map(ToString::to_string);
        let storage = match &self.storage {
            StorageLocation::Folder(folder) => folder
                .as_ref()
                .map(|folder| format!("file://{}", folder.display())),
            StorageLocation::S3(location) => Some(self.storage_url(location)),
        };
        let s3 = self.storage_s3();
        let tls = self.tls.as_ref();
        let mut limits = json!(self.limits);
        limits["redis_url"] = json!(hidden(&self.limits.redis_url));
        let all = json!({
            "admin": self.admin_settings(),
            "chat": self.chat,
            "currency": self.currency.to_string(),
            "data_dir": self.data_dir,
            "database": { "url": hidden(&self.database_url), "replica_url": hidden(&self.replica_url) },
            "demo": self.demo,
            "drain_s": self.drain_s,
            "expiry": self.expiry,
            "fairness": self.fairness,
            "leases": self.leases,
            "limits": limits,
            "listen": self.listen,
            "log": self.log,
            "media": { "allow_private_urls": networks.collect::<Vec<_>>() },
            "metrics": { "listen": self.metrics_listen },
            "oidc": self.oidc_settings(),
            "public_url": self.public_url,
            "safety": { "families": self.safety.families, "patterns": self.safety.patterns() },
            "secrets": { "key": hidden(&self.secrets_key) },
            "storage": {
                "url": storage,
                "endpoint": s3.and_then(|s3| s3.endpoint.as_ref()).map(Url::as_str),
                "region": s3.and_then(|s3| s3.region.as_ref()),
                "serve": self.storage_serve,
                "reserve_mb": self.storage_reserve_mb,
            },
            "time_limits": self.time_limits,
            "tls": { "cert": tls.map(|tls| &tls.cert), "key": tls.map(|tls| &tls.key) },
            "traces": {
                "endpoint": self.traces.endpoint,
                "headers": (!self.traces.headers.is_empty()).then_some(HIDDEN),
                "sample_ratio": self.traces.sample_ratio,
                "metrics_s": self.traces.metrics_interval.as_secs(),
                "service_name": self.traces.service_name,
            },
            "workers": self.workers,
        });
        let mut settings = Vec::new();
        let delays = json!(Delays {
            sandbox: self.sandbox,
        });
        for part in [all, delays] {
            if let Json::Object(members) = part {
                self.flatten("", members, &mut settings);
            }
        }
        settings
    }

    /// The URL of a bucket, with the parameters that are not settings of their own.
    fn storage_url(&self, location: &S3Location) -> String {
        let endpoint = location.endpoint.as_ref().map(Url::to_string);
        let path_style = location.path_style.map(|path_style| path_style.to_string());
        let mut url = location.to_string();
        let mut separator = '?';
        for (name, value) in [
            ("endpoint", endpoint),
            ("region", location.region.clone()),
            ("path_style", path_style),
        ] {
            let Some(value) = value else { continue };
            if !self.origins.contains_key(&format!("storage.{name}")) {
                let value: String = byte_serialize(value.as_bytes()).collect();
                url.push_str(&format!("{separator}{name}={value}"));
                separator = '&';
            }
        }
        url
    }

    /// The members of `[admin]`: those of the listener are null if it is not configured.
    fn admin_settings(&self) -> Json {
        let listener = self.admin_listener.as_ref();
        let tls = listener.and_then(|listener| listener.tls.as_ref());
        json!({
            "key": hidden(&self.admin_key),
            "listen": listener.map(|listener| &listener.listen),
            "public_url": listener.map(|listener| &listener.public_url),
            "tls": {
                "cert": tls.map(|tls| &tls.cert),
                "key": tls.map(|tls| &tls.key),
                "client_ca": tls.map(|tls| &tls.client_ca),
            },
        })
    }

    /// The members of `[oidc]`; without such a table they are null or have their defaults.
    fn oidc_settings(&self) -> Json {
        let oidc = self.oidc.as_ref();
        json!({
            "issuer": oidc.map(|oidc| &oidc.issuer),
            "client_id": oidc.map(|oidc| &oidc.client_id),
            "client_secret": oidc.and_then(|oidc| hidden(&oidc.client_secret)),
            "label": oidc.map(|oidc| &oidc.label),
            "scopes": oidc.map(|oidc| &oidc.scopes),
            "name_claim": oidc.map(|oidc| &oidc.name_claim),
            "role_claim": oidc.map(|oidc| &oidc.role_claim),
            "roles": oidc.map(|oidc| &oidc.roles),
            "users": oidc.map(Oidc::users_name),
        })
    }

    fn flatten(&self, path: &str, members: Map<String, Json>, settings: &mut Vec<Setting>) {
        for (name, value) in members {
            let key = match path {
                "" => name,
                path => format!("{path}.{name}"),
            };
            match value {
                Json::Object(members) if !MAPS.contains(&key.as_str()) => {
                    self.flatten(&key, members, settings)
                }
                value => {
                    let origin = self.origins.get(&key);
                    settings.push(Setting {
                        source: origin.map_or("default", |origin| origin.source),
                        reference: origin.and_then(|origin| origin.reference.clone()),
                        is_hidden: value == HIDDEN,
                        key,
                        value,
                    });
                }
            }
        }
    }

    /// Checks the text of a configuration file; returns warnings. Of environment variables it checks only whether they are set, so that no error
    /// shows a value.
    ///
    /// # Errors
    /// The first error.
    pub fn check_text(text: &str) -> Result<Vec<String>, ConfigError> {
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        Self::check_imported(text, names.filter(|name| !name.starts_with(PREFIX)))
    }

    /// [`Config::check_text`], as if of all environment variables only `names` were set.
    ///
    /// # Errors
    /// The first error.
    pub fn check_imported(
        text: &str,
        names: impl IntoIterator<Item = String>,
    ) -> Result<Vec<String>, ConfigError> {
        const FILE: &str = "tollgate.toml";
        const UNKNOWN: &str = "a-value-of-the-environment-32-characters";
        let names = names.into_iter();
        let variables: Variables = names.map(|name| (name, UNKNOWN.to_owned())).collect();
        let unchecked = document::env_paths(&document::parse(FILE, text)?, &variables);
        // Some errors do not repeat the value, because it can contain a secret.
        let is_unchecked = |e: &ConfigError| {
            let field = e.field().unwrap_or_default();
            e.to_string().contains(UNKNOWN) || unchecked.iter().any(|path| is_within(field, path))
        };
        match Self::read(FILE, text, &Overrides::default(), &variables) {
            Ok((_, warnings)) => Ok(warnings),
            Err(e) if is_unchecked(&e) => {
                let field = e.field().unwrap_or("a setting");
                Ok(vec![format!(
                    "{field} comes from the environment and is not checked here"
                )])
            }
            Err(e) => Err(e),
        }
    }
}
