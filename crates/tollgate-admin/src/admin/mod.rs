//! The admin API under `/admin/v1` (docs/admin.md). `endpoints` lists all endpoints, and each resource has its own file. The other files are shared
//! by all resources: authentication and scopes, bodies, queries, lists, replies and errors.

mod admins;
mod alerts;
mod audits;
mod authenticate;
pub(crate) mod budgets;
pub mod call;
mod channel_writes;
mod channels;
pub(crate) mod chats;
mod config;
mod configured;
mod csv;
mod custom_models;
pub mod endpoint;
pub mod endpoints;
pub(crate) mod entries;
mod events;
mod export;
pub mod fields;
pub(crate) mod keys;
pub mod list;
mod me;
mod models;
pub mod openapi;
mod prices;
mod query;
mod quote;
mod refunds;
mod reply;
pub mod scope;
mod search;
mod sessions;
mod tail;
pub(crate) mod tasks;
mod tokens;
pub(crate) mod usage;
mod users;

pub use admins::sign_in_link;
pub use authenticate::{Actor, ActorKind};
pub(crate) use authenticate::{
    COOKIE_AGE_S, USE_INTERVAL, admin_session, check_same_origin, is_plain_loopback,
};
pub use call::{Call, written};
pub use endpoint::Endpoint;
pub use export::configuration_fingerprint;
pub use fields::Fields;
pub use list::{Item, Listing};
pub(crate) use models::list_models;
pub use query::Query;
pub use reply::Reply;
pub(crate) use sessions::{admin_cookie_header, methods as sign_in_methods};
