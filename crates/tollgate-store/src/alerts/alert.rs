//! An alert: a condition, and where its messages are sent.

use tollgate_core::{Amount, Millis};

/// The condition of an alert.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AlertKind {
    /// The balance of a limited user is below the threshold, an amount.
    LowBalance,
    /// The part of a budget in the threshold has been spent.
    Budget,
    /// The circuit of a channel is open on a node.
    CircuitOpen,
    /// A task has waited longer than the threshold, in seconds.
    QueueAge,
    /// An audit has found violations.
    AuditViolation,
    /// A task's webhook was given up.
    WebhookGivenUp,
    /// A limited user owes money.
    Debt,
}

impl AlertKind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::LowBalance,
        Self::Budget,
        Self::CircuitOpen,
        Self::QueueAge,
        Self::AuditViolation,
        Self::WebhookGivenUp,
        Self::Debt,
    ];

    /// `low_balance`, `budget`, …
    pub fn name(self) -> &'static str {
        match self {
            Self::LowBalance => "low_balance",
            Self::Budget => "budget",
            Self::CircuitOpen => "circuit_open",
            Self::QueueAge => "queue_age",
            Self::AuditViolation => "audit_violation",
            Self::WebhookGivenUp => "webhook_given_up",
            Self::Debt => "debt",
        }
    }

    /// The kind with that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether it has a threshold.
    pub fn has_threshold(self) -> bool {
        matches!(self, Self::LowBalance | Self::Budget | Self::QueueAge)
    }
}

/// A condition that an operator wants to be notified of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alert {
    /// `alert_` and 16 random characters.
    pub id: String,
    /// The condition.
    pub kind: AlertKind,
    /// An amount, a part (0 to 1), or seconds.
    pub threshold: Option<Amount>,
    /// The URL that messages are posted to.
    pub url: String,
    /// Whether it is checked.
    pub enabled: bool,
    /// When it was created.
    pub created_at: Millis,
    /// Goes up with every change.
    pub version: i64,
}
