//! `[[channel]]`: the configured ways to providers.

use std::time::Duration;

use tollgate_chat::FORMATS;
use tollgate_core::Secret;
use tollgate_upstream::channel::{ChannelModel, ChannelTimeLimits};
use tollgate_upstream::{Channel, PROVIDERS};
use url::Url;

use super::ConfigError;
use super::field::Field;

const NAME_MAX: usize = 64;
const PRIORITIES: std::ops::RangeInclusive<i64> = -1_000_000..=1_000_000;
const WEIGHTS: std::ops::RangeInclusive<i64> = 1..=1_000_000;
/// Milliseconds between two polls.
const POLLS: std::ops::RangeInclusive<i64> = 10..=3_600_000;
const CONCURRENCY: std::ops::RangeInclusive<i64> = 1..=1_000_000;

/// Reads every channel. `list` is the setting `channel`.
pub(super) fn read(list: &Field<'_>) -> Result<Vec<Channel>, ConfigError> {
    let mut channels: Vec<Channel> = Vec::new();
    for field in list.items() {
        let channel = read_one(&field)?;
        let provider = PROVIDERS.iter().find(|p| p.kind == channel.kind);
        if let Some(Err(why)) = provider.map(|p| (p.check)(&channel)) {
            return Err(field.error(format!("({:?}): {why}", channel.name)));
        }
        if channels.iter().any(|there| there.name == channel.name) {
            let why = format!("is {:?}, the name of another channel", channel.name);
            return Err(field.at("name").error(why));
        }
        channels.push(channel);
    }
    Ok(channels)
}

fn read_one(field: &Field<'_>) -> Result<Channel, ConfigError> {
    let number = |name, allowed, default| {
        let given = field.at(name).whole(allowed)?;
        Ok::<_, ConfigError>(given.unwrap_or(default))
    };
    Ok(Channel {
        name: name(&field.at("name"))?,
        kind: kind(&field.at("kind"))?,
        base_url: base_url(&field.at("base_url"))?,
        api_keys: api_keys(&field.at("api_keys"))?,
        models: models(&field.at("models"))?,
        priority: number("priority", PRIORITIES, 0)?,
        weight: u32::try_from(number("weight", WEIGHTS, 1)?).unwrap_or(1),
        max_concurrency: field
            .at("max_concurrency")
            .whole(CONCURRENCY)?
            .and_then(|most| u32::try_from(most).ok()),
        apis: apis(&field.at("apis"))?,
        time_limits: time_limits(field)?,
        poll: field
            .at("poll_ms")
            .whole(POLLS)?
            .map(|ms| Duration::from_millis(ms.unsigned_abs())),
        options: field.at("options").json()?,
    })
}

/// The chat formats that the channel's server speaks; none for all that its kind knows.
fn apis(field: &Field<'_>) -> Result<Option<Vec<String>>, ConfigError> {
    if !field.is_given() {
        return Ok(None);
    }
    let mut names = Vec::new();
    for item in field.items() {
        let name = item.required()?;
        if tollgate_chat::by_name(&name).is_none() {
            let known: Vec<_> = FORMATS.iter().map(|format| format.name()).collect();
            let known = known.join(", ");
            return Err(item.error(format!("is {name:?}, but the formats are: {known}")));
        }
        names.push(name);
    }
    if names.is_empty() {
        return Err(field.error("is empty: name a format, or leave it out"));
    }
    Ok(Some(names))
}

/// Seconds; none for what holds for all channels.
fn time_limits(field: &Field<'_>) -> Result<ChannelTimeLimits, ConfigError> {
    let seconds = |name| {
        let given = field.at(name).whole(1..=super::LONGEST_S)?;
        Ok::<_, ConfigError>(given.map(|s| Duration::from_secs(s.unsigned_abs())))
    };
    Ok(ChannelTimeLimits {
        connect: seconds("connect_s")?,
        first_byte: seconds("first_byte_s")?,
        idle: seconds("idle_s")?,
    })
}

fn name(field: &Field<'_>) -> Result<String, ConfigError> {
    let name = field.required()?;
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.len() > NAME_MAX || !name.chars().all(plain) {
        return Err(field.error(format!(
            "is {name:?}, but a channel's name is 1 to {NAME_MAX} letters, digits, dots, dashes and underscores"
        )));
    }
    Ok(name)
}

fn kind(field: &Field<'_>) -> Result<String, ConfigError> {
    let kind = field.required()?;
    if !PROVIDERS.iter().any(|provider| provider.kind == kind) {
        let kinds: Vec<_> = PROVIDERS.iter().map(|provider| provider.kind).collect();
        let kinds = kinds.join(", ");
        return Err(field.error(format!(
            "is {kind:?}, but this version has these kinds: {kinds}"
        )));
    }
    Ok(kind)
}

fn base_url(field: &Field<'_>) -> Result<Option<String>, ConfigError> {
    let Some(text) = field.text()? else {
        return Ok(None);
    };
    if is_base(&text) {
        return Ok(Some(text.trim_end_matches('/').to_owned()));
    }
    Err(field.error("takes an http:// or https:// URL without user name, query and fragment"))
}

/// Whether paths can be put behind this URL.
pub(super) fn is_base(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.host().is_some()
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
    })
}

fn api_keys(field: &Field<'_>) -> Result<Vec<Secret>, ConfigError> {
    let keys = field.items().into_iter();
    keys.map(|key| key.required().map(Secret::new)).collect()
}

/// The models; none for a list that was left out: such a channel serves every model.
fn models(field: &Field<'_>) -> Result<Vec<ChannelModel>, ConfigError> {
    let mut models: Vec<ChannelModel> = Vec::new();
    for item in field.items() {
        let model = if item.is_table() {
            let name = item.at("name").required()?;
            let upstream = item.at("upstream").text()?;
            ChannelModel {
                upstream: upstream.unwrap_or_else(|| name.clone()),
                options: item.at("options").json()?,
                name,
            }
        } else {
            let name = item.required()?;
            ChannelModel::new(name.clone(), name)
        };
        if models.iter().any(|there| there.name == model.name) {
            return Err(item.error(format!("is {:?}, which the list has already", model.name)));
        }
        models.push(model);
    }
    if field.is_given() && models.is_empty() {
        return Err(field.error("is empty: name a model, or leave it out to serve every model"));
    }
    Ok(models)
}
