//! Channels, prices and models that the admin API writes (table `configuration`), and pauses of channels. Every write raises `config_version` in the
//! same transaction; nodes poll it.

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::{Value, json};
use tollgate_core::{Millis, clock};

use super::request::AdminRequest;
use super::write::{AdminChange, AdminRejection, AdminReply, AdminResult};
use super::write::{Applied, Change};
use crate::db::{DbError, Row, Sql, args};
use crate::error::StoreError;
use crate::store::Store;
use crate::tasks::queue_table::QueueSql;
use crate::writer::Write;
use crate::writer::batch::Batch;

macro_rules! select_rows {
    () => {
        "SELECT kind, name, body, created_at, updated_at, deleted_at, version FROM configuration "
    };
}
const ROWS: Sql = Sql::both(concat!(select_rows!(), "ORDER BY kind, name"));
const ROW: Sql = Sql::both(concat!(select_rows!(), "WHERE kind = $1 AND name = $2"));
const UPSERT: Sql = Sql::both(
    "INSERT INTO configuration (kind, name, body, created_at, updated_at, deleted_at, version)
     VALUES ($1, $2, $3, $4, $5, $6, $7)
     ON CONFLICT (kind, name) DO UPDATE SET body = excluded.body, created_at = excluded.created_at,
        updated_at = excluded.updated_at, deleted_at = excluded.deleted_at, version = excluded.version",
);
const DELETE: Sql = Sql::both("DELETE FROM configuration WHERE kind = $1 AND name = $2");
const DELETE_UNUSED: QueueSql = QueueSql {
    queue: Sql::both(
        "DELETE FROM configuration WHERE deleted_at <= $1 AND NOT EXISTS
            (SELECT 1 FROM queue JOIN attempts ON attempts.task_id = queue.task_id
             WHERE attempts.channel = configuration.name AND attempts.ended_at IS NULL)",
    ),
    tasks: Sql::both(
        "DELETE FROM configuration WHERE deleted_at <= $1 AND NOT EXISTS
            (SELECT 1 FROM tasks JOIN attempts ON attempts.task_id = tasks.id
             WHERE tasks.state < 2 AND attempts.channel = configuration.name AND attempts.ended_at IS NULL)",
    ),
};
const VERSION: Sql = Sql::both("SELECT value FROM meta WHERE name = 'config_version'");
/// The end of the trail is locked before the row is read, so that writes of several nodes run one after the other and lock in the same order.
const LOCK_TRAIL: Sql = Sql::per_database(
    "SELECT value FROM meta WHERE name = 'admin_event_seq'",
    "SELECT value FROM meta WHERE name = 'admin_event_seq' FOR UPDATE",
);
const RAISE_VERSION: Sql =
    Sql::both("UPDATE meta SET value = value + 1 WHERE name = 'config_version'");

/// The minimum time that the row of a deleted channel is kept: a node may have started a job on it just before it read the deletion.
const KEEP_DELETED: Millis = clock::HOUR;
/// The kind of the rows that pause a channel.
const PAUSE: &str = "pause";

/// The kind of object that a row configures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigurationKind {
    /// A channel.
    Channel,
    /// The price of a model.
    Price,
    /// A model that the operator adds.
    Model,
}

impl ConfigurationKind {
    /// `channel`, `price` or `model`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Channel => "channel",
            Self::Price => "price",
            Self::Model => "model",
        }
    }

    /// The action in the trail for creating, changing or deleting an object of this kind.
    fn action(self, verb: Verb) -> &'static str {
        match (self, verb) {
            (Self::Channel, Verb::Create) => "channel.create",
            (Self::Channel, Verb::Update) => "channel.update",
            (Self::Channel, Verb::Delete) => "channel.delete",
            (Self::Price, Verb::Create) => "price.create",
            (Self::Price, Verb::Update) => "price.update",
            (Self::Price, Verb::Delete) => "price.delete",
            (Self::Model, Verb::Create) => "model.create",
            (Self::Model, Verb::Update) => "model.update",
            (Self::Model, Verb::Delete) => "model.delete",
        }
    }
}

#[derive(Clone, Copy)]
enum Verb {
    Create,
    Update,
    Delete,
}

/// A channel, price or model in the database.
#[derive(Debug, Clone, PartialEq)]
pub struct ConfigurationRow {
    /// The channel's name, or the model's.
    pub name: String,
    /// Its settings: a JSON object.
    pub body: Value,
    /// When it was created.
    pub created_at: Millis,
    /// When it was changed last.
    pub updated_at: Millis,
    /// The row's version, from 1 up.
    pub version: i64,
}

/// A pause of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelPause {
    /// The channel's name.
    pub channel: String,
    /// When it ends; `None` if it lasts until somebody wakes the channel.
    pub until: Option<Millis>,
}

/// Everything that the database configures.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StoredConfiguration {
    /// The `config_version` that was read before the rows, which are at least as new.
    pub version: i64,
    /// The channels, by name.
    pub channels: Vec<ConfigurationRow>,
    /// Deleted channels whose provider may still have jobs of ours.
    pub deleted_channels: Vec<ConfigurationRow>,
    /// The prices, by model.
    pub prices: Vec<ConfigurationRow>,
    /// The models, by name.
    pub models: Vec<ConfigurationRow>,
    /// The pauses, including those that have ended.
    pub pauses: Vec<ChannelPause>,
}

impl StoredConfiguration {
    /// The rows of a kind, sorted by name.
    pub fn rows(&self, kind: ConfigurationKind) -> &[ConfigurationRow] {
        match kind {
            ConfigurationKind::Channel => &self.channels,
            ConfigurationKind::Price => &self.prices,
            ConfigurationKind::Model => &self.models,
        }
    }

    /// Whether the channel is paused at that time.
    pub fn is_paused(&self, channel: &str, now: Millis) -> bool {
        let mut pauses = self.pauses.iter();
        pauses.any(|pause| pause.channel == channel && pause.until.is_none_or(|until| until > now))
    }
}

/// A change of one row.
#[derive(Debug, Clone, PartialEq)]
pub enum ConfigurationChange {
    /// Creates the row with these settings.
    Create(Value),
    /// Replaces the settings of the row of that version.
    Replace(Value, i64),
    /// Deletes the row of that version.
    Delete(i64),
}

/// A function that converts a row to JSON for replies and the trail.
pub type ShowRow = Arc<dyn Fn(&ConfigurationRow) -> Value + Send + Sync>;

/// A write of one row.
pub struct ConfigurationWrite {
    /// The kind of object.
    pub kind: ConfigurationKind,
    /// The channel's name, or the model's.
    pub name: String,
    /// The change.
    pub change: ConfigurationChange,
    /// Converts the row to JSON without secrets.
    pub show: ShowRow,
}

/// Pauses a channel or ends its pause.
pub struct PauseWrite {
    /// The channel's name.
    pub channel: String,
    /// `None` ends the pause, `Some(None)` pauses until the channel is woken.
    pub until: Option<Option<Millis>>,
    /// The channel as JSON, without `paused`, and its version.
    pub shown: (Value, i64),
}

/// Configuration in the database.
impl Store {
    /// Creates, changes or deletes a channel, price or model.
    pub async fn write_configuration(
        &self,
        request: &AdminRequest,
        write: ConfigurationWrite,
    ) -> AdminResult {
        self.admin_write(request, write).await
    }

    /// Pauses a channel, of the file or the database, or ends its pause.
    pub async fn pause_channel(&self, request: &AdminRequest, pause: PauseWrite) -> AdminResult {
        self.admin_write(request, pause).await
    }

    /// The version of the configuration, which every change raises.
    ///
    /// # Errors
    /// The database's.
    pub async fn config_version(&self) -> Result<i64, StoreError> {
        let version = self.first(&VERSION, args![], |row| row.int(0)).await?;
        Ok(version.unwrap_or_default())
    }

    /// Everything that the database configures.
    ///
    /// # Errors
    /// The database's.
    pub async fn stored_configuration(&self) -> Result<StoredConfiguration, StoreError> {
        // Rows that a change adds in between are newer than the version: the next poll reads the configuration again.
        let mut stored = StoredConfiguration {
            version: self.config_version().await?,
            ..StoredConfiguration::default()
        };
        for mut row in self.query(&ROWS, args![]).await? {
            let (kind, deleted_at) = (row.text(0)?, row.opt_int(5)?);
            let row = read_row(&mut row)?;
            match kind.as_str() {
                "channel" if deleted_at.is_some() => stored.deleted_channels.push(row),
                "channel" => stored.channels.push(row),
                "price" => stored.prices.push(row),
                "model" => stored.models.push(row),
                _ => stored.pauses.push(ChannelPause {
                    until: row.body["until"].as_i64(),
                    channel: row.name,
                }),
            }
        }
        Ok(stored)
    }

    /// Deletes the rows of deleted channels whose provider has no jobs of ours any more.
    ///
    /// # Errors
    /// The database's.
    pub async fn purge_deleted_channels(&self, now: Millis) -> Result<(), StoreError> {
        self.write(PurgeDeleted(now - KEEP_DELETED)).await
    }
}

#[async_trait(?Send)]
impl AdminChange for ConfigurationWrite {
    async fn apply(
        &self,
        request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Applied, DbError> {
        batch.first(&LOCK_TRAIL, args![]).await?;
        let key = args![self.kind.name(), &self.name];
        let found = match batch.first(&ROW, key).await? {
            Some(row) if row.opt_int(5)?.is_some() => None,
            Some(mut row) => Some(read_row(&mut row)?),
            None => None,
        };
        match (&self.change, found) {
            (ConfigurationChange::Create(body), None) => self.create(request, batch, body),
            (ConfigurationChange::Create(_), Some(row)) => Ok(self.already_there(&row)),
            (_, None) => Ok(AdminRejection::NotFound.into()),
            (ConfigurationChange::Replace(_, version), Some(row)) if row.version != *version => {
                Ok(self.stale(&row))
            }
            (ConfigurationChange::Replace(body, _), Some(row)) => {
                self.replace(request, batch, body, &row)
            }
            (ConfigurationChange::Delete(version), Some(row)) if row.version != *version => {
                Ok(self.stale(&row))
            }
            (ConfigurationChange::Delete(_), Some(row)) => self.delete(request, batch, &row),
        }
    }
}

impl ConfigurationWrite {
    fn stale(&self, row: &ConfigurationRow) -> Applied {
        Applied::Rejected(AdminRejection::Stale {
            current: (self.show)(row),
            version: row.version,
        })
    }

    fn already_there(&self, row: &ConfigurationRow) -> Applied {
        if self.kind == ConfigurationKind::Price {
            return self.stale(row);
        }
        let message = format!("there is a {} {:?} already", self.kind.name(), self.name);
        AdminRejection::conflict("name_taken", Some("name"), message).into()
    }

    fn create(
        &self,
        request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
        body: &Value,
    ) -> Result<Applied, DbError> {
        if self.kind == ConfigurationKind::Channel {
            // A pause that was set for an earlier channel of that name must not apply to this one.
            batch.queue(&DELETE, args![PAUSE, &self.name])?;
        }
        let row = ConfigurationRow {
            name: self.name.clone(),
            body: body.clone(),
            created_at: request.now,
            updated_at: request.now,
            version: 1,
        };
        self.put(batch, &row, None)?;
        let after = (self.show)(&row);
        let reply = AdminReply::new(201, after.clone(), Some(1));
        Ok(self.changed(Verb::Create, None, Some(after), reply))
    }

    fn replace(
        &self,
        request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
        body: &Value,
        row: &ConfigurationRow,
    ) -> Result<Applied, DbError> {
        let before = (self.show)(row);
        if row.body == *body {
            let reply = AdminReply::new(200, before, Some(row.version));
            return Ok(Applied::Unchanged(reply));
        }
        let row = ConfigurationRow {
            body: body.clone(),
            updated_at: request.now,
            version: row.version + 1,
            ..row.clone()
        };
        self.put(batch, &row, None)?;
        let after = (self.show)(&row);
        let reply = AdminReply::new(200, after.clone(), Some(row.version));
        Ok(self.changed(Verb::Update, Some(before), Some(after), reply))
    }

    fn delete(
        &self,
        request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
        row: &ConfigurationRow,
    ) -> Result<Applied, DbError> {
        if self.kind == ConfigurationKind::Channel {
            self.put(batch, row, Some(request.now))?;
        } else {
            batch.queue(&DELETE, args![self.kind.name(), &self.name])?;
            batch.queue(&RAISE_VERSION, args![])?;
        }
        let reply = AdminReply::new(204, Value::Null, None);
        Ok(self.changed(Verb::Delete, Some((self.show)(row)), None, reply))
    }

    fn put(
        &self,
        batch: &mut Batch<'_, '_>,
        row: &ConfigurationRow,
        deleted_at: Option<Millis>,
    ) -> Result<(), DbError> {
        put_row(batch, self.kind.name(), row, deleted_at)
    }

    fn changed(
        &self,
        verb: Verb,
        before: Option<Value>,
        after: Option<Value>,
        reply: AdminReply,
    ) -> Applied {
        Applied::Changed(Change {
            action: self.kind.action(verb),
            object_type: self.kind.name(),
            object_id: self.name.clone(),
            before,
            after,
            reply,
        })
    }
}

#[async_trait(?Send)]
impl AdminChange for PauseWrite {
    async fn apply(
        &self,
        request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Applied, DbError> {
        batch.first(&LOCK_TRAIL, args![]).await?;
        let found = batch.first(&ROW, args![PAUSE, &self.channel]).await?;
        let holds = |until: &Option<Millis>| until.is_none_or(|until| until > request.now);
        let before = match found {
            Some(mut row) => Some(read_row(&mut row)?.body["until"].as_i64()).filter(holds),
            None => None,
        };
        let show = |pause: Option<Option<Millis>>| {
            let mut shown = self.shown.0.clone();
            shown["paused"] = pause.is_some().into();
            shown
        };
        let reply = AdminReply::new(200, show(self.until), Some(self.shown.1));
        if before == self.until {
            return Ok(Applied::Unchanged(reply));
        }
        match self.until {
            Some(until) => {
                let row = ConfigurationRow {
                    name: self.channel.clone(),
                    body: json!({ "until": until }),
                    created_at: request.now,
                    updated_at: request.now,
                    version: 1,
                };
                put_row(batch, PAUSE, &row, None)?;
            }
            None => {
                batch.queue(&DELETE, args![PAUSE, &self.channel])?;
                batch.queue(&RAISE_VERSION, args![])?;
            }
        }
        Ok(Applied::Changed(Change {
            action: match self.until {
                Some(_) => "channel.pause",
                None => "channel.wake",
            },
            object_type: "channel",
            object_id: self.channel.clone(),
            before: Some(show(before)),
            after: Some(show(self.until)),
            reply,
        }))
    }
}

struct PurgeDeleted(Millis);

#[async_trait(?Send)]
impl Write for PurgeDeleted {
    type Out = ();

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<(), DbError> {
        batch.queue(batch.on_queue(&DELETE_UNUSED), args![self.0])
    }
}

/// Writes a row and raises `config_version`.
fn put_row(
    batch: &mut Batch<'_, '_>,
    kind: &'static str,
    row: &ConfigurationRow,
    deleted_at: Option<Millis>,
) -> Result<(), DbError> {
    let body = row.body.to_string();
    batch.queue(
        &UPSERT,
        args![
            kind,
            &row.name,
            &body,
            row.created_at,
            row.updated_at,
            deleted_at,
            row.version
        ],
    )?;
    batch.queue(&RAISE_VERSION, args![])
}

fn read_row(row: &mut Row) -> Result<ConfigurationRow, DbError> {
    let body = row.text(2)?;
    Ok(ConfigurationRow {
        name: row.text(1)?,
        body: serde_json::from_str(&body)
            .map_err(|e| DbError::UnexpectedData(format!("a row of the configuration: {e}")))?,
        created_at: row.int(3)?,
        updated_at: row.int(4)?,
        version: row.int(6)?,
    })
}
