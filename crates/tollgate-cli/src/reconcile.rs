//! `tollgate reconcile`: compares the gateway's token counts of a channel with the provider's.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tollgate_config::Overrides;
use tollgate_server::routing::Routing;
use tollgate_store::{ChannelUsage, Reconciled};
use tollgate_upstream::egress::{Client, ClientOptions};
use tollgate_upstream::{ReportedUsage, UsagePeriod};

use super::common::{Common, Failed, open_store};

/// Days that one report may have.
const MAX_DAYS: i64 = 366;

/// What to compare.
#[derive(clap::Args)]
pub(super) struct Reconcile {
    /// The channel's name
    channel: String,
    /// The first day, in UTC
    #[arg(long, value_name = "DATE")]
    from: jiff::civil::Date,
    /// The last day, in UTC
    #[arg(long, value_name = "DATE")]
    to: jiff::civil::Date,
}

impl Reconcile {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let period = UsagePeriod {
            from: day_number(self.from),
            until: day_number(self.to) + 1,
        };
        if !(1..=MAX_DAYS).contains(&(period.until - period.from)) {
            let message = format!("--to must be from 0 to {} days after --from", MAX_DAYS - 1);
            return Err(Failed::from(message));
        }
        let config = common.configuration(Overrides::default())?;
        let egress = Client::new(ClientOptions::default());
        let settings = config.provider_settings();
        let routing = Routing::open(&config.channels, &settings, &egress, &config.fairness)?;
        let Some(open) = routing.by_name(&self.channel) else {
            let names = routing.channels().iter().map(|c| c.channel.name.as_str());
            let names = names.collect::<Vec<_>>().join(", ");
            let message = format!("there is no channel {:?}; there are: {names}", self.channel);
            return Err(Failed::from(message));
        };
        let store = open_store(&config).await?;
        let counted = store
            .channel_usage(&self.channel, period.from, period.until)
            .await?;
        let reported = match &open.provider.usage {
            Some(usage) => Some(usage.report(period).await.map_err(|error| {
                format!(
                    "the usage API of {:?} failed: {}",
                    self.channel, error.message
                )
            })?),
            None => None,
        };
        let lines = compare(counted, reported.as_deref());
        if reported.is_some() {
            let now = jiff::Timestamp::now().as_millisecond();
            let reconciled = reconciled(&self.channel, &lines);
            store
                .record_reconciliation(&self.channel, reconciled, now)
                .await?;
        }
        let records: Value = lines.iter().map(Line::record).collect();
        common.print(&records, || {
            let mut text: Vec<String> = lines.iter().map(Line::text).collect();
            if lines.is_empty() {
                text.push("no chats in these days".to_owned());
            }
            if reported.is_none() {
                text.push(format!(
                    "only the gateway's side: channel {:?} has no `admin_key`, or its provider no usage API",
                    self.channel
                ));
            }
            text.join("\n")
        })
    }
}

/// Days since 1970-01-01.
fn day_number(date: jiff::civil::Date) -> i64 {
    let epoch = jiff::civil::date(1970, 1, 1);
    let span = date - epoch;
    i64::from(span.get_days())
}

fn date_of(day: i64) -> String {
    let start = jiff::Timestamp::from_second(day.saturating_mul(86_400));
    start.map_or_else(
        |_| String::new(),
        |start| start.strftime("%Y-%m-%d").to_string(),
    )
}

/// The usage of a model on one day.
struct Line {
    counted: ChannelUsage,
    /// Input and output tokens as the provider counts them. `None` if the provider's usage is unknown.
    reported: Option<(u64, u64)>,
}

/// Joins the gateway's and the provider's usage by day and model. Ids of one model that differ only in a date are merged: for an alias, a provider
/// reports the dated snapshot.
fn compare(counted: Vec<ChannelUsage>, reported: Option<&[ReportedUsage]>) -> Vec<Line> {
    let mut lines: BTreeMap<(i64, String), Line> = BTreeMap::new();
    for used in counted {
        let key = (used.day, undated(&used.model).to_owned());
        match lines.get_mut(&key) {
            Some(line) => add(&mut line.counted, &used),
            None => drop(lines.insert(
                key,
                Line {
                    counted: used,
                    reported: reported.map(|_| (0, 0)),
                },
            )),
        }
    }
    for usage in reported.unwrap_or_default() {
        let key = (usage.day, undated(&usage.model).to_owned());
        let line = lines.entry(key).or_insert_with(|| Line {
            counted: unused(usage.day, &usage.model),
            reported: None,
        });
        let (input, output) = line.reported.unwrap_or_default();
        line.reported = Some((input + usage.input, output + usage.output));
    }
    lines.into_values().collect()
}

fn unused(day: i64, model: &str) -> ChannelUsage {
    ChannelUsage {
        day,
        model: model.to_owned(),
        chats: 0,
        estimated: 0,
        input: 0,
        output: 0,
        estimated_tokens: 0,
        clamped_tokens: 0,
        charged: tollgate_core::Amount::ZERO,
        debt: tollgate_core::Amount::ZERO,
    }
}

fn add(sum: &mut ChannelUsage, used: &ChannelUsage) {
    sum.chats += used.chats;
    sum.estimated += used.estimated;
    sum.input += used.input;
    sum.output += used.output;
    sum.estimated_tokens += used.estimated_tokens;
    sum.clamped_tokens += used.clamped_tokens;
    sum.charged += used.charged;
    sum.debt += used.debt;
}

/// A model's id without a date at its end (`-20250929`, `-2024-08-06`).
fn undated(model: &str) -> &str {
    for (length, shape) in [(11, "-dddd-dd-dd"), (9, "-dddddddd")] {
        let Some(at) = model.len().checked_sub(length).filter(|at| *at > 0) else {
            continue;
        };
        let fits = |(byte, kind): (u8, u8)| match kind {
            b'd' => byte.is_ascii_digit(),
            other => byte == other,
        };
        if model.bytes().skip(at).zip(shape.bytes()).all(fits) {
            return &model[..at];
        }
    }
    model
}

/// The sums over all days, by model.
fn reconciled(channel: &str, lines: &[Line]) -> Vec<Reconciled> {
    let mut sums: BTreeMap<&str, (i64, i64)> = BTreeMap::new();
    for line in lines {
        let (input, output) = line.reported.unwrap_or_default();
        let (counted, reported) = sums.entry(undated(&line.counted.model)).or_default();
        *counted += line.counted.input + line.counted.output;
        *reported += i64::try_from(input + output).unwrap_or(i64::MAX);
    }
    let row = |(model, (counted, reported)): (&str, (i64, i64))| Reconciled {
        channel: channel.to_owned(),
        model: model.to_owned(),
        counted,
        reported,
    };
    sums.into_iter().map(row).collect()
}

impl Line {
    /// How far the gateway's count is above the provider's, as a share of the provider's. `None` if the provider's count is unknown or 0.
    fn drift(&self) -> Option<f64> {
        let (input, output) = self.reported?;
        let reported = (input + output) as f64;
        let counted = (self.counted.input + self.counted.output) as f64;
        (reported > 0.0).then(|| counted / reported - 1.0)
    }

    fn record(&self) -> Value {
        let used = &self.counted;
        json!({
            "day": date_of(used.day),
            "model": used.model,
            "chats": used.chats,
            "estimated": used.estimated,
            "input": used.input,
            "output": used.output,
            "estimated_tokens": used.estimated_tokens,
            "clamped_tokens": used.clamped_tokens,
            "charged": used.charged,
            "debt": used.debt,
            "provider_input": self.reported.map(|(input, _)| input),
            "provider_output": self.reported.map(|(_, output)| output),
            "drift": self.drift(),
        })
    }

    fn text(&self) -> String {
        let ChannelUsage {
            day,
            model,
            chats,
            estimated,
            input,
            output,
            estimated_tokens,
            clamped_tokens,
            charged,
            debt,
        } = &self.counted;
        let mut text = format!(
            "{}  {model}  chats {chats} ({estimated} estimated), input {input}, output {output} ({estimated_tokens} estimated, {clamped_tokens} clamped), charged {charged}, debt {debt}",
            date_of(*day)
        );
        if let Some((input, output)) = self.reported {
            text += &format!("; provider: input {input}, output {output}");
        }
        if let Some(drift) = self.drift() {
            text += &format!(", drift {:+.2} %", drift * 100.0);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_compared_without_their_dates() {
        for (id, expected) in [
            ("gpt-4o-2024-08-06", "gpt-4o"),
            ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
            ("gpt-4o", "gpt-4o"),
            ("-20250929", "-20250929"),
            ("gpt-4-0613", "gpt-4-0613"),
        ] {
            assert_eq!(undated(id), expected);
        }
        assert_eq!(day_number(jiff::civil::date(2026, 11, 23)), 20_780);
        assert_eq!(date_of(20_780), "2026-11-23");
    }
}
