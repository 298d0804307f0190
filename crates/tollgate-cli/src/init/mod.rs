//! `tollgate init`: writes a first configuration from the keys in the environment, and tests its channels.

mod environment;
mod template;

use std::io::{self, BufRead, IsTerminal as _, Write};
use std::path::PathBuf;

use clap::Args;
use tollgate_config::{Config, Overrides};
use tollgate_media::Catalogue;
use tollgate_server::channel_test::{reach, send_test_request, tested_model};
use tollgate_server::routing::{OpenChannel, Routing};
use tollgate_upstream::egress::{Client, ClientOptions};

use super::common::{Common, Failed};
use super::new_file::{already_exists, write_new};
use environment::{FoundProvider, find_providers, missing_keys};
use template::{Settings, write_configuration};

const DEFAULT_LISTEN: &str = "127.0.0.1:8080";

#[derive(Args)]
pub(super) struct Init {
    /// Do not prompt: create a channel for every key that is found, and use defaults for everything else
    #[arg(long)]
    yes: bool,
    /// The file to write
    #[arg(long, value_name = "FILE", default_value = "tollgate.toml")]
    out: PathBuf,
    /// Do not test the channels (a test costs a few tokens per channel)
    #[arg(long)]
    no_test: bool,
}

impl Init {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        if self.out.exists() {
            return Err(already_exists(&self.out));
        }
        let mut found = find_providers(|name| std::env::var(name).ok());
        let mut settings = Settings {
            listen: DEFAULT_LISTEN.to_owned(),
            public_url: None,
            database_url: None,
        };
        let mut log = io::stderr();
        report_keys(&found, &mut log)?;
        if !self.yes && io::stdin().is_terminal() {
            let mut questions = Questions {
                input: io::stdin().lock(),
                output: &mut log,
            };
            settings = questions.prompt_for_settings()?;
            let mut kept = Vec::new();
            for provider in found {
                if questions.prompt_for_provider(&provider)? {
                    kept.push(provider);
                }
            }
            found = kept;
        }
        let catalogue = Catalogue::new(&[])?;
        let text = write_configuration(&settings, &found, &catalogue);
        write_new(&self.out, &text)?;
        writeln!(log, "wrote {}", self.out.display())?;
        let overrides = Overrides {
            data_dir: common.data_dir.clone(),
            ..Overrides::default()
        };
        let (config, _) = Config::load(Some(&self.out), &overrides)
            .map_err(|e| format!("{e}; change it in {}", self.out.display()))?;
        if !self.no_test {
            test_channels(&config, &mut log).await?;
        }
        let file = match self.out.as_os_str() == "tollgate.toml" {
            true => String::new(),
            false => format!(" --config {}", self.out.display()),
        };
        writeln!(
            log,
            "next: set prices in it, then `tollgate serve{file}`; `tollgate doctor{file}` checks everything else"
        )?;
        Ok(())
    }
}

/// Prints which keys were found, and the names of others that would be recognised.
fn report_keys(found: &[FoundProvider], out: &mut impl Write) -> io::Result<()> {
    for provider in found {
        writeln!(out, "found {}: {}", provider.key, provider.kind)?;
    }
    let others = missing_keys(found);
    if !others.is_empty() {
        writeln!(out, "not set: {}", others.join(", "))?;
    }
    Ok(())
}

/// Prompts for settings, line by line. An empty line, or the end of the input, accepts the proposed value.
struct Questions<R, W> {
    input: R,
    output: W,
}

impl<R: BufRead, W: Write> Questions<R, W> {
    fn prompt(&mut self, question: &str, proposed: &str) -> io::Result<String> {
        write!(self.output, "{question} [{proposed}]: ")?;
        self.output.flush()?;
        let mut line = String::new();
        self.input.read_line(&mut line)?;
        let input = line.trim();
        Ok(if input.is_empty() { proposed } else { input }.to_owned())
    }

    fn prompt_for_settings(&mut self) -> io::Result<Settings> {
        let optional = |value: String| (value != "none").then_some(value);
        Ok(Settings {
            listen: self.prompt("Listen on", DEFAULT_LISTEN)?,
            public_url: optional(self.prompt("https:// address that clients use", "none")?),
            database_url: optional(self.prompt(
                "PostgreSQL, as env:NAME or postgres://…; none for SQLite",
                "none",
            )?),
        })
    }

    fn prompt_for_provider(&mut self, found: &FoundProvider) -> io::Result<bool> {
        let question = format!("Channel to {} with {}", found.kind, found.key);
        let input = self.prompt(&question, "yes")?.to_lowercase();
        Ok(!input.starts_with('n'))
    }
}

/// Tests every channel and prints the result. A channel that does not work yet is not an error of the command, because the file is written.
async fn test_channels(config: &Config, out: &mut impl Write) -> Result<(), Failed> {
    let egress = Client::new(ClientOptions::default());
    let settings = config.provider_settings();
    let routing = Routing::open(&config.channels, &settings, &egress, &config.fairness)?;
    for open in routing.channels() {
        let name = &open.channel.name;
        match test_channel(config, open, &egress).await {
            Ok(what) => writeln!(out, "ok    {name}: {what}")?,
            Err(why) => writeln!(out, "fail  {name}: {why}")?,
        }
    }
    Ok(())
}

/// Sends one small chat if the channel has a chat model; else checks that its server responds.
async fn test_channel(
    config: &Config,
    open: &OpenChannel,
    egress: &Client,
) -> Result<String, String> {
    if open.provider.chat.is_some()
        && let Ok(model) = tested_model(&Catalogue::new(&config.models)?, open, None)
    {
        let (_, tokens) = send_test_request(config, open, &model, 0).await?;
        return Ok(format!("{model} responded ({tokens} tokens)"));
    }
    match reach(egress, &open.channel).await {
        Some(reached) => {
            let reached = reached?;
            Ok(format!(
                "its server responds in {} ms; the key is tried by the first task",
                reached.ms
            ))
        }
        None => Ok("needs no network".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_line_accepts_the_proposed_value() {
        let prompt_for_all = |input: &str| {
            let mut questions = Questions {
                input: input.as_bytes(),
                output: io::sink(),
            };
            let settings = questions.prompt_for_settings().unwrap();
            let provider = find_providers(|name| (name == "FAL_API_KEY").then(|| "k".to_owned()));
            let used = questions.prompt_for_provider(&provider[0]).unwrap();
            (settings, used)
        };
        let (settings, used) = prompt_for_all("");
        assert_eq!(settings.listen, DEFAULT_LISTEN);
        assert_eq!(
            (settings.public_url, settings.database_url, used),
            (None, None, true)
        );
        let (settings, used) = prompt_for_all("[::]:80\nhttps://a.example\nenv:DATABASE_URL\nNo\n");
        assert_eq!(settings.listen, "[::]:80");
        assert_eq!(settings.public_url.as_deref(), Some("https://a.example"));
        assert_eq!(settings.database_url.as_deref(), Some("env:DATABASE_URL"));
        assert!(!used);
    }
}
