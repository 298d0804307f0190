//! `tollgate doctor`: checks what the gateway needs, without calling a model. It changes nothing, except that it writes and deletes a test file in
//! the storage.

mod certificates;
mod finding;
mod local;
pub(super) mod providers;

use std::io::Write as _;

use clap::Args;
use serde_json::Value;
use tollgate_config::{Config, Overrides};

use super::common::{Common, Failed};
use finding::{Finding, Level};

#[derive(Args)]
pub(super) struct Doctor {
    /// Do not check providers, the OpenID provider, Redis and the replica
    #[arg(long)]
    offline: bool,
}

impl Doctor {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let findings = self.check(common).await;
        let failed = findings.iter().any(|found| found.level == Level::Fail);
        let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
        if common.json {
            let records: Value = findings.iter().map(Finding::to_json).collect();
            writeln!(std::io::stdout(), "{records}")?;
        } else {
            writeln!(std::io::stdout(), "{}", lines.join("\n"))?;
        }
        match failed {
            true => Err(Failed::silently()),
            false => Ok(()),
        }
    }

    async fn check(&self, common: &Common) -> Vec<Finding> {
        let mut found = vec![Finding::ok(
            "version",
            format!("tollgate {}", env!("CARGO_PKG_VERSION")),
        )];
        let overrides = Overrides {
            data_dir: common.data_dir.clone(),
            ..Overrides::default()
        };
        // All further checks depend on the configuration.
        let (config, warnings) = match Config::load(common.config.as_deref(), &overrides) {
            Ok(loaded) => loaded,
            Err(e) => {
                let action = "correct the setting that is named: docs/configuration.md";
                found.push(Finding::fail("configuration", e, action));
                return found;
            }
        };
        found.extend(local::check_configuration(&warnings));
        let database = local::check_database(&config, &mut found).await;
        found.push(local::check_storage(&config).await);
        found.push(local::check_open_files(&config));
        found.extend(certificates::check_certificates(&config));
        let mut clocks = Vec::from_iter(database.clock);
        let reloadable = local::read_reloadable(&config, database.is_current, &mut found).await;
        if !self.offline {
            if let Some(reloadable) = &reloadable {
                clocks.extend(providers::check_channels(reloadable, &mut found).await);
            }
            found.extend(providers::check_oidc(&config).await);
            found.extend(local::check_redis(&config).await);
            found.extend(local::check_replica(&config, database.is_current).await);
        }
        found.push(local::check_clock(&clocks));
        found.extend(reloadable.as_ref().map(local::check_prices));
        found
    }
}
