//! Measures plain chats with and without a client that pages through lists at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use super::super::chat::Setup;
use super::super::load::{self, Measurement};
use super::super::table::Table;
use super::client::Client;

const CONNECTIONS: usize = 16;
/// The pause between two pages.
const PAUSE: Duration = Duration::from_millis(100);
const TARGET: f64 = 0.95;
/// The pages that the client requests, in turn.
const PATHS: [&str; 6] = [
    "/chats?limit=50",
    "/chats?model=none",
    "/tasks?state=failed",
    "/entries?user_id=user_bench000017",
    "/usage?group_by=day,model",
    "/chats?user_id=user_rare",
];

/// Measures chats per second and the gateway's processor time per chat, in alternation.
pub(super) async fn measure(
    setup: &Setup,
    name: &str,
    seconds: u64,
    table: &mut Table,
) -> Result<(), String> {
    let target = setup.gateway_target_with_hold()?;
    let address = setup.gateway.address();
    let mut sums = [Measurement::default(); 2];
    let pages = Arc::new(AtomicU64::new(0));
    for turn in 0..2 * seconds {
        let has_pages = matches!(turn % 4, 1 | 2);
        let is_over = Arc::new(AtomicBool::new(!has_pages));
        let client = tokio::spawn(page_through(
            address.clone(),
            Arc::clone(&is_over),
            Arc::clone(&pages),
        ));
        let measured = load::run(&target, CONNECTIONS, 1).await;
        is_over.store(true, Ordering::Relaxed);
        client.await.map_err(|e| e.to_string())??;
        let sum = &mut sums[usize::from(has_pages)];
        *sum = sum.plus(measured?);
    }
    let [alone, beside] = sums;
    for (what, measured) in [("alone", alone), ("beside lists", beside)] {
        measured.add_to_table(&format!("{name}: plain chat, {what}, "), table);
    }
    let pages = pages.load(Ordering::Relaxed);
    table.note(
        format!("{name}: pages beside plain chats"),
        pages.to_string(),
    );
    table.at_least(
        &format!("{name}: plain chats beside lists, ratio of rates"),
        TARGET,
        beside.rate() / alone.rate(),
    );
    Ok(())
}

async fn page_through(
    address: String,
    is_over: Arc<AtomicBool>,
    pages: Arc<AtomicU64>,
) -> Result<(), String> {
    let mut client = Client::open(&address).await?;
    for path in PATHS.iter().cycle() {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        client.get(path).await?;
        pages.fetch_add(1, Ordering::Relaxed);
        tokio::time::sleep(PAUSE).await;
    }
    Ok(())
}
