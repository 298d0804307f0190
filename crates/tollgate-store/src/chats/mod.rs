//! Chat requests: prices and token counts, their record, holding and settling money, and releasing the holds of nodes that died.

pub(crate) mod charge_sums;
pub(crate) mod hold;
pub(crate) mod orphans;
pub(crate) mod parts;
pub(crate) mod prices;
pub(crate) mod reconcile;
pub(crate) mod record;
pub(crate) mod settle;
