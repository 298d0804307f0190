//! The reads and writes of the admin API. Every write is applied by [`write`]: the change, its event in the trail and the reply for requests that
//! repeat the idempotency key are one transaction. Each kind of object has its own file.

mod admins;
mod alerts;
mod audits;
mod budgets;
pub(crate) mod chats;
mod commands;
mod configuration;
mod entries;
mod events;
pub(crate) mod json;
mod keys;
mod oidc;
pub(crate) mod pages;
mod portal;
mod refunds;
mod request;
pub(crate) mod retention;
mod sessions;
mod sign_in_nonce;
mod tasks;
mod tokens;
mod users;
mod write;

pub use admins::{Admin, AdminPatch, AdminSignIn, NewAdmin};
pub use alerts::{AlertPatch, NewAlert};
pub use audits::AuditRecord;
pub use budgets::{Budget, BudgetFilter, BudgetPatch, NewBudget};
pub use chats::{ChatFilter, ChatItem};
pub use configuration::{
    ChannelPause, ConfigurationChange, ConfigurationKind, ConfigurationRow, ConfigurationWrite,
    PauseWrite, ShowRow, StoredConfiguration,
};
pub use entries::{Entry, EntryFilter, EntryPosition, NewCredit};
pub use events::{Event, EventFilter, TrailVerification};
pub use json::{amount_json, time_json};
pub use keys::{KeyFilter, KeyPatch, NewAdminKey};
pub use oidc::{OidcIdentity, OidcRefresh, OidcUsers};
pub use pages::PageStart;
pub use portal::{NewPortalSession, PortalSession};
pub use refunds::{ChargeRecord, NewRefund};
pub use request::{AdminIdempotency, AdminRequest};
pub use sessions::{NewSession, Session, SignIn, SignInAttempt, SignInAttemptOutcome};
pub use tasks::{AttemptRecord, TaskDetails, TaskFilter, TaskItem};
pub use tokens::{AdminToken, NewAdminToken};
pub use users::{NewUser, UserFilter, UserPatch};
pub use write::{AdminRejection, AdminReply, AdminResult};
