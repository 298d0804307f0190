//! `tollgate-fakes`: one fake provider as a program, for use by hand and for measuring.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use clap::Parser;
use tollgate_fakes::{Bench, Options, Provider};

/// A fake provider of chat.
#[derive(Debug, Parser)]
struct Arguments {
    /// Which provider: openai, anthropic, gemini.
    #[arg(long)]
    provider: Provider,
    /// Where it listens on 127.0.0.1; 0 takes a free port.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// A key that it takes; can be repeated. Without it any key is taken.
    #[arg(long)]
    key: Vec<String>,
    /// Into how many pieces a text is cut at most.
    #[arg(long, default_value_t = 5)]
    chunks: usize,
    /// Milliseconds between two pieces of a stream.
    #[arg(long, default_value_t = 0)]
    delay_ms: u64,
    /// How events are cut and joined on their way depends on it.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Answers every request with this many bytes of text, made before; nothing is checked.
    #[arg(long)]
    bench_bytes: Option<usize>,
    /// Into how many events such an answer is cut.
    #[arg(long, default_value_t = 16)]
    bench_chunks: usize,
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::parse();
    let chunks = arguments.bench_chunks;
    let options = Options {
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, arguments.port)),
        keys: arguments.key,
        seed: arguments.seed,
        chunks: arguments.chunks,
        delay: Duration::from_millis(arguments.delay_ms),
        bench: arguments.bench_bytes.map(|bytes| Bench { bytes, chunks }),
    };
    let fake = tollgate_fakes::start(arguments.provider, options).await?;
    println!("listening on {}", fake.base_url());
    tokio::signal::ctrl_c().await?;
    fake.stop().await;
    Ok(())
}
