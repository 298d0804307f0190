//! Usage: costs and outputs by time, model, user, key and channel.

use async_trait::async_trait;
use http::Method;
use serde_json::{Map, Value, json};
use tollgate_core::clock::{DAY, HOUR};
use tollgate_server::http::admin_error::AdminError;
use tollgate_store::{Store, UsagePosition, UsageQuery, UsageRow, amount_json, time_json};

use super::call::Call;
use super::endpoint::{Access, Endpoint, Returns, handler};
use super::list::{self, Item, Listing};
use super::reply::Reply;
use super::scope::Scope;

pub(super) const ENDPOINTS: &[Endpoint] = &[Endpoint {
    method: Method::GET,
    path: "/usage",
    access: Access::Scope(Scope::UsersRead),
    summary: "Amounts spent and outputs generated, latest first; `from` and `to` select full hours.",
    query: &[
        "from", "to", "group_by", "metric", "model", "user_id", "key_id", "channel",
    ],
    body: None,
    returns: Returns::List("usage"),
    handler: handler!(report),
}];

/// The values of `group_by`, each with the member that shows it.
pub(crate) const GROUPS: [(&str, &str); 6] = [
    ("day", "day"),
    ("hour", "hour"),
    ("model", "model"),
    ("user", "user_id"),
    ("key", "key_id"),
    ("channel", "channel"),
];
const METRICS: [&str; 6] = ["cost", "requests", "tokens", "images", "seconds", "failed"];

/// The list of usage sums, the latest period first.
pub(crate) struct Usage {
    pub(crate) query: UsageQuery,
    /// The members of each row: its groups, then its metrics.
    columns: Vec<&'static str>,
}

#[async_trait]
impl Listing for Usage {
    fn columns(&self) -> &[&'static str] {
        &self.columns
    }

    async fn page(
        &self,
        store: &Store,
        after: Option<&[String]>,
        limit: usize,
    ) -> Result<Vec<Item>, AdminError> {
        let after = after.map(parse_position).transpose()?;
        let mut rows = store.usage(&self.query, after.as_ref(), limit).await?;
        let is_total = self.columns.iter().all(|name| METRICS.contains(name));
        if is_total && after.is_none() && rows.is_empty() {
            // Without any usage the total is one row of zeros.
            rows.push(UsageRow::default());
        }
        Ok(rows.iter().map(|row| self.item(row)).collect())
    }
}

impl Usage {
    fn item(&self, row: &UsageRow) -> Item {
        let UsagePosition { period, names } = &row.position;
        let members = self.columns.iter().map(|name| {
            let value = match *name {
                "day" | "hour" => time_json(*period),
                "model" => json!(names[0]),
                "user_id" => json!(names[1]),
                "key_id" => json!(names[2]),
                "channel" if names[3].is_empty() => Value::Null,
                "channel" => json!(names[3]),
                "cost" => amount_json(row.cost),
                "requests" => json!(row.requests),
                "tokens" => json!(row.tokens),
                "images" => json!(row.images),
                "seconds" => json!(row.seconds),
                _ => json!(row.failed),
            };
            ((*name).to_owned(), value)
        });
        let position = std::iter::once(period.to_string()).chain(names.iter().cloned());
        Item {
            value: Value::Object(members.collect::<Map<_, _>>()),
            position: position.collect(),
        }
    }
}

fn parse_position(position: &[String]) -> Result<UsagePosition, AdminError> {
    let parsed = position.split_first().and_then(|(period, names)| {
        Some(UsagePosition {
            period: period.parse().ok()?,
            names: names.to_vec().try_into().ok()?,
        })
    });
    parsed.ok_or_else(|| AdminError::invalid("cursor", "is not a cursor of this list"))
}

/// The comma-separated names in a parameter, in the order of `known`. Empty if the parameter is absent.
fn parse_names<T: Copy>(
    call: &Call,
    parameter: &str,
    known: &[T],
    name: fn(T) -> &'static str,
) -> Result<Vec<T>, AdminError> {
    let given = call.query.list(parameter).unwrap_or_default();
    for (at, value) in given.iter().enumerate() {
        if !known.iter().any(|one| name(*one) == value) || given[..at].contains(value) {
            let names: Vec<_> = known.iter().map(|one| name(*one)).collect();
            let message = format!(
                "must be some of these, each once, separated by commas: {}",
                names.join(", ")
            );
            return Err(AdminError::invalid(parameter, message));
        }
    }
    let is_given = |one: &&T| given.iter().any(|value| value == name(**one));
    Ok(known.iter().filter(is_given).copied().collect())
}

async fn report(call: Call) -> Result<Reply, AdminError> {
    call.check_query()?;
    let usage = Usage::parse(&call, &GROUPS)?;
    usage.reply(&call).await
}

impl Usage {
    /// Parses the query; sums may be split by some of `groups`.
    ///
    /// # Errors
    /// 400 that names a parameter.
    pub(crate) fn parse(
        call: &Call,
        groups: &[(&'static str, &'static str)],
    ) -> Result<Self, AdminError> {
        let groups = parse_names(call, "group_by", groups, |group| group.0)?;
        let mut metrics = parse_names(call, "metric", &METRICS, |metric| metric)?;
        if metrics.is_empty() {
            metrics.extend(METRICS);
        }
        let has = |name: &str| groups.iter().any(|group| group.0 == name);
        if has("day") && has("hour") {
            return Err(AdminError::invalid(
                "group_by",
                "must not have both day and hour",
            ));
        }
        let period = match (has("day"), has("hour")) {
            (true, _) => Some(DAY),
            (_, true) => Some(HOUR),
            _ => None,
        };
        let (from, to) = call.query.window(call.now)?;
        let query = UsageQuery {
            period,
            by_model: has("model"),
            by_user: has("user"),
            by_key: has("key"),
            by_channel: has("channel"),
            from,
            to,
            models: call.query.list("model"),
            user_ids: call.query.list("user_id"),
            key_ids: call.query.list("key_id"),
            channels: call.query.list("channel"),
        };
        let columns = groups.iter().map(|group| group.1).chain(metrics).collect();
        Ok(Self { query, columns })
    }

    /// Replies with the sums and the time until which they are complete.
    ///
    /// # Errors
    /// 400 for an invalid `limit` or `cursor`.
    pub(crate) async fn reply(self, call: &Call) -> Result<Reply, AdminError> {
        // Reports also read usage that is not rolled up yet, so everything that was committed before now is included.
        let watermark = time_json(call.now);
        let reply = list::reply(call, self).await?;
        Ok(reply.with_member("watermark", watermark))
    }
}
