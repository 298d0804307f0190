//! Customers are simulated clients: they submit, poll and cancel tasks, upload and download files, and send chats while gateways are killed,
//! restarted and disconnected. The checks compare everything that the gateways acknowledged to them with what the gateways report at the end.

mod accounts;
mod chat_costs;
mod chats;
mod customer;
mod final_check;
mod observations;
mod record_check;
mod submission;

pub(crate) use accounts::{PRICES, Service, create_accounts};
pub(crate) use chats::cost_of_chat;
pub(crate) use customer::Customer;
pub(crate) use final_check::{audit_and_stop, check as final_check};
pub(crate) use observations::{Observations, increment};
pub(crate) use record_check::{billionths, image_count};
