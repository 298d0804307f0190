//! `tollgate import FILE`: users and keys, or channels, of another gateway (docs/guides/migrate.md).

mod channels;
mod keys;
mod litellm;
mod one_api;
mod targets;

use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use serde_json::json;
use tollgate_config::Config;
use tollgate_media::Catalogue;

use super::common::{Common, Failed};
use super::new_file::write_new;
use channels::{Imported, LeftOut};
use targets::{Targets, Variant};

#[derive(Args)]
pub(super) struct Import {
    /// Users and keys as JSON, one object per line; with --from, the channels of that gateway. `-` reads stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Only validate the file of users and keys
    #[arg(long, conflicts_with = "from")]
    check: bool,
    /// Print the channels of that gateway's file as text for tollgate.toml
    #[arg(long, value_name = "GATEWAY")]
    from: Option<Gateway>,
    /// Write the channels to a new file, which only its owner can read
    #[arg(short, long, value_name = "FILE", requires = "from")]
    out: Option<PathBuf>,
}

/// A gateway whose channels can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Gateway {
    /// Its config.yaml
    Litellm,
    /// The rows of its table `channels` as JSON
    NewApi,
    /// The rows of its table `channels` as JSON
    OneApi,
}

impl Import {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let text = read_file(&self.file)?;
        let Some(gateway) = self.from else {
            return keys::import(common, &text, self.check).await;
        };
        let (catalogue, targets) = (Catalogue::new(&[])?, Targets::load()?);
        let mut imported = match gateway {
            Gateway::Litellm => litellm::parse_config(&text, &targets)?,
            Gateway::NewApi => one_api::parse_channels(&text, &targets, Variant::NewApi)?,
            Gateway::OneApi => one_api::parse_channels(&text, &targets, Variant::OneApi)?,
        };
        imported.add_aliases(&catalogue, &targets.first_model);
        imported.leave_out_invalid_channels();
        print(common, &imported, self.out.as_deref())
    }
}

/// Writes the channels, and prints to stderr what is left out.
fn print(common: &Common, imported: &Imported, out: Option<&Path>) -> Result<(), Failed> {
    let text = imported.to_toml();
    // The output must be valid for `serve`.
    Config::check_imported(&text, imported.variables())
        .map_err(|e| format!("the channels cannot be written as they are: {e}"))?;
    for left_out in &imported.left_out {
        let LeftOut { item, reason } = left_out;
        writeln!(std::io::stderr(), "left out: {item}: {reason}")?;
    }
    if let Some(out) = out {
        write_new(out, &text)?;
    }
    let left_out = imported.left_out.iter();
    let record = json!({
        "channels": imported.channels.iter().map(|channel| &channel.name).collect::<Vec<_>>(),
        "models": imported.models_count(),
        "left_out": left_out.map(|item| json!({ "item": item.item, "reason": item.reason })).collect::<Vec<_>>(),
        "toml": out.is_none().then_some(&text),
    });
    common.print(&record, || match out {
        None => text.trim_end().to_owned(),
        Some(out) => format!(
            "{} channels with {} models were written to {}",
            imported.channels.len(),
            imported.models_count(),
            out.display()
        ),
    })
}

fn read_file(file: &Path) -> Result<String, Failed> {
    let unreadable = |e: std::io::Error| format!("cannot read {}: {e}", file.display());
    if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .map_err(unreadable)?;
        return Ok(text);
    }
    Ok(std::fs::read_to_string(file).map_err(unreadable)?)
}
