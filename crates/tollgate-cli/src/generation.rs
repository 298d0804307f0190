//! Code that `tollgate image`, `video` and `speech` share: submit a task, show its progress, save its results.

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::{Map, Value, json};

use super::client::Gateway;
use super::common::{Common, Failed};
use super::new_file::check_folder;

/// Pause between two polls of the task.
const PAUSE: Duration = Duration::from_millis(500);

/// Builds a JSON body of the fields that have a value.
pub(super) fn build_body<const N: usize>(fields: [(&str, Option<Value>); N]) -> Value {
    let fields = fields
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(fields.collect::<Map<_, _>>())
}

/// Submits `body` to `path`, waits until the task has ended, and saves the files: as `output`, or as `stem` with the extension of each link.
pub(super) async fn generate_and_save(
    gateway: &Gateway,
    path: &str,
    body: &Value,
    output: Option<&Path>,
    stem: &str,
    common: &Common,
) -> Result<(), Failed> {
    check_folder(output)?;
    let receipt = gateway.post(path, body).await?;
    let task_id = receipt
        .pointer("/data/0/task_id")
        .or_else(|| receipt.get("task_id"))
        .or_else(|| receipt.get("id"));
    let task_id = task_id
        .and_then(Value::as_str)
        .ok_or("the receipt has no task id")?;
    let record = follow(gateway, task_id).await?;
    let links = links(&record);
    if links.is_empty() {
        return Err(Failed::from(format!(
            "the task {task_id} failed: {}",
            reason(&record)
        )));
    }
    let mut saved = Vec::with_capacity(links.len());
    for (index, link) in links.iter().enumerate() {
        let file = output_path(output, stem, link, index);
        gateway.save(link, &file).await?;
        saved.push(file.display().to_string());
    }
    common.print(
        &json!({ "task_id": task_id, "files": saved, "record": record }),
        || saved.join("\n"),
    )
}

/// The path where the result `index` is saved; the extension is that of `link` unless there is an `output`.
fn output_path(output: Option<&Path>, stem: &str, link: &str, index: usize) -> PathBuf {
    let path = link.split(['?', '#']).next().unwrap_or_default();
    let name = path.rsplit('/').next().unwrap_or_default();
    let extension = name
        .rsplit_once('.')
        .map(|(_, extension)| extension)
        .filter(|extension| (1..=4).contains(&extension.len()))
        .unwrap_or("bin");
    let file = output.map_or_else(
        || PathBuf::from(format!("{stem}.{extension}")),
        Path::to_owned,
    );
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

/// Polls the task until it has ended, and shows a progress bar on a terminal.
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
        let response = gateway.get(&format!("/v1/tasks/{task_id}")).await?;
        let record = response.get("data").unwrap_or(&response);
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

/// Parses `40` or `"40%"`.
fn percent(progress: &Value) -> u64 {
    let text = progress.as_str().map(|t| t.trim_end_matches('%'));
    progress
        .as_u64()
        .or_else(|| text?.parse().ok())
        .unwrap_or(0)
}

/// The result links of an ended task's record, in whichever shape the record has.
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
    let only = record.pointer("/metadata/url");
    urls.chain(data)
        .chain(only)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extension_is_that_of_the_path_of_the_link() {
        for (link, expected) in [
            ("http://a.b/files/x.png", "out.png"),
            ("https://a.b/x.webp?sig=1.2&e=.mp3", "out.webp"),
            ("https://a.b/x.mp4#t=0.5", "out.mp4"),
            ("https://a.b/x", "out.bin"),
            ("https://a.b/x.", "out.bin"),
            ("https://a.b/v1.2/content", "out.bin"),
        ] {
            assert_eq!(output_path(None, "out", link, 0), Path::new(expected));
        }
        let second = output_path(Some(Path::new("a/b.png")), "out", "x.jpg", 1);
        assert_eq!(second, Path::new("a/b-2.png"));
    }
}
