//! A gateway with fakes of the vendors behind it.

use std::fmt::Write as _;

use tollgate_fakes::{Fake, Options, Provider, start};

use crate::gate::{Backend, Client, Gate, Setup};
use crate::shop;

/// One way to a fake: a channel.
pub(super) struct Way {
    pub(super) name: &'static str,
    pub(super) provider: Provider,
    /// The model's name here and there.
    pub(super) models: &'static [(&'static str, &'static str)],
    /// More lines of the channel.
    pub(super) more: &'static str,
}

/// A fake of each sort of upstream.
pub(super) const WAYS: &[Way] = &[
    Way {
        name: "openai-chat",
        provider: Provider::OpenAi,
        models: &[("gpt-4o", "gpt-4o"), ("gpt-5", "gpt-5")],
        more: "apis = [\"chat-completions\"]",
    },
    Way {
        name: "openai-responses",
        provider: Provider::OpenAi,
        models: &[
            ("gpt-5-mini", "gpt-5-mini"),
            ("gpt-5-chat-latest", "gpt-4o"),
        ],
        more: "apis = [\"responses\"]",
    },
    Way {
        name: "anthropic",
        provider: Provider::Anthropic,
        models: &[
            ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
            ("claude-opus-4-1-20250805", "claude-opus-4-8"),
        ],
        more: "",
    },
    Way {
        name: "gemini",
        provider: Provider::Gemini,
        models: &[
            ("gemini-2.5-flash", "gemini-2.5-flash"),
            ("gemini-2.5-pro", "gemini-3-pro-preview"),
        ],
        more: "",
    },
];

/// A gateway, and the fakes in the order of its channels.
pub(super) struct Site {
    pub(super) gate: Gate,
    pub(super) fakes: Vec<Fake>,
}

pub(super) async fn fake(provider: Provider) -> Fake {
    start(provider, Options::default()).await.unwrap()
}

/// The kind of a channel to that provider.
pub(super) fn kind(provider: Provider) -> &'static str {
    provider.name()
}

/// The text of a channel. `more` are more of its lines.
pub(super) fn channel(name: &str, provider: Provider, fake: &Fake, more: &str) -> String {
    let (kind, url) = (kind(provider), fake.base_url());
    let key = if more.contains("api_keys") {
        String::new()
    } else {
        format!("api_keys = [\"up-{name}\"]\n")
    };
    format!(
        "[[channel]]\nname = \"{name}\"\nkind = \"{kind}\"\nbase_url = \"{url}\"\n{key}{more}\n"
    )
}

impl Site {
    /// Every way of [`WAYS`], and `config`.
    pub(super) async fn start(backend: Backend, config: &str) -> Self {
        let mut text = config.to_owned();
        let mut fakes = Vec::new();
        for way in WAYS {
            let fake = fake(way.provider).await;
            let models: Vec<String> = way
                .models
                .iter()
                .map(|(name, upstream)| {
                    format!("{{ name = \"{name}\", upstream = \"{upstream}\" }}")
                })
                .collect();
            let more = format!("models = [{}]\n{}", models.join(", "), way.more);
            write!(text, "{}", channel(way.name, way.provider, &fake, &more)).unwrap();
            fakes.push(fake);
        }
        let gate = Setup::new(backend).config(&text).start().await;
        Self { gate, fakes }
    }
}

/// Columns of the records of chats, oldest first.
pub(super) async fn records(gate: &Gate, columns: &str) -> Vec<Vec<String>> {
    let sql = format!("SELECT {columns} FROM chats ORDER BY opened_at, id");
    if gate.database_url().is_some() {
        let rows = shop::sql(gate, &sql).await.into_iter();
        return rows
            .map(|row| row.into_iter().map(Option::unwrap_or_default).collect())
            .collect();
    }
    let database = rusqlite::Connection::open(gate.data_dir().join("tollgate.db")).unwrap();
    database.busy_timeout(crate::gate::PATIENCE).unwrap();
    let mut statement = database.prepare(&sql).unwrap();
    let count = statement.column_count();
    let cell = |value: rusqlite::types::Value| match value {
        rusqlite::types::Value::Integer(number) => number.to_string(),
        rusqlite::types::Value::Text(text) => text,
        _ => String::new(),
    };
    let rows = statement.query_map([], |row| {
        (0..count).map(|at| Ok(cell(row.get(at)?))).collect()
    });
    rows.unwrap()
        .map(|row: Result<Vec<String>, rusqlite::Error>| row.unwrap())
        .collect()
}

/// A user with this balance.
pub(super) async fn payer(gate: &Gate, balance: &str) -> Client {
    gate.somebody_with("payer", &["--balance", balance]).await
}
