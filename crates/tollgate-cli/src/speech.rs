//! `tollgate speech TEXT`: submits, shows progress, saves the audio.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use tollgate_media::Endpoint;

use super::client::Target;
use super::common::{Common, Failed};
use super::generation::{self, build_body};

#[derive(Args)]
pub(super) struct Speech {
    /// The text
    text: String,
    /// The model
    #[arg(long, value_name = "ID", default_value = "native-v3")]
    model: String,
    /// A voice of the channel's provider
    #[arg(long)]
    voice: Option<String>,
    /// Speed from 0.25 to 4.0
    #[arg(long)]
    speed: Option<f64>,
    /// Language such as zh or en
    #[arg(long)]
    language: Option<String>,
    /// File to write [default: speech.EXT]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    target: Target,
}

impl Speech {
    pub(super) async fn run(&self, common: &Common) -> Result<(), Failed> {
        let gateway = self.target.open()?;
        let path = Endpoint::AudioSpeech.path();
        let output = self.output.as_deref();
        generation::generate_and_save(&gateway, path, &self.body(), output, "speech", common).await
    }

    fn body(&self) -> Value {
        build_body([
            ("model", Some(json!(self.model))),
            ("input", Some(json!(self.text))),
            ("voice", self.voice.as_ref().map(|v| json!(v))),
            ("speed", self.speed.map(|v| json!(v))),
            ("language", self.language.as_ref().map(|v| json!(v))),
        ])
    }
}
