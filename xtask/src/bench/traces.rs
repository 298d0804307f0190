//! Measures what traces cost: plain chats on three gateways, in alternation, that record no traces, one in a hundred, and all of them. The collector
//! accepts whatever it receives.

use std::path::Path;

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use tokio::net::TcpListener;

use super::chat::Setup;
use super::load::{self, Target};
use super::table::Table;

const CONNECTIONS: usize = 32;
/// The percentage of traces that are recorded; `None` for no traces.
const PERCENT: [Option<u32>; 3] = [None, Some(1), Some(100)];

pub(super) fn measure(binary: &Path, seconds: u64, table: &mut Table) -> Result<(), String> {
    eprintln!("traces");
    let runtime = tokio::runtime::Runtime::new().map_err(|e| e.to_string())?;
    runtime.block_on(async {
        let collector = serve_collector().await?;
        let mut setups = Vec::new();
        for percent in PERCENT {
            let mut setup = Setup::start(binary, None)?;
            if let Some(percent) = percent {
                setup.gateway.stop()?;
                let gateway = &mut setup.gateway;
                gateway.set_environment("TOLLGATE_TRACES__ENDPOINT", collector.clone());
                let ratio = f64::from(percent) / 100.0;
                gateway.set_environment("TOLLGATE_TRACES__SAMPLE_RATIO", ratio.to_string());
                gateway.start()?;
            }
            setups.push(setup);
        }
        let targets: Result<Vec<Target>, String> =
            setups.iter().map(Setup::gateway_target_with_hold).collect();
        let targets = targets?;
        let targets: Vec<&Target> = targets.iter().collect();
        let sums = load::run_alternating(&targets, CONNECTIONS, seconds).await?;
        for (percent, measured) in PERCENT.iter().zip(&sums) {
            let what = match percent {
                None => "plain chat, no traces: ".to_owned(),
                Some(percent) => format!("plain chat, traces of {percent} %: "),
            };
            measured.add_to_table(&what, table);
            table.note(
                format!("{what}CPU beside none"),
                format!("{:.3}", measured.cpu_us() / sums[0].cpu_us()),
            );
        }
        Ok(())
    })
}

/// Starts a collector that reads traces and discards them; returns its URL.
async fn serve_collector() -> Result<String, String> {
    let listener = TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.map_err(|e| e.to_string())?;
    let address = listener.local_addr().map_err(|e| e.to_string())?;
    let router = Router::new().fallback(post(async |_body: Bytes| ""));
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(format!("http://{address}"))
}
