//! What the admin API writes and reads. Every write goes through [`write`]: the change, its event in the trail and the reply that a
//! repeated idempotency key gets are one transaction. One file for each kind of object.

mod admins;
mod alerts;
mod audits;
mod budgets;
mod chats;
mod configuration;
mod entries;
mod events;
mod json;
mod keys;
mod oidc;
mod portal;
mod refunds;
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
pub(crate) use chats::chat_error_code;
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
pub use portal::{NewPortalSession, PortalSession};
pub use refunds::{ChargeRecord, NewRefund};
pub use sessions::{NewSession, Session, SignIn, SignInAttempt, SignInFailures};
pub use tasks::{AttemptRecord, TaskDetails, TaskFilter, TaskItem};
pub use tokens::{AdminToken, NewAdminToken};
pub use users::{NewUser, UserFilter, UserPatch};
pub use write::{AdminIdempotency, AdminRejection, AdminReply, AdminRequest, AdminResult};

/// Where the next page of a list begins: after the row of this time and id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageStart {
    /// The row's time.
    pub at: tollgate_core::Millis,
    /// The row's id.
    pub id: String,
}

/// The values of `at` and `id` with which a list, newest first, begins before every row.
const FIRST_PAGE: (i64, &str) = (i64::MAX, "~");

/// The position of a page as parameters.
pub(crate) fn page_args(after: Option<&PageStart>) -> (i64, &str) {
    after.map_or(FIRST_PAGE, |after| (after.at, after.id.as_str()))
}

/// The values of a filter as a JSON array for the statements of [`one_of`]; `None` if the filter is not set.
pub(crate) fn list_arg(values: Option<&Vec<String>>) -> Option<String> {
    values.map(|values| serde_json::json!(values).to_string())
}

/// A condition: the column has one of the values of a JSON array, or the parameter is null.
macro_rules! one_of {
    ($database:ident $column:literal $parameter:literal) => {
        $crate::admin::one_of!($database ($column) $parameter)
    };
    (sqlite ($($column:tt)+) $parameter:literal) => {
        concat!(
            "(",
            $parameter,
            " IS NULL OR ",
            $($column)+,
            " IN (SELECT value FROM json_each(",
            $parameter,
            ")))"
        )
    };
    (postgres ($($column:tt)+) $parameter:literal) => {
        concat!(
            "(CAST(",
            $parameter,
            " AS TEXT) IS NULL OR ",
            $($column)+,
            " = ANY (ARRAY(SELECT json_array_elements_text(CAST(CAST(",
            $parameter,
            " AS TEXT) AS json)))))"
        )
    };
}
pub(crate) use one_of;
