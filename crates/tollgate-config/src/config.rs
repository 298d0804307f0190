//! [`Config`]: reads, checks and combines command line, environment and file.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use ipnet::IpNet;
use tollgate_core::Secret;
use tollgate_media::{Catalogue, ExtraModel};
use tollgate_upstream::Channel;
use tollgate_upstream::provider::Settings as ProviderSettings;

use super::addresses::TlsFiles;
use super::admin::{AdminListener, check_admin_listener};
use super::checks::{check_channel_names, check_price_keys};
use super::deserializer::{Error, deserialize};
use super::document::{self, Table, Variables};
use super::error::ConfigError;
use super::log::Log;
use super::oidc::Oidc;
use super::origins::{SettingOrigins, setting_origins};
use super::prices::ModelPrice;
use super::safety::Safety;
use super::settings::Settings;
use super::storage::{S3Location, ServeMode, StorageLocation};
use super::traces::Traces;
use super::values::{
    Chat, Currency, Expiry, Fairness, Leases, Limits, Sandbox, TimeLimits, Workers,
};

/// The configuration file that is read if no other is named.
const DEFAULT_FILE: &str = "tollgate.toml";
/// The prefix of the gateway's environment variables.
pub(super) const PREFIX: &str = "TOLLGATE_";
/// MB of the storage's disk that are kept free by default.
const STORAGE_RESERVE_MB: u64 = 512;
/// Variables with the prefix that are not settings: of the log, the client commands and the tests.
const OTHER_VARIABLES: &[&str] = &[
    "TOLLGATE_API_KEY",
    "TOLLGATE_BASE_URL",
    "TOLLGATE_CRASH_AT",
    "TOLLGATE_LOG",
    "TOLLGATE_TEST_POSTGRES_URL",
];

/// Settings of the command line, which override all others.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// `--listen`.
    pub listen: Option<String>,
    /// `--data-dir`.
    pub data_dir: Option<PathBuf>,
    /// `--no-demo`.
    pub no_demo: bool,
}

/// All settings.
#[derive(Debug, Clone)]
pub struct Config {
    /// `HOST:PORT` to listen on.
    pub listen: String,
    /// The log on stderr.
    pub log: Log,
    /// Prefix of links, without a `/` at its end; `None` means `http://` and the address listened on.
    pub public_url: Option<String>,
    /// Folder of the embedded database and, by default, of the files.
    pub data_dir: PathBuf,
    /// The unit of amounts.
    pub currency: Currency,
    /// Whether the first start creates the user `demo`.
    pub demo: bool,
    /// Seconds that a shutdown waits for requests in flight.
    pub drain_s: u64,
    /// A `postgres://` URL; `None` means SQLite in the data directory.
    pub database_url: Option<Secret>,
    /// A `postgres://` URL of a streaming replica of that database; `None` if there is none.
    pub replica_url: Option<Secret>,
    /// Non-public networks that URLs given by clients may point to.
    pub allow_private_urls: Vec<IpNet>,
    /// How long links and records are kept.
    pub expiry: Expiry,
    /// Deadlines of tasks and timeouts of chats.
    pub time_limits: TimeLimits,
    /// How long a worker's lease lasts without renewal.
    pub leases: Leases,
    /// Bearer key of the operator's endpoints; `None` means one that is generated at the first start.
    pub admin_key: Option<Secret>,
    /// A separate listener for the admin API and the console; `None` means that the gateway's listener serves them.
    pub admin_listener: Option<AdminListener>,
    /// The secret with which the provider keys that the admin API stores are encrypted; `None` means that it stores none.
    pub secrets_key: Option<Secret>,
    /// `HOST:PORT` of a separate listener for metrics and health checks; `None` means that the gateway's listener serves them.
    pub metrics_listen: Option<String>,
    /// The certificate of the gateway's listener; `None` for plain HTTP.
    pub tls: Option<TlsFiles>,
    /// OpenTelemetry traces.
    pub traces: Traces,
    /// Sign-in by an OpenID provider; `None` if it is not configured: sign-in is then by password and API key only.
    pub oidc: Option<Oidc>,
    /// The channels, in the order of the file.
    pub channels: Vec<Channel>,
    /// By the name of each channel with keys, the origin of each key: `env:NAME` or `file`.
    pub key_origins: BTreeMap<String, Vec<String>>,
    /// By the name of each channel with an `admin_key`, the origin of that key: `env:NAME` or `file`.
    pub admin_key_origins: BTreeMap<String, String>,
    /// The prices, by model id.
    pub prices: HashMap<String, ModelPrice>,
    /// Model ids that the operator adds.
    pub models: Vec<ExtraModel>,
    /// Which prompts are rejected.
    pub safety: Safety,
    /// How many tasks this process works on at the same time.
    pub workers: Workers,
    /// How workers and channels are shared among users.
    pub fairness: Fairness,
    /// Limits on connections, memory and rates.
    pub limits: Limits,
    /// Settings of all chats.
    pub chat: Chat,
    /// Where uploads, results and inputs are stored.
    pub(super) storage: StorageLocation,
    /// How clients download public files that are stored in S3.
    pub storage_serve: ServeMode,
    /// MB (of 1,048,576 bytes) of the storage's disk that are kept free.
    pub storage_reserve_mb: u64,
    pub(super) sandbox: Sandbox,
    pub(super) origins: SettingOrigins,
}

/// A warning if the file contains secrets and users other than its owner can read it.
fn readable_secrets(path: &Path, shown: &str, text: &str) -> Option<String> {
    let mode = fs::metadata(path).ok()?.permissions().mode() & 0o777;
    let written = document::parse(shown, text).ok()?;
    (mode & 0o077 != 0 && document::contains_secrets(&written)).then(|| {
        format!("{shown} contains secrets and others can read it (mode {mode:03o}): `chmod 600 {shown}`, or use env:NAME")
    })
}

impl Config {
    /// Reads the configuration file (`file`, or the default one if it exists), the environment and `overrides`. Also returns warnings: settings that
    /// look like mistakes and are ignored.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub fn load(
        file: Option<&Path>,
        overrides: &Overrides,
    ) -> Result<(Self, Vec<String>), ConfigError> {
        let path = file.unwrap_or(Path::new(DEFAULT_FILE));
        let shown = path.display().to_string();
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(e) if file.is_none() && e.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(e) => {
                let why = format!("cannot read the configuration file {shown}: {e}");
                return Err(ConfigError::new(why));
            }
        };
        let utf8 = |(name, value): (OsString, OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        let variables = std::env::vars_os().filter_map(utf8).collect();
        let (config, mut warnings) = Self::read(&shown, &text, overrides, &variables)?;
        warnings.extend(readable_secrets(path, &shown, &text));
        Ok((config, warnings))
    }

    /// Reads a configuration from `text`, which error messages call `file`.
    pub(super) fn read(
        file: &str,
        text: &str,
        overrides: &Overrides,
        variables: &Variables,
    ) -> Result<(Self, Vec<String>), ConfigError> {
        let written = document::parse(file, text)?;
        let mut warnings = Vec::new();
        let given = variables
            .iter()
            .filter(|(name, value)| is_setting(name) && !value.is_empty());
        let mut active: Vec<&String> = given.map(|(name, _)| name).collect();
        let (settings, origins): (Settings, _) = loop {
            let mut table = written.clone();
            active.retain(|name| {
                let segments: Vec<&str> = name[PREFIX.len()..].split("__").collect();
                let is_set = document::set_variable(&mut table, &segments, name, &variables[*name]);
                if !is_set {
                    warnings.push(unknown_variable(name));
                }
                is_set
            });
            set_overrides(&mut table, overrides);
            let origins = setting_origins(&table);
            match deserialize_document(&mut table, variables) {
                Ok(settings) => break (settings, origins),
                // A variable that names no setting must not prevent the start.
                Err(error) => match error.unknown_variable() {
                    Some(unknown) => {
                        warnings.push(unknown_variable(unknown));
                        active.retain(|name| name.as_str() != unknown);
                    }
                    None => {
                        return Err(ConfigError {
                            sentence: error.sentence(file),
                            field: Some(error.into_path_and_message().0),
                        });
                    }
                },
            }
        };
        warnings.sort();
        let config = Self {
            key_origins: document::key_origins(&written),
            admin_key_origins: document::admin_key_origins(&written),
            origins,
            ..Self::from_settings(settings)
        };
        warnings.extend(config.unknown_models()?);
        Ok((config, warnings))
    }

    fn from_settings(settings: Settings) -> Self {
        let storage_serve = settings.storage.serve;
        let storage_reserve_mb = settings.storage.reserve_mb.unwrap_or(STORAGE_RESERVE_MB);
        let storage = settings.storage.location();
        let models = settings.model.into_iter().map(|model| ExtraModel {
            name: model.name,
            like: model.like,
        });
        Self {
            listen: settings.listen,
            log: settings.log,
            public_url: settings.public_url,
            data_dir: settings.data_dir,
            currency: settings.currency,
            demo: settings.demo,
            drain_s: settings.drain_s,
            database_url: settings.database.url,
            replica_url: settings.database.replica_url,
            allow_private_urls: settings
                .media
                .allow_private_urls
                .iter()
                .map(|n| n.0)
                .collect(),
            expiry: settings.expiry,
            fairness: settings.fairness,
            time_limits: settings.time_limits,
            leases: settings.leases,
            admin_key: settings.admin.key.clone(),
            admin_listener: settings.admin.listener(settings.tls.as_ref()),
            secrets_key: settings.secrets.key,
            metrics_listen: settings.metrics.listen,
            tls: settings.tls,
            traces: settings.traces,
            oidc: settings.oidc,
            channels: settings.channel.into_iter().map(|entry| entry.0).collect(),
            key_origins: BTreeMap::new(),
            admin_key_origins: BTreeMap::new(),
            prices: settings.price,
            models: models.collect(),
            safety: settings.safety,
            workers: settings.workers,
            limits: settings.limits,
            chat: settings.chat,
            storage,
            storage_serve,
            storage_reserve_mb,
            sandbox: settings.sandbox,
            origins: SettingOrigins::new(),
        }
    }

    /// The scheme of the gateway's own listener.
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }

    /// Prefix of the links to the console, if the gateway listens on the addresses `main` and `admin`.
    pub fn console_url(&self, main: &str, admin: &str) -> String {
        match &self.admin_listener {
            None => self.client_url(main),
            Some(listener) => {
                let url = listener.public_url.clone();
                url.unwrap_or_else(|| format!("{}://{admin}", listener.scheme()))
            }
        }
    }

    /// The prefix of the links that clients get and the prefix of those to the console, for a gateway that listens on these addresses.
    pub fn urls(&self, main: SocketAddr, admin: Option<SocketAddr>) -> [String; 2] {
        let admin = admin.unwrap_or(main).to_string();
        let main = main.to_string();
        [self.client_url(&main), self.console_url(&main, &admin)]
    }

    /// Prefix of the links that clients get, if the gateway listens on the address `main`.
    fn client_url(&self, main: &str) -> String {
        let url = self.public_url.clone();
        url.unwrap_or_else(|| format!("{}://{main}", self.scheme()))
    }

    /// Folder of uploads, results and inputs; with S3, the folder of files that are being written or read.
    pub fn storage_dir(&self) -> PathBuf {
        match &self.storage {
            StorageLocation::Folder(Some(folder)) => folder.clone(),
            StorageLocation::Folder(None) | StorageLocation::S3(_) => self.data_dir.join("files"),
        }
    }

    /// [`Config::storage_dir`] if it is the default folder in the data directory, also with S3; `None` if another folder is configured.
    pub fn default_storage_dir(&self) -> Option<PathBuf> {
        let is_elsewhere = matches!(self.storage, StorageLocation::Folder(Some(_)));
        (!is_elsewhere).then(|| self.storage_dir())
    }

    /// The bucket of uploads, results and inputs. `None` if they are in a folder.
    pub fn storage_s3(&self) -> Option<&S3Location> {
        match &self.storage {
            StorageLocation::S3(location) => Some(location),
            StorageLocation::Folder(_) => None,
        }
    }

    /// The settings that providers are opened with.
    pub fn provider_settings(&self) -> ProviderSettings {
        ProviderSettings {
            sandbox_image: self.sandbox.image,
            sandbox_video: self.sandbox.video,
            sandbox_speech: self.sandbox.speech,
            sandbox_chat: self.sandbox.chat,
        }
    }

    /// Warnings about prices and channels for models that are not in the catalogue: the ids are most likely misspelt.
    fn unknown_models(&self) -> Result<Vec<String>, ConfigError> {
        let catalogue = Catalogue::new(&self.models)
            .map_err(|why| ConfigError::new(format!("[[model]]: {why}")))?;
        let warn = |what: &str, model: &str| {
            catalogue
                .endpoint(model)
                .is_none()
                .then(|| format!("{what} model {model:?}, which the catalogue does not have"))
        };
        let mut priced: Vec<_> = self.prices.keys().collect();
        priced.sort_unstable();
        let prices = priced
            .into_iter()
            .filter_map(|model| warn("a price names", model));
        let channels = self.channels.iter().flat_map(|channel| {
            let what = format!("channel {:?} names", channel.name);
            let models = channel.models.iter();
            models.filter_map(move |model| warn(&what, &model.name))
        });
        Ok(prices.chain(channels).collect())
    }
}

/// Whether an environment variable is a setting: it has the gateway's prefix and no other use.
fn is_setting(name: &str) -> bool {
    name.starts_with(PREFIX) && !OTHER_VARIABLES.contains(&name)
}

fn unknown_variable(name: &str) -> String {
    format!("environment variable {name} names no setting and is ignored")
}

/// Sets the values of command-line flags.
fn set_overrides(table: &mut Table, overrides: &Overrides) {
    if let Some(listen) = &overrides.listen {
        document::set_flag(table, "listen", "--listen", listen);
    }
    if let Some(folder) = &overrides.data_dir {
        document::set_flag(table, "data_dir", "--data-dir", &folder.to_string_lossy());
    }
    if overrides.no_demo {
        document::set_flag(table, "demo", "--no-demo", "false");
    }
}

fn deserialize_document(table: &mut Table, variables: &Variables) -> Result<Settings, Error> {
    document::resolve_env(table, variables).map_err(|(path, origin, name)| {
        let message = format!("needs environment variable {name:?}, which is not set");
        Error::at(path, origin, message)
    })?;
    check_admin_listener(table)?;
    let mut parsed = table.clone();
    for (_, node) in &mut parsed {
        document::parse_variables(&mut node.value, &node.origin);
    }
    check_channel_names(&parsed)?;
    check_price_keys(&parsed)?;
    deserialize(table)
}
