//! Simulated customers, who submit, poll, cancel, upload, download and chat while gateways are stopped and cut off, and the checks that everything
//! acknowledged to them is true.

mod accounts;
mod chat_costs;
mod chats;
mod customer;
mod final_check;
mod observations;
mod record_check;
mod submission;

pub(crate) use accounts::{PRICES, Service, create_accounts};
pub(crate) use chats::cost_of as cost_of_chat;
pub(crate) use customer::Customer;
pub(crate) use final_check::{audit_and_stop, check as final_check};
pub(crate) use observations::{Observations, count};
pub(crate) use record_check::{images_of as images_of_record, nanos as billionths};
