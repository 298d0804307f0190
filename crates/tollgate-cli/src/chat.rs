//! `tollgate chat`: a client of any gateway; it prints a reply while it is received.

use std::io::Write as _;

use clap::Args;
use serde_json::{Value, json};
use tollgate_chat::sse::Decoder;
use tollgate_chat::{Format as _, chat_completions::ChatCompletions};

use super::client::Target;
use super::common::{Common, Failed};
use super::new_file::check_folder;

#[derive(Args)]
pub(super) struct Chat {
    /// The message
    text: String,
    #[command(flatten)]
    target: Target,
    /// The model
    #[arg(long, default_value = "gpt-5")]
    model: String,
    /// The system prompt
    #[arg(long, value_name = "TEXT")]
    system: Option<String>,
    /// The maximum number of tokens to generate
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,
    /// File in which the reply is also saved
    #[arg(short, long, value_name = "FILE")]
    output: Option<std::path::PathBuf>,
}

impl Chat {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        check_folder(self.output.as_deref())?;
        let gateway = self.target.open()?;
        let mut messages = Vec::new();
        if let Some(system) = &self.system {
            messages.push(json!({ "role": "system", "content": system }));
        }
        messages.push(json!({ "role": "user", "content": self.text }));
        let body = json!({
            "model": self.model,
            "messages": messages,
            "max_tokens": self.max_tokens,
            "stream": true,
            "stream_options": { "include_usage": true },
        });
        let mut stream = gateway.stream("/v1/chat/completions", &body).await?;
        let mut decoder = Decoder::default();
        let mut reply = Reply {
            quiet: common.json,
            ..Reply::default()
        };
        while let Some(chunk) = stream.chunk().await? {
            let mut events: Vec<String> = Vec::new();
            decoder.push(&chunk, |event| {
                events.push(event.data.to_owned());
                Ok(())
            })?;
            for event in events {
                reply.take(&event)?;
            }
        }
        reply.finish()?;
        if let Some(path) = &self.output {
            let written = std::fs::write(path, &reply.text);
            written.map_err(|e| format!("cannot write {}: {e}", path.display()))?;
        }
        if common.json {
            let record = json!({ "text": reply.text, "finish_reason": reply.finish_reason, "usage": reply.usage });
            writeln!(std::io::stdout(), "{record}")?;
        }
        Ok(())
    }
}

/// The part of the reply that has been received.
#[derive(Default)]
struct Reply {
    text: String,
    finish_reason: Option<String>,
    usage: Value,
    quiet: bool,
}

impl Reply {
    fn take(&mut self, data: &str) -> Result<(), Failed> {
        if data == "[DONE]" {
            return Ok(());
        }
        let chunk: Value = serde_json::from_str(data)
            .map_err(|_| Failed::from("the gateway's response is not JSON"))?;
        if chunk["error"].is_object() {
            let error = ChatCompletions.read_error(500, data.as_bytes());
            return Err(Failed::from(error.message));
        }
        let choice = &chunk["choices"][0];
        if let Some(piece) = choice["delta"]["content"].as_str() {
            self.text.push_str(piece);
            if !self.quiet {
                let mut out = std::io::stdout();
                out.write_all(piece.as_bytes())?;
                out.flush()?;
            }
        }
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.finish_reason = Some(reason.to_owned());
        }
        if chunk["usage"].is_object() {
            self.usage = chunk["usage"].clone();
        }
        Ok(())
    }

    fn finish(&self) -> Result<(), Failed> {
        if self.finish_reason.is_none() {
            return Err(Failed::from("the reply broke off"));
        }
        if !self.quiet {
            writeln!(std::io::stdout())?;
        }
        Ok(())
    }
}
