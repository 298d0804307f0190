//! Charges of tasks and chats, and their refunds.

use async_trait::async_trait;
use serde_json::{Value, json};
use tollgate_core::Amount;

use super::entries::Entry;
use super::json::amount_json;
use super::request::AdminRequest;
use super::write::{AdminChange, AdminRejection, AdminReply, AdminResult, Applied, Change};
use crate::db::{DbError, args};
use crate::error::StoreError;
use crate::ledger::refunds::{READ_CHARGE, READ_CHAT_CHARGE, read_charge, refund};
use crate::store::Store;
use crate::task_versions::TaskVersions;
use crate::writer::AccountIds;
use crate::writer::batch::Batch;

pub use crate::ledger::refunds::ChargeRecord;

impl ChargeRecord {
    /// The charge as a JSON object of the admin API; `unit` is the unit of `units`.
    pub fn to_admin_json(&self, unit: Option<&str>) -> Value {
        let settled = self.settled.unwrap_or(Amount::ZERO);
        let released = self
            .settled
            .map(|settled| (self.held - settled).max(Amount::ZERO));
        json!({
            "price": self.price.map(amount_json),
            "units": self.units,
            "unit": unit,
            "held": amount_json(self.held),
            "settled": amount_json(settled),
            "released": amount_json(released.unwrap_or(Amount::ZERO)),
            "refunded": amount_json(self.refunded),
        })
    }
}

/// A refund to make.
#[derive(Debug, Clone)]
pub struct NewRefund {
    /// The amount, more than 0; `None` refunds all that is left.
    pub amount: Option<Amount>,
    /// The reason.
    pub reason: String,
    /// The unit of the charge, for the reply.
    pub unit: Option<&'static str>,
}

/// Charges and refunds.
impl Store {
    /// The charge of a task of any user; `None` if there is no such task.
    pub async fn task_charge(&self, task_id: &str) -> Result<Option<ChargeRecord>, StoreError> {
        self.first(&READ_CHARGE, args![task_id], ChargeRecord::of_task)
            .await
    }

    /// The charge of a chat of any user; `None` if there is no such chat.
    pub async fn chat_charge(&self, chat_id: &str) -> Result<Option<ChargeRecord>, StoreError> {
        self.first(&READ_CHAT_CHARGE, args![chat_id], ChargeRecord::of_chat)
            .await
    }

    /// Refunds a part of what a task settled, or all of it. `charge` is the task's charge as it was read.
    pub async fn admin_refund_task(
        &self,
        request: &AdminRequest,
        charge: ChargeRecord,
        new: NewRefund,
    ) -> AdminResult {
        let refund = RefundCharge {
            charge,
            is_chat: false,
            new,
        };
        self.admin_write(request, refund).await
    }

    /// Refunds a part of what a chat settled, or all of it. `charge` is the chat's charge as it was read.
    pub async fn admin_refund_chat(
        &self,
        request: &AdminRequest,
        charge: ChargeRecord,
        new: NewRefund,
    ) -> AdminResult {
        let refund = RefundCharge {
            charge,
            is_chat: true,
            new,
        };
        self.admin_write(request, refund).await
    }
}

struct RefundCharge {
    /// The charge as it was read before; the batch reads it again.
    charge: ChargeRecord,
    is_chat: bool,
    new: NewRefund,
}

#[async_trait(?Send)]
impl AdminChange for RefundCharge {
    fn accounts(&self) -> AccountIds<'_> {
        AccountIds::both(&self.charge.user_id, &self.charge.key_id)
    }

    async fn apply(
        &self,
        request: &AdminRequest,
        batch: &mut Batch<'_, '_>,
    ) -> Result<Applied, DbError> {
        let id = &self.charge.id;
        let Some(charge) = read_charge(batch, id, self.is_chat).await? else {
            return Ok(AdminRejection::NotFound.into());
        };
        let left = charge.left();
        let amount = self.new.amount.unwrap_or(left);
        if let Some(rejection) = reject_refund(&charge, amount) {
            return Ok(rejection.into());
        }
        let reason = &self.new.reason;
        let reference = refund(batch, &charge, self.is_chat, amount, reason, request.now).await?;
        let entry = Entry {
            object_id: reference,
            kind: "refund".to_owned(),
            user_id: charge.user_id.clone(),
            key_id: Some(charge.key_id.clone()),
            amount,
            reason: Some(reason.clone()),
            at: request.now,
            reference: None,
        }
        .to_json();
        let refunded = ChargeRecord {
            refunded: charge.refunded + amount,
            ..charge
        };
        let (action, object_type) = match self.is_chat {
            true => ("chat.refund", "chat"),
            false => ("task.refund", "task"),
        };
        let body = json!({"entry": entry, "charge": refunded.to_admin_json(self.new.unit)});
        Ok(Applied::Changed(Change {
            action,
            object_type,
            object_id: id.clone(),
            before: None,
            after: Some(entry),
            reply: AdminReply::new(201, body, None),
        }))
    }

    fn note_changed_tasks(&self, versions: &TaskVersions) {
        versions.raise(&self.charge.id);
    }
}

/// Why `amount` cannot be refunded; `None` if it can.
fn reject_refund(charge: &ChargeRecord, amount: Amount) -> Option<AdminRejection> {
    let Some(settled) = charge.settled else {
        let message = "it has not ended yet: what it costs is not known";
        return Some(AdminRejection::conflict("not_finished", None, message));
    };
    let left = charge.left();
    if left == Amount::ZERO {
        let message = match settled {
            Amount::ZERO => "it cost nothing".to_owned(),
            _ => format!("all of the {settled} that it cost was refunded"),
        };
        return Some(AdminRejection::conflict("nothing_to_refund", None, message));
    }
    (amount > left).then(|| {
        let message = format!(
            "{settled} was settled and {} of it refunded: at most {left} can be refunded",
            charge.refunded
        );
        AdminRejection::conflict("refund_exceeds_settled", Some("amount"), message)
    })
}
