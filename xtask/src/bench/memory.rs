//! Measures memory: what the gateway uses when idle, and its maximum while many large files are uploaded at the same time.

use std::io::Cursor;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::bench_gateway::BenchGateway;
use super::load::{Connection, memory_bytes};
use super::table::{Table, mib};

const UPLOADS: usize = 100;
/// The maximum size of an uploaded file in bytes.
const FILE_BYTES: usize = 20_971_520;
const IDLE_TARGET_MIB: f64 = 40.0;
const UPLOADS_TARGET_MIB: f64 = 200.0;
static CHUNK: [u8; 65_536] = [0; 65_536];
const BOUNDARY: &str = "tollgate-bench-boundary";

/// Measures both.
pub(super) fn measure(binary: &Path, table: &mut Table) -> Result<(), String> {
    eprintln!("memory");
    let subject = Arc::new(BenchGateway::start(binary)?);
    let pid = subject.pid()?;
    std::thread::sleep(Duration::from_secs(2));
    table.at_most(
        "memory, idle, MiB",
        IDLE_TARGET_MIB,
        mib(memory_bytes(pid, "VmRSS:")?),
    );
    let runtime = tokio::runtime::Runtime::new().map_err(|e| e.to_string())?;
    let began = Instant::now();
    runtime.block_on(upload_all(&subject))?;
    table.note(
        format!("{UPLOADS} uploads of {FILE_BYTES} bytes, s"),
        format!("{:.1}", began.elapsed().as_secs_f64()),
    );
    let peak = mib(memory_bytes(pid, "VmHWM:")?);
    table.at_most(
        "memory, highest during the uploads, MiB",
        UPLOADS_TARGET_MIB,
        peak,
    );
    Ok(())
}

async fn upload_all(subject: &Arc<BenchGateway>) -> Result<(), String> {
    let mut uploads = JoinSet::new();
    for _ in 0..UPLOADS {
        let subject = Arc::clone(subject);
        uploads.spawn(async move { upload(&subject).await });
    }
    while let Some(joined) = uploads.join_next().await {
        joined.map_err(|e| format!("an upload broke: {e}"))??;
    }
    Ok(())
}

/// Uploads an image of the maximum size: a small image, padded with bytes after its end.
async fn upload(subject: &BenchGateway) -> Result<(), String> {
    let image = small_image()?;
    let begin = format!(
        "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"bench.png\"\r\ncontent-type: image/png\r\n\r\n"
    );
    let end = format!("\r\n--{BOUNDARY}--\r\n");
    let head = format!(
        "POST /v1/uploads/images HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {}\r\n\
         content-type: multipart/form-data; boundary={BOUNDARY}\r\ncontent-length: {}\r\n\r\n",
        subject.key,
        begin.len() + FILE_BYTES + end.len()
    );
    let mut connection = Connection::open(&subject.gateway.address()).await?;
    connection.send(head.as_bytes()).await?;
    connection.send(begin.as_bytes()).await?;
    connection.send(&image).await?;
    let mut rest = FILE_BYTES - image.len();
    while rest > 0 {
        let now = rest.min(CHUNK.len());
        connection.send(&CHUNK[..now]).await?;
        rest -= now;
    }
    // Sends the last bytes and requires a response of 200.
    connection.exchange(end.as_bytes()).await
}

fn small_image() -> Result<Vec<u8>, String> {
    let mut bytes = Cursor::new(Vec::new());
    let drawn = image::RgbImage::new(512, 512);
    let written = drawn.write_to(&mut bytes, image::ImageFormat::Png);
    written.map_err(|e| e.to_string())?;
    Ok(bytes.into_inner())
}
