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

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use ipnet::IpNet;
use tollgate_core::clock::{DAY, SECOND};
use tollgate_core::{Millis, Secret};
use tollgate_media::{Catalogue, ExtraModel};
use tollgate_upstream::Channel;

pub use places::Database;
pub use prices::{Price, PriceWhen};
pub use safety::Safety;

use field::{Field, Source};
use tree::{Node, Place, Table, Value};

/// The configuration file where none is named.
const DEFAULT_FILE: &str = "tollgate.toml";
/// What every environment variable of ours begins with.
const PREFIX: &str = "TOLLGATE_";
/// Variables that begin so and are no settings: the client commands' and the tests'.
const NO_SETTINGS: &[&str] = &[
    "TOLLGATE_API_KEY",
    "TOLLGATE_BASE_URL",
    "TOLLGATE_CRASH_AT",
    "TOLLGATE_TEST_POSTGRES_URL",
];
/// A hundred years: no time limit or expiry is longer.
const LONGEST_S: i64 = 100 * 365 * 24 * 3_600;
const MIB: usize = 1_048_576;

/// Environment variables by name.
pub type Variables = BTreeMap<String, String>;

/// What the command line says.
#[derive(Debug, Clone, Default)]
pub struct Flags {
    /// `--config`; without it [`DEFAULT_FILE`] is read if it exists.
    pub config: Option<PathBuf>,
    /// `--data-dir`.
    pub data_dir: Option<PathBuf>,
    /// `--listen`.
    pub listen: Option<String>,
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
    /// How long a shutdown waits for what is in flight.
    pub drain: Duration,
    /// Which database.
    pub database: Database,
    /// Folder of uploads, results and inputs.
    pub storage: PathBuf,
    /// Non-public networks that client-given URLs may reach.
    pub private_networks: Vec<IpNet>,
    /// How long things are kept.
    pub expiry: Expiry,
    /// From a picture task's submission to its end.
    pub image_limit: Millis,
    /// How long the sandbox takes for a picture task.
    pub sandbox_image: Duration,
    /// How long a worker's lease on a task lasts.
    pub lease: Millis,
    /// Bearer key of `/metrics` and the admin API; none for one that is made on the first start.
    pub admin_key: Option<Secret>,
    /// In the order of the file.
    pub channels: Vec<Channel>,
    /// By model id.
    pub prices: HashMap<String, Price>,
    /// Model ids that the operator adds.
    pub models: Vec<ExtraModel>,
    /// Which prompts are refused.
    pub safety: Safety,
    /// Picture tasks that this process works on at the same time.
    pub image_workers: usize,
    /// Connections that are open at the same time.
    pub max_connections: usize,
    /// Bytes of JSON bodies in memory at the same time.
    pub body_memory: usize,
}

/// What amounts are in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Currency {
    /// US dollars.
    Usd,
    /// Chinese yuan.
    Cny,
    /// One unit is one token; prices are multipliers.
    Tokens,
}

impl Currency {
    const ALL: [Self; 3] = [Self::Usd, Self::Cny, Self::Tokens];

    /// As the configuration writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Usd => "USD",
            Self::Cny => "CNY",
            Self::Tokens => "Tokens",
        }
    }
}

/// How long things are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiry {
    /// Links to most results.
    pub images: Millis,
    /// Links to uploads and to Seedream 5.0 Lite results.
    pub long: Millis,
    /// Records of tasks, counted from their end.
    pub tasks: Millis,
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

/// A configuration that was found good.
#[derive(Debug)]
pub struct Loaded {
    /// The settings.
    pub config: Config,
    /// What looks like a mistake and is not acted on, one sentence each.
    pub warnings: Vec<String>,
}

/// The environment of this process; variables that are no UTF-8 are left out.
pub fn process_variables() -> Variables {
    let utf8 = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
        Some((name.into_string().ok()?, value.into_string().ok()?))
    };
    std::env::vars_os().filter_map(utf8).collect()
}

impl Config {
    /// Reads the file that `flags` name, or the default one if it exists, and the rest.
    pub fn load(flags: &Flags, variables: &Variables) -> Result<Loaded, ConfigError> {
        let path = flags.config.as_deref();
        let shown = path.unwrap_or(Path::new(DEFAULT_FILE)).display().to_string();
        let text = match fs::read_to_string(path.unwrap_or(Path::new(DEFAULT_FILE))) {
            Ok(text) => text,
            Err(error) if path.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
                String::new()
            }
            Err(error) => {
                return Err(ConfigError::new(format!(
                    "cannot read the configuration file {shown}: {error}"
                )));
            }
        };
        Self::read(&shown, &text, flags, variables)
    }

    /// Reads a configuration from `text`, which error messages call `file`.
    pub fn read(
        file: &str,
        text: &str,
        flags: &Flags,
        variables: &Variables,
    ) -> Result<Loaded, ConfigError> {
        let mut settings = tree::parse(file, text)?;
        let mut warnings = apply_variables(&mut settings, variables)?;
        apply_flags(&mut settings, flags);
        shape::check(file, "", &settings, shape::ROOT)?;
        let source = Source { file, variables };
        let config = Self::from_settings(&source, &settings)?;
        warnings.extend(config.unknown_models()?);
        Ok(Loaded { config, warnings })
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
        let redis = field("limits.redis_url");
        if redis.is_given() {
            return Err(redis.error("is set, but this version counts rate limits in one process only: leave it out"));
        }
        let data_dir = field("data_dir").text()?;
        let data_dir = PathBuf::from(data_dir.as_deref().unwrap_or("./tollgate-data"));
        Ok(Self {
            listen: places::listen(&field("listen"))?.unwrap_or_else(|| "127.0.0.1:8080".into()),
            public_url: places::public_url(&field("public_url"))?,
            currency: currency(&field("currency"))?,
            demo: field("demo").flag()?.unwrap_or(true),
            drain: Duration::from_secs(number("drain_s", 0, 3_600, 30)?.unsigned_abs()),
            database: places::database(&field("database.url"), &data_dir)?,
            storage: places::storage(&field("storage.url"), &data_dir)?,
            data_dir,
            private_networks: places::networks(&field("media.allow_private_urls"))?,
            expiry: expiry(&number)?,
            image_limit: number("time_limits.image_s", 1, LONGEST_S, 600)? * SECOND,
            sandbox_image: Duration::from_millis(
                number("sandbox.image_ms", 0, 86_400_000, 800)?.unsigned_abs(),
            ),
            lease: number("leases.seconds", 1, 3_600, 30)? * SECOND,
            admin_key: field("admin.key").secret()?,
            channels: channels::read(&field("channel"))?,
            prices: prices::read(&field("price"))?,
            models: models(&field("model"))?,
            safety: safety::read(&field("safety"))?,
            image_workers: count("workers.images", 1_024, 8)?,
            max_connections: count("limits.max_connections", 1_000_000, 4_096)?,
            body_memory: count("limits.body_memory_mb", 1_048_576, 256)?.saturating_mul(MIB),
        })
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
        let prices = priced.into_iter().filter_map(|model| warn("a price names", model));
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
            warnings.push(format!("environment variable {name} names no setting and is ignored"));
        }
    }
    Ok(warnings)
}

/// Puts the command line's settings over all others.
fn apply_flags(settings: &mut Table, flags: &Flags) {
    let mut set = |name: &str, flag: &'static str, value: Value| {
        let place = Place::Flag(flag);
        settings.retain(|(there, _)| there != name);
        settings.push((name.to_owned(), Node { place, value }));
    };
    if let Some(listen) = &flags.listen {
        set("listen", "--listen", Value::Raw(listen.clone()));
    }
    if let Some(folder) = &flags.data_dir {
        set("data_dir", "--data-dir", Value::Raw(folder.to_string_lossy().into_owned()));
    }
    if flags.no_demo {
        set("demo", "--no-demo", Value::Flag(false));
    }
}

fn currency(field: &Field<'_>) -> Result<Currency, ConfigError> {
    let Some(text) = field.text()? else {
        return Ok(Currency::Usd);
    };
    let found = Currency::ALL.into_iter().find(|currency| currency.name() == text);
    found.ok_or_else(|| field.error(format!("is {text:?}, but it takes USD, CNY or Tokens")))
}

/// `expiry.tasks_s` stands for `expiry.tasks_days` where both are given.
fn expiry(
    number: &impl Fn(&'static str, i64, i64, i64) -> Result<i64, ConfigError>,
) -> Result<Expiry, ConfigError> {
    let days = number("expiry.tasks_days", 0, LONGEST_S / 86_400, 30)?;
    Ok(Expiry {
        images: number("expiry.images_s", 1, LONGEST_S, 86_400)? * SECOND,
        long: number("expiry.long_s", 1, LONGEST_S, 259_200)? * SECOND,
        tasks: number("expiry.tasks_s", 0, LONGEST_S, days * (DAY / SECOND))? * SECOND,
    })
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
