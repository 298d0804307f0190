//! `tollgate image PROMPT`: submits, shows progress, saves the pictures.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Map, Value, json};
use tollgate_media::{Catalogue, Endpoint};

use super::client::{Gateway, Target};
use super::{Common, Failed};

/// Pause between two looks at the task.
const PAUSE: Duration = Duration::from_millis(500);

#[derive(Args)]
pub(super) struct Image {
    /// What to make
    prompt: String,
    /// The model
    #[arg(long, value_name = "ID", default_value = "gpt-image-2-official")]
    model: String,
    /// A ratio such as 16:9, or pixels such as 1024x1024, as the model takes it
    #[arg(long)]
    size: Option<String>,
    /// A tier such as 2k, as the model takes it
    #[arg(long)]
    resolution: Option<String>,
    /// Such as high, as the model takes it
    #[arg(long)]
    quality: Option<String>,
    /// How many pictures
    #[arg(short, value_name = "N")]
    n: Option<u32>,
    /// A reference picture: a link, or a file to upload. May be given several times
    #[arg(long, value_name = "URL|FILE")]
    image: Vec<String>,
    /// Where to save it; of several pictures, -2, -3, … is added [default: image.EXT]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    target: Target,
}

impl Image {
    pub(super) async fn run(&self, common: &Common) -> Result<(), Failed> {
        let gateway = self.target.open()?;
        let body = self.body(&gateway).await?;
        let receipt = gateway.post(endpoint(&self.model).path(), &body).await?;
        let task_id = receipt
            .pointer("/data/0/task_id")
            .or_else(|| receipt.get("id"));
        let task_id = task_id
            .and_then(Value::as_str)
            .ok_or("the receipt has no task id")?;
        let record = follow(&gateway, task_id).await?;
        let links = links(&record);
        if links.is_empty() {
            return Err(Failed::from(format!(
                "the task {task_id} failed: {}",
                reason(&record)
            )));
        }
        let mut saved = Vec::with_capacity(links.len());
        for (index, link) in links.iter().enumerate() {
            let file = self.file(link, index);
            gateway.save(link, &file).await?;
            saved.push(file.display().to_string());
        }
        common.print(
            &json!({ "task_id": task_id, "files": saved, "record": record }),
            || saved.join("\n"),
        )
    }

    async fn body(&self, gateway: &Gateway) -> Result<Value, Failed> {
        let mut images = Vec::with_capacity(self.image.len());
        for image in &self.image {
            images.push(if image.contains("://") {
                image.clone()
            } else {
                gateway.upload(Path::new(image)).await?
            });
        }
        let mut body = Map::new();
        let fields = [
            ("model", Some(json!(self.model))),
            ("prompt", Some(json!(self.prompt))),
            ("size", self.size.as_ref().map(|v| json!(v))),
            ("resolution", self.resolution.as_ref().map(|v| json!(v))),
            ("quality", self.quality.as_ref().map(|v| json!(v))),
            ("n", self.n.map(|v| json!(v))),
            ("image_urls", (!images.is_empty()).then(|| json!(images))),
        ];
        body.extend(
            fields
                .into_iter()
                .filter_map(|(name, value)| Some((name.to_owned(), value?))),
        );
        Ok(Value::Object(body))
    }

    /// Where picture `index` goes.
    fn file(&self, link: &str, index: usize) -> PathBuf {
        let extension = link
            .rsplit('.')
            .next()
            .filter(|e| e.len() <= 4)
            .unwrap_or("png");
        let file = self
            .output
            .clone()
            .unwrap_or_else(|| PathBuf::from(format!("image.{extension}")));
        if index == 0 {
            return file;
        }
        let stem = file
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let ending = file
            .extension()
            .map_or(String::new(), |e| format!(".{}", e.to_string_lossy()));
        file.with_file_name(format!("{stem}-{}{ending}", index + 1))
    }
}

/// Where the model is asked; one that is not built in is taken for one that makes pictures.
fn endpoint(model: &str) -> Endpoint {
    let built_in = Catalogue::new(&[])
        .ok()
        .and_then(|catalogue| catalogue.endpoint(model));
    built_in.unwrap_or(Endpoint::ImageGenerations)
}

/// Polls until the task has ended, with a bar on a terminal.
async fn follow(gateway: &Gateway, task_id: &str) -> Result<Value, Failed> {
    let bar = ProgressBar::new(100);
    if !std::io::stderr().is_terminal() {
        bar.set_draw_target(ProgressDrawTarget::hidden());
    }
    bar.set_style(ProgressStyle::with_template(
        "{spinner} {msg:<12} [{bar:40}] {pos:>3}% {elapsed}",
    )?);
    bar.enable_steady_tick(Duration::from_millis(120));
    loop {
        let answer = gateway.get(&format!("/v1/tasks/{task_id}")).await?;
        let record = answer.get("data").unwrap_or(&answer);
        let status = record["status"].as_str().unwrap_or_default().to_owned();
        bar.set_message(status.clone());
        bar.set_position(percent(&record["progress"]));
        if matches!(status.as_str(), "completed" | "failed" | "cancelled") {
            bar.finish_and_clear();
            return Ok(record.clone());
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// `40` or `"40%"`.
fn percent(progress: &Value) -> u64 {
    let text = progress.as_str().map(|t| t.trim_end_matches('%'));
    progress
        .as_u64()
        .or_else(|| text?.parse().ok())
        .unwrap_or(0)
}

/// The links of a finished record, in either of its shapes.
fn links(record: &Value) -> Vec<String> {
    let images = record
        .pointer("/result/images")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let items = record
        .pointer("/result/items")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let urls = images.filter_map(|image| image.pointer("/url/0"));
    let data = items
        .filter_map(|item| item["data"].as_array())
        .flatten()
        .filter_map(|d| d.get("url"));
    urls.chain(data)
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

fn reason(record: &Value) -> &str {
    let message = record
        .pointer("/error/message")
        .or_else(|| record.get("error"));
    message.and_then(Value::as_str).unwrap_or("no reason given")
}
