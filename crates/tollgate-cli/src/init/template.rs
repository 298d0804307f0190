//! The text of a new `tollgate.toml`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use tollgate_core::TaskKind;
use tollgate_media::Catalogue;

use super::environment::FoundProvider;

/// The settings of the file beside its channels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Settings {
    /// `HOST:PORT`.
    pub(super) listen: String,
    /// The URL that clients use for the gateway.
    pub(super) public_url: Option<String>,
    /// A PostgreSQL URL or `env:NAME`; `None` for SQLite.
    pub(super) database_url: Option<String>,
}

/// Returns the text of a configuration with comments.
pub(super) fn write_configuration(
    settings: &Settings,
    providers: &[FoundProvider],
    catalogue: &Catalogue,
) -> String {
    let mut text = String::from(
        "# Written by `tollgate init`. Every setting: docs/configuration.md.\n\
         # Keys stay in the environment: `env:NAME` is read from the variable NAME.\n\n",
    );
    let listen = &settings.listen;
    let _ = writeln!(
        text,
        "# Where to listen. Put a TLS proxy in front before clients come over a network.\nlisten = {}\n",
        quote(listen)
    );
    text.push_str("# The prefix of the links that clients get.\n");
    let _ = match &settings.public_url {
        Some(url) => writeln!(text, "public_url = {}\n", quote(url)),
        None => writeln!(text, "# public_url = \"https://ai.example.com\"\n"),
    };
    text.push_str("# Without a URL: SQLite in data_dir, for one node.\n");
    let _ = match &settings.database_url {
        Some(url) => writeln!(text, "[database]\nurl = {}\n", quote(url)),
        None => writeln!(
            text,
            "# [database]\n# url = \"env:DATABASE_URL\"     # postgres://user:password@host/database\n"
        ),
    };
    if providers.is_empty() {
        text.push_str(
            "# No key of a provider was found: the built-in sandbox serves every model. A channel is described in docs/channels.md.\n\n",
        );
    }
    for found in providers {
        write_channel(&mut text, found);
    }
    write_prices(&mut text, providers, catalogue);
    text
}

fn write_channel(text: &mut String, found: &FoundProvider) {
    let kind = found.kind;
    let _ = writeln!(
        text,
        "# Options of this kind: docs/providers/{kind}.md.\n[[channel]]\nname = {0}\nkind = {0}",
        quote(kind)
    );
    if let Some(url) = &found.base_url {
        let _ = writeln!(text, "base_url = {}", quote(url));
    }
    let _ = writeln!(
        text,
        "api_keys = [{}]\nmodels = [",
        quote(&format!("env:{}", found.key))
    );
    for model in found.models {
        let _ = writeln!(text, "  {},", quote(model));
    }
    text.push_str("]\n\n");
}

/// Writes one price of each unit as a comment, because only the operator can decide what a model costs.
fn write_prices(text: &mut String, providers: &[FoundProvider], catalogue: &Catalogue) {
    text.push_str(
        "# A model without a price costs its users nothing: docs/pricing.md. Amounts are in `currency`, USD by default.\n",
    );
    let models = providers.iter().flat_map(|found| found.models);
    let mut written = BTreeSet::new();
    for model in models {
        let task = catalogue.task_models().find(|task| task.name == *model);
        let units: &[&str] = match task.map(|task| task.family.kind()) {
            None => &["input_per_million = 1.25", "output_per_million = 10.0"],
            Some(TaskKind::Image) => &["per_image = 0.04"],
            Some(TaskKind::Video) => &["per_second = 0.1"],
            Some(TaskKind::Speech) => &["per_thousand_characters = 0.02"],
        };
        if written.insert(units) {
            let _ = writeln!(text, "# [price.{}]", quote(model));
            for unit in units {
                let _ = writeln!(text, "# {unit}");
            }
        }
    }
}

/// A basic string of TOML, whose escapes are those of JSON.
fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
