//! Users, keys, tasks, chats, webhooks and the money ledger, in SQLite or PostgreSQL.
//!
//! Reads are sent directly to the database. Every write is queued to one group-commit writer per process (`writer`) and is on disk when its call
//! returns. Only `ledger` moves money. Each aggregate has one file or folder with its types, its SQL and its methods of [`Store`].

mod access_changes;
mod admin;
mod alerts;
mod attempts;
mod audit;
mod backup;
mod chats;
mod db;
mod error;
mod grants;
mod keys;
mod ledger;
mod list_blocks;
mod nodes;
mod partitions;
#[cfg(test)]
mod query_plans;
mod replica;
mod retention;
mod schema;
mod slow_queries;
mod stable_hash;
mod store;
mod tail;
mod task_versions;
mod tasks;
mod totals;
mod uploads;
mod usage;
mod users;
mod webhook_secrets;
mod webhooks;
mod writer;

pub use access_changes::{AccessChange, AccessChanges};
pub use admin::{
    Admin, AdminIdempotency, AdminPatch, AdminRejection, AdminReply, AdminRequest, AdminResult,
    AdminSignIn, AdminToken, AlertPatch, AttemptRecord, AuditRecord, Budget, BudgetFilter,
    BudgetPatch, ChannelPause, ChargeRecord, ChatFilter, ChatItem, ConfigurationChange,
    ConfigurationKind, ConfigurationRow, ConfigurationWrite, Entry, EntryFilter, EntryPosition,
    Event, EventFilter, KeyFilter, KeyPatch, NewAdmin, NewAdminKey, NewAdminToken, NewAlert,
    NewBudget, NewCredit, NewPortalSession, NewRefund, NewSession, NewUser, OidcIdentity,
    OidcRefresh, OidcUsers, PageStart, PauseWrite, PortalSession, Session, ShowRow, SignIn,
    SignInAttempt, SignInAttemptOutcome, StoredConfiguration, TaskDetails, TaskFilter, TaskItem,
    TrailVerification, UserFilter, UserPatch, amount_json, time_json,
};
pub use alerts::deliveries::{AlertAttempt, AlertDelivery, DueAlert};
pub use alerts::{Alert, AlertKind};
pub use attempts::{AttemptEnd, NewAttempt, ProviderJob, QueuedAttempt, StartOutcome, TaskRetry};
pub use audit::{AuditViolation, Auditor};
pub use backup::{back_up_sqlite, restore_sqlite};
pub use chats::charge_sums::ChatChargeSums;
pub use chats::hold::ChatHold;
pub use chats::parts::{ChatPart, ChatParts};
pub use chats::prices::{TokenCounts, TokenPrices};
pub use chats::reconcile::{ChannelUsage, Reconciled};
pub use chats::record::{ChatEnd, NewChat, SettleOutcome};
pub use db::{known_schema_version, schema_sql};
pub use error::StoreError;
pub use grants::GrantReservation;
pub use keys::{Key, KeyLimits, NewKey};
pub use ledger::account::Rejection;
pub use ledger::budgets::{BudgetOwner, BudgetPeriod, ExceededBudget};
pub use ledger::charges::{Charge, Delivered};
pub use ledger::reservations::Reservation;
pub use nodes::NodeRecord;
pub use schema::{DatabaseState, inspect_database};
pub use store::{DatabaseLocation, Store};
pub use tail::{InvalidPosition, TailPosition, TailRow};
pub use tasks::claim::{ClaimedTasks, FairShare, LeasedTask, TaskClaim};
pub use tasks::finish::{CancelOutcome, FinishOutcome, TaskEnd, TaskFinish};
pub use tasks::record::{Task, TaskPage};
pub use tasks::shards::{FOREIGN_DELAY, SHARDS, Shards};
pub use tasks::submit::{IdempotencyRecord, NewTask, SubmitOutcome};
pub use tasks::trace::{LastAttempt, TaskTraceRow};
pub use totals::StoreTotals;
pub use uploads::{NewUpload, UploadLimits, UploadRejection};
pub use usage::report::{UsagePosition, UsageQuery, UsageRow};
pub use users::{RateLimits, User};
pub use webhooks::{
    DeliveryAttempt, DeliveryResult, DueWebhook, NextDelivery, WebhookLog, WebhookState,
};
pub use writer::WriterStats;
