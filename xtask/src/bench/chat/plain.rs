//! Measures complete responses, with about 1 KB in each direction: processor time and throughput.

use super::super::load::{self, Measurement};
use super::super::table::Table;
use super::setup::Setup;

const CONNECTIONS: usize = 64;
const PATH: &str = "/v1/chat/completions";

/// Measures chats of the same format and translated chats, compared with the bare proxy and nginx.
pub(super) async fn measure(setup: &Setup, seconds: u64, table: &mut Table) -> Result<(), String> {
    let ours = setup.gateway_target(&setup.unlimited_key, PATH, "gpt-5", None)?;
    let held = setup.gateway_target_with_hold()?;
    let translated = setup.gateway_target(
        &setup.unlimited_key,
        PATH,
        "claude-haiku-4-5-20251001",
        None,
    )?;
    let proxy = setup.proxy_target(None);
    let nginx = setup.nginx_target(None);
    let mut targets = vec![&ours, &held, &translated, &proxy];
    targets.extend(&nginx);
    let sums = load::run_alternating(&targets, CONNECTIONS, seconds).await?;
    let names = [
        "gateway",
        "gateway, balance held",
        "gateway, translated",
        "bare hyper proxy",
        "nginx",
    ];
    for (name, measured) in names.iter().zip(&sums) {
        table.note(
            format!("plain chat: {name}, per second"),
            format!("{:.0}", measured.rate()),
        );
        table.note(
            format!("plain chat: {name}, CPU us each"),
            format!("{:.1}", measured.cpu_us()),
        );
    }
    let cpu = |a: &Measurement, b: &Measurement| a.cpu_us() / b.cpu_us();
    table.at_most(
        "plain chat: CPU beside the bare hyper proxy",
        2.5,
        cpu(&sums[0], &sums[3]),
    );
    table.at_most(
        "plain chat, balance held: CPU beside the bare hyper proxy",
        2.5,
        cpu(&sums[1], &sums[3]),
    );
    table.at_most(
        "translated chat: CPU beside the same-format path",
        1.5,
        cpu(&sums[2], &sums[0]),
    );
    if let Some(nginx) = sums.get(4) {
        table.at_most("plain chat: CPU beside nginx", 3.0, cpu(&sums[0], nginx));
        table.at_least(
            "plain chat: throughput beside nginx",
            0.4,
            sums[0].rate() / nginx.rate(),
        );
    }
    Ok(())
}
