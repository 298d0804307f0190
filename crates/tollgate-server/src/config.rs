//! The configuration: CONTRACT.md › Configuration, from flags, environment and file to values that are
//! known to be legal.
//!
//! Precedence: command line, environment (`TOLLGATE_` + path in capitals joined by `__`; an empty
//! variable counts as unset), file, default.

mod channels;
mod field;
mod places;
mod prices;
mod safety;
mod shape;
mod tree;
mod values;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;
use tollgate_core::Secret;
use tollgate_media::{Catalogue, ExtraModel};
use tollgate_store::RateLimits;
use tollgate_upstream::Channel;
use tollgate_upstream::provider::Settings;

pub use prices::{ModelPrice, PriceWhen, UnitPrice};
pub use safety::Safety;
pub use values::{Chat, Currency, Expiry, Leases, Limits, TimeLimits, Workers};

use field::{Field, Source};
use tree::{Node, Place, Table, Value};

/// The configuration file where none is named.
const DEFAULT_FILE: &str = "tollgate.toml";
/// What every environment variable of ours begins with.
const PREFIX: &str = "TOLLGATE_";
/// Variables that begin so and are no settings: of the log, the client commands and the tests.
const NO_SETTINGS: &[&str] = &[
    "TOLLGATE_API_KEY",
    "TOLLGATE_BASE_URL",
    "TOLLGATE_CRASH_AT",
    "TOLLGATE_LOG",
    "TOLLGATE_TEST_POSTGRES_URL",
];
const DAY_S: i64 = 86_400;
/// A hundred years: no time limit or expiry is longer.
const LONGEST_S: i64 = 100 * 365 * DAY_S;
/// No model answers as many.
const MOST_TOKENS: i64 = 100_000_000;

/// Environment variables by name.
type Variables = BTreeMap<String, String>;

/// What the command line says; it goes before all else.
#[derive(Debug, Clone, Default)]
pub struct Overrides {
    /// `--listen`.
    pub listen: Option<String>,
    /// `--data-dir`.
    pub data_dir: Option<PathBuf>,
    /// `--no-demo`.
    pub no_demo: bool,
}

/// Everything that can be set.
#[derive(Debug, Clone)]
pub struct Config {
    /// `HOST:PORT` to listen on.
    pub listen: String,
    /// Prefix of links, without a `/` at its end; none for `http://` and the address listened on.
    pub public_url: Option<String>,
    /// Folder of the embedded database and, by default, of the files.
    pub data_dir: PathBuf,
    /// What amounts are in.
    pub currency: Currency,
    /// Whether a first start makes user `demo`.
    pub demo: bool,
    /// Seconds that a shutdown waits for what is in flight.
    pub drain_s: u64,
    /// A `postgres://` URL; none for SQLite in the data directory.
    pub database_url: Option<Secret>,
    /// Non-public networks that client-given URLs may reach.
    pub allow_private_urls: Vec<IpNet>,
    /// How long things are kept.
    pub expiry: Expiry,
    /// How long tasks may take.
    pub time_limits: TimeLimits,
    /// How long a worker keeps a task without a sign of life.
    pub leases: Leases,
    /// Bearer key of what only the operator may see; none for one that is made at first use.
    pub admin_key: Option<Secret>,
    /// In the order of the file.
    pub channels: Vec<Channel>,
    /// By model id.
    pub prices: HashMap<String, ModelPrice>,
    /// Model ids that the operator adds.
    pub models: Vec<ExtraModel>,
    /// Which prompts are refused.
    pub safety: Safety,
    /// How much work this process does at the same time.
    pub workers: Workers,
    /// What this process takes at the same time, and in a minute.
    pub limits: Limits,
    /// What holds for all chats.
    pub chat: Chat,
    /// Folder of uploads, results and inputs; none for one in the data directory.
    storage: Option<PathBuf>,
    sandbox: Settings,
}

/// Why a configuration is not used: one sentence that says where and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ConfigError(String);

impl ConfigError {
    fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl Config {
    /// Reads the configuration file (`file`, or the default one if it exists), the environment and
    /// `overrides`. With it come warnings: what looks like a mistake and is not acted on.
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
        Self::read(&shown, &text, overrides, &variables)
    }

    /// Reads a configuration from `text`, which error messages call `file`.
    fn read(
        file: &str,
        text: &str,
        overrides: &Overrides,
        variables: &Variables,
    ) -> Result<(Self, Vec<String>), ConfigError> {
        let mut settings = tree::parse(file, text)?;
        let mut warnings = apply_variables(&mut settings, variables)?;
        apply_overrides(&mut settings, overrides);
        shape::check(file, "", &settings, shape::ROOT)?;
        let source = Source { file, variables };
        let config = Self::from_settings(&source, &settings)?;
        warnings.extend(config.unknown_models()?);
        Ok((config, warnings))
    }

    fn from_settings(source: &Source<'_>, settings: &Table) -> Result<Self, ConfigError> {
        let field = |path: &str| Field::of(source, settings, path);
        let number = |path, least, most, default| {
            let given = field(path).whole(least..=most)?;
            Ok::<_, ConfigError>(given.unwrap_or(default))
        };
        let count = |path, most, default| {
            let number = number(path, 1, most, default)?;
            Ok::<_, ConfigError>(usize::try_from(number).unwrap_or(usize::MAX))
        };
        let duration = |path, default| {
            let seconds = number(path, 1, LONGEST_S, default)?;
            Ok::<_, ConfigError>(Duration::from_secs(seconds.unsigned_abs()))
        };
        let millis = |path, default| {
            let ms = number(path, 0, DAY_S * 1_000, default)?;
            Ok::<_, ConfigError>(Duration::from_millis(ms.unsigned_abs()))
        };
        let rate = |path| {
            let given = field(path).whole(1..=i64::from(u32::MAX))?;
            Ok::<_, ConfigError>(given.and_then(|limit| u32::try_from(limit).ok()))
        };
        let redis = field("limits.redis_url");
        if redis.is_given() {
            let why = "is set, but this version counts rate limits in one process: leave it out";
            return Err(redis.error(why));
        }
        let data_dir = field("data_dir").text()?;
        Ok(Self {
            listen: places::listen(&field("listen"))?.unwrap_or_else(|| "127.0.0.1:8080".into()),
            public_url: places::public_url(&field("public_url"))?,
            data_dir: PathBuf::from(data_dir.as_deref().unwrap_or("./tollgate-data")),
            currency: currency(&field("currency"))?,
            demo: field("demo").flag()?.unwrap_or(true),
            drain_s: number("drain_s", 0, 3_600, 30)?.unsigned_abs(),
            database_url: places::database_url(&field("database.url"))?,
            allow_private_urls: places::networks(&field("media.allow_private_urls"))?,
            expiry: Expiry {
                images_s: number("expiry.images_s", 1, LONGEST_S, 86_400)?,
                long_s: number("expiry.long_s", 1, LONGEST_S, 259_200)?,
                tasks_s: match number("expiry.tasks_s", 0, LONGEST_S, -1)? {
                    -1 => number("expiry.tasks_days", 0, LONGEST_S / DAY_S, 30)? * DAY_S,
                    seconds => seconds,
                },
            },
            time_limits: TimeLimits {
                image_s: number("time_limits.image_s", 1, LONGEST_S, 600)?,
                video_s: number("time_limits.video_s", 1, LONGEST_S, 3_600)?,
                speech_s: number("time_limits.speech_s", 1, LONGEST_S, 300)?,
                chat_connect: duration("time_limits.chat_connect_s", 10)?,
                chat_first_byte: duration("time_limits.chat_first_byte_s", 300)?,
                chat_idle: duration("time_limits.chat_idle_s", 120)?,
            },
            leases: Leases {
                seconds: number("leases.seconds", 1, 3_600, 30)?,
            },
            admin_key: field("admin.key").secret()?,
            channels: channels::read(&field("channel"))?,
            prices: prices::read(&field("price"))?,
            models: models(&field("model"))?,
            safety: safety::read(&field("safety"))?,
            workers: Workers {
                calls: count("workers.calls", 1_024, 32)?,
                open: count("workers.open", 1_000_000, 20_000)?,
                downloads: count("workers.downloads", 1_024, 32)?,
            },
            limits: Limits {
                max_connections: count("limits.max_connections", 1_000_000, 4_096)?,
                body_memory_mb: count("limits.body_memory_mb", 1_048_576, 256)?,
                rates: RateLimits {
                    rpm: rate("limits.rpm")?,
                    tpm: rate("limits.tpm")?,
                    max_concurrency: rate("limits.max_concurrency")?,
                },
            },
            chat: Chat {
                default_max_tokens: number("chat.default_max_tokens", 1, MOST_TOKENS, 8_192)?
                    .unsigned_abs(),
            },
            storage: places::storage(&field("storage.url"))?,
            sandbox: Settings {
                sandbox_image: millis("sandbox.image_ms", 800)?,
                sandbox_video: millis("sandbox.video_ms", 3_000)?,
                sandbox_speech: millis("sandbox.speech_ms", 800)?,
                sandbox_chat: millis("sandbox.chat_ms", 0)?,
            },
        })
    }

    /// Folder of uploads, results and inputs.
    pub fn storage_dir(&self) -> PathBuf {
        self.storage_is_default()
            .unwrap_or_else(|| self.storage.clone().unwrap_or_default())
    }

    /// The same folder where it is the one in the data directory.
    pub fn storage_is_default(&self) -> Option<PathBuf> {
        self.storage.is_none().then(|| self.data_dir.join("files"))
    }

    /// What providers are opened with.
    pub fn provider_settings(&self) -> Settings {
        self.sandbox.clone()
    }

    /// Warns of prices and channels for models that no catalogue has: most likely misspelt.
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

/// Puts the environment's settings over the file's; returns warnings.
fn apply_variables(
    settings: &mut Table,
    variables: &Variables,
) -> Result<Vec<String>, ConfigError> {
    let mut warnings = Vec::new();
    for (name, text) in variables {
        let Some(path) = name.strip_prefix(PREFIX) else {
            continue;
        };
        if NO_SETTINGS.contains(&name.as_str()) || text.is_empty() {
            continue;
        }
        let segments: Vec<&str> = path.split("__").collect();
        if !shape::set(settings, shape::ROOT, &segments, name, text)? {
            warnings.push(format!(
                "environment variable {name} names no setting and is ignored"
            ));
        }
    }
    Ok(warnings)
}

/// Puts the command line's settings over all others.
fn apply_overrides(settings: &mut Table, overrides: &Overrides) {
    let mut set = |name: &str, flag: &'static str, value: Value| {
        let place = Place::Flag(flag);
        settings.retain(|(there, _)| there != name);
        settings.push((name.to_owned(), Node { place, value }));
    };
    if let Some(listen) = &overrides.listen {
        set("listen", "--listen", Value::Raw(listen.clone()));
    }
    if let Some(folder) = &overrides.data_dir {
        let folder = folder.to_string_lossy().into_owned();
        set("data_dir", "--data-dir", Value::Raw(folder));
    }
    if overrides.no_demo {
        set("demo", "--no-demo", Value::Flag(false));
    }
}

fn currency(field: &Field<'_>) -> Result<Currency, ConfigError> {
    let Some(text) = field.text()? else {
        return Ok(Currency::Usd);
    };
    let found = Currency::ALL
        .into_iter()
        .find(|currency| currency.to_string() == text);
    found.ok_or_else(|| field.error(format!("is {text:?}, but it takes USD, CNY or Tokens")))
}

fn models(list: &Field<'_>) -> Result<Vec<ExtraModel>, ConfigError> {
    let items = list.items().into_iter();
    items
        .map(|item| {
            Ok(ExtraModel {
                name: item.at("name").required()?,
                like: item.at("like").required()?,
            })
        })
        .collect()
}
