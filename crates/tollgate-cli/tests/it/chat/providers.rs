//! A gateway with fakes of the vendors as providers.

use tollgate_fakes::{Fake, Options, Provider, start};

use crate::harness::*;

/// A channel to a fake.
pub(super) struct Channel {
    pub(super) name: &'static str,
    pub(super) provider: Provider,
    /// For each model, the gateway's name and the provider's.
    pub(super) models: &'static [(&'static str, &'static str)],
    /// Additional lines of the channel's configuration.
    pub(super) more: &'static str,
}

/// A channel to each API.
pub(super) const CHANNELS: &[Channel] = &[
    Channel {
        name: "openai-chat",
        provider: Provider::OpenAi,
        models: &[("gpt-4o", "gpt-4o"), ("gpt-5", "gpt-5")],
        more: "apis = [\"chat-completions\"]",
    },
    Channel {
        name: "openai-responses",
        provider: Provider::OpenAi,
        models: &[
            ("gpt-5-mini", "gpt-5-mini"),
            ("gpt-5-chat-latest", "gpt-4o"),
        ],
        more: "apis = [\"responses\"]",
    },
    Channel {
        name: "anthropic",
        provider: Provider::Anthropic,
        models: &[
            ("claude-sonnet-4-5-20250929", "claude-sonnet-4-5"),
            ("claude-opus-4-1-20250805", "claude-opus-4-8"),
        ],
        more: "",
    },
    Channel {
        name: "gemini",
        provider: Provider::Gemini,
        models: &[
            ("gemini-2.5-flash", "gemini-2.5-flash"),
            ("gemini-2.5-pro", "gemini-3-pro-preview"),
        ],
        more: "",
    },
];

/// Every model of [`CHANNELS`].
pub(super) fn all_models() -> Vec<&'static str> {
    let models = CHANNELS.iter().flat_map(|channel| channel.models);
    models.map(|(name, _)| *name).collect()
}

/// A gateway, and the fakes in the order of its channels.
pub(super) struct AllProviders {
    pub(super) gateway: TestGateway,
    pub(super) fakes: Vec<Fake>,
}

pub(super) async fn fake(provider: Provider) -> Fake {
    start(provider, Options::default()).await.unwrap()
}

/// The configuration of a channel, with the additional lines `more`.
pub(super) fn channel(name: &str, provider: Provider, fake: &Fake, more: &str) -> String {
    let channel = ChannelConfig::new(name, provider.name()).url(&fake.base_url());
    let channel = match more.contains("api_keys") {
        true => channel,
        false => channel.keys(&[format!("up-{name}")]),
    };
    channel.lines(more).text()
}

impl AllProviders {
    /// Starts a gateway with all of [`CHANNELS`] and `config`.
    pub(super) async fn start(backend: Backend, config: &str) -> Self {
        let (text, fakes) = Self::start_fakes(config, Options::default()).await;
        let gateway = Setup::new(backend).config(&text).start().await;
        Self { gateway, fakes }
    }

    /// Starts the fakes with these options; returns `config` with the channels to them.
    pub(super) async fn start_fakes(config: &str, options: Options) -> (String, Vec<Fake>) {
        let (mut text, mut fakes) = (config.to_owned(), Vec::new());
        for one in CHANNELS {
            let fake = start(one.provider, options.clone()).await.unwrap();
            let model = |(name, upstream): &(&str, &str)| {
                format!("{{ name = \"{name}\", upstream = \"{upstream}\" }}")
            };
            let models: Vec<String> = one.models.iter().map(model).collect();
            let more = format!("models = [{}]\n{}", models.join(", "), one.more);
            text += &channel(one.name, one.provider, &fake, &more);
            fakes.push(fake);
        }
        (text, fakes)
    }
}

/// Columns of the records of chats, oldest first.
pub(super) async fn chat_records(gateway: &TestGateway, columns: &str) -> Vec<Vec<String>> {
    let sql = format!("SELECT {columns} FROM chats ORDER BY opened_at, id");
    gateway.query(&sql).await
}
