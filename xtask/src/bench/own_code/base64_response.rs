//! Decoding files in base64 from a JSON response: the gateway, which decodes them while the response arrives, beside a program that receives the
//! complete response and decodes it with `serde_json` and the crate `base64`, once by a `Value` and once by a struct that borrows the text.
//!
//! A server in this process sends eight responses with an image of 12.6 MB at the same time: to the gateway for eight tasks, and to the program, which
//! is this one in another process with a thread for each. A figure is the growth of the largest resident memory (`VmHWM`) beyond `VmRSS` before. The
//! gateway allocates with mimalloc, the program with the system's allocator.

use std::borrow::Cow;
use std::hint::black_box;
use std::io::{self, Cursor, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use axum::Router;
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::future::try_join_all;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::super::load::{Connection, memory_bytes, request_bytes};
use super::super::table::{Table, mib};
use crate::gateway::Gateway;
use crate::process::output;

const IMAGES: usize = 8;
/// The size of an image: 16 MiB in base64.
const IMAGE_BYTES: usize = 12 * 1_048_576;
/// More than the size of a response.
const RESPONSE_BYTES: usize = IMAGE_BYTES / 3 * 4 + 65_536;
const PATH: &str = "/v1/images/generations";
const FINISH_LIMIT: Duration = Duration::from_mins(2);

pub(super) fn measure(binary: &Path, table: &mut Table) -> Result<(), String> {
    eprintln!("own code: base64");
    // Its threads serve the responses to the program too.
    let runtime = tokio::runtime::Runtime::new().map_err(|e| e.to_string())?;
    let provider = runtime.block_on(serve_images())?;
    let own = runtime.block_on(gateway_growth(binary, &provider))?;
    let value = program_growth(&provider, false)?;
    let borrowed = program_growth(&provider, true)?;
    for (name, bytes) in [
        ("own, the gateway", own),
        ("serde_json, Value", value),
        ("serde_json, derived struct", borrowed),
    ] {
        table.note(
            format!("base64, {IMAGES} images of {IMAGE_BYTES} bytes, memory grows by MiB: {name}"),
            format!("{:.0}", mib(bytes)),
        );
    }
    Ok(())
}

/// Starts a server with OpenAI's API of images, which sends the same image at once; returns its address.
async fn serve_images() -> Result<String, String> {
    let listener = TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.map_err(|e| e.to_string())?;
    let address = listener.local_addr().map_err(|e| e.to_string())?;
    let response = Bytes::from(image_response()?);
    let respond = move |_body: Bytes| {
        let response = response.clone();
        async move { ([("content-type", "application/json")], response) }
    };
    let router = Router::new().route(PATH, post(respond));
    tokio::spawn(async move { axum::serve(listener, router).await });
    Ok(address.to_string())
}

/// A response with a small image, padded with bytes after its end.
fn image_response() -> Result<String, String> {
    let mut file = Cursor::new(Vec::new());
    let drawn = image::RgbImage::new(1024, 1024);
    let written = drawn.write_to(&mut file, image::ImageFormat::Png);
    written.map_err(|e| e.to_string())?;
    let mut file = file.into_inner();
    file.resize(IMAGE_BYTES, 0);
    let image = json!({ "b64_json": STANDARD.encode(file) });
    Ok(json!({ "created": 1_700_000_000, "data": [image] }).to_string())
}

fn settings(provider: &str) -> String {
    format!(
        r#"
drain_s = 1
[[channel]]
name = "images"
kind = "openai"
base_url = "http://{provider}/v1"
api_keys = ["k"]
models = ["gpt-image-1-official"]
[price."gpt-image-1-official"]
per_image = 0.04
"#
    )
}

/// By how many bytes the gateway's memory grows while it generates the images.
async fn gateway_growth(binary: &Path, provider: &str) -> Result<u64, String> {
    let mut gateway = Gateway::prepare(binary, &settings(provider))?;
    gateway.start()?;
    gateway.cli_json(&["user", "create", "bench", "--balance", "1000000"])?;
    let key = gateway.cli_json(&["key", "create", "--user", "bench"])?;
    let key = key["key"].as_str().ok_or("`key create` printed no key")?;
    // The running server reads the change within a second.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let pid = gateway.pid().ok_or("the gateway is not running")?;
    // Resets the recorded maximum.
    let reset = std::fs::write(format!("/proc/{pid}/clear_refs"), "5");
    reset.map_err(|e| format!("/proc/{pid}/clear_refs: {e}"))?;
    let before = memory_bytes(pid, "VmRSS:")?;
    let address = gateway.address();
    try_join_all((0..IMAGES).map(|_| generate_image(&address, key))).await?;
    Ok(memory_bytes(pid, "VmHWM:")?.saturating_sub(before))
}

/// Submits a task and waits until it is completed.
async fn generate_image(address: &str, key: &str) -> Result<(), String> {
    let mut connection = Connection::open(address).await?;
    let body = json!({ "model": "gpt-image-1-official", "prompt": "a harbour at dawn" });
    let submission = request_bytes("POST", PATH, key, &body.to_string());
    connection.send(&submission).await?;
    let receipt = connection.read_response().await?;
    let receipt: Value = serde_json::from_slice(&receipt.body).unwrap_or_default();
    let id = receipt["data"][0]["task_id"].as_str();
    let id = id.ok_or_else(|| format!("no receipt: {receipt}"))?;
    let poll = request_bytes("GET", &format!("/v1/tasks/{id}"), key, "");
    let began = Instant::now();
    while began.elapsed() < FINISH_LIMIT {
        tokio::time::sleep(Duration::from_millis(100)).await;
        connection.send(&poll).await?;
        let record = connection.read_response().await?;
        let record: Value = serde_json::from_slice(&record.body).unwrap_or_default();
        match record["data"]["status"].as_str() {
            Some("completed") => return Ok(()),
            Some("failed") => return Err(format!("the task failed: {record}")),
            _ => {}
        }
    }
    Err(format!("the task did not finish within {FINISH_LIMIT:?}"))
}

/// By how many bytes the memory of [`decode_with_crates`] grows in another process.
fn program_growth(provider: &str, is_borrowed: bool) -> Result<u64, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut command = Command::new(program);
    command.args(["bench", "--decode-from", provider]);
    if is_borrowed {
        command.arg("--decode-borrowed");
    }
    let printed = output(&mut command)?;
    let bytes = printed.trim().parse::<u64>();
    bytes.map_err(|e| format!("{printed:?} is no number of bytes: {e}"))
}

/// Receives the responses of the server at `address` and decodes them with the crates, each on a thread; prints by how many bytes the memory grew.
pub(in super::super) fn decode_with_crates(address: &str, is_borrowed: bool) -> Result<(), String> {
    let pid = std::process::id();
    let before = memory_bytes(pid, "VmRSS:")?;
    thread::scope(|scope| {
        let threads: Vec<_> = (0..IMAGES)
            .map(|_| scope.spawn(move || receive_and_decode(address, is_borrowed)))
            .collect();
        for thread in threads {
            let decoded = thread.join();
            decoded.map_err(|_| "a thread panicked".to_owned())??;
        }
        Ok::<(), String>(())
    })?;
    println!("{}", memory_bytes(pid, "VmHWM:")?.saturating_sub(before));
    Ok(())
}

fn receive_and_decode(address: &str, is_borrowed: bool) -> Result<(), String> {
    let response = receive_response(address).map_err(|e| format!("{address}: {e}"))?;
    let head = memchr::memmem::find(&response, b"\r\n\r\n").ok_or("a response without a head")?;
    let body = &response[head + 4..];
    let file = if is_borrowed {
        decode_borrowed(body)
    } else {
        decode_value(body)
    };
    match black_box(file?).len() {
        IMAGE_BYTES => Ok(()),
        other => Err(format!("an image of {other} bytes")),
    }
}

fn receive_response(address: &str) -> io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address)?;
    let request = format!(
        "POST {PATH} HTTP/1.1\r\nhost: {address}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes())?;
    let mut response = Vec::with_capacity(RESPONSE_BYTES);
    stream.read_to_end(&mut response)?;
    Ok(response)
}

fn decode_value(body: &[u8]) -> Result<Vec<u8>, String> {
    let response: Value = serde_json::from_slice(body).map_err(|e| e.to_string())?;
    let text = response["data"][0]["b64_json"].as_str();
    let text = text.ok_or("a response without an image")?;
    STANDARD.decode(text).map_err(|e| e.to_string())
}

#[derive(Deserialize)]
struct ImageResponse<'a> {
    #[serde(borrow)]
    data: Vec<InlineImage<'a>>,
}

#[derive(Deserialize)]
struct InlineImage<'a> {
    #[serde(borrow)]
    b64_json: Cow<'a, str>,
}

fn decode_borrowed(body: &[u8]) -> Result<Vec<u8>, String> {
    let response: ImageResponse<'_> = serde_json::from_slice(body).map_err(|e| e.to_string())?;
    let image = response.data.first();
    let image = image.ok_or("a response without an image")?;
    STANDARD
        .decode(image.b64_json.as_bytes())
        .map_err(|e| e.to_string())
}
