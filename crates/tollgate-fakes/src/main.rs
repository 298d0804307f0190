//! `tollgate-fakes`: one fake provider as a program, for use by hand and for measuring.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use clap::Parser;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser as _;
use tollgate_fakes::{Bench, Options, Provider};

/// A fake provider of chat and media.
#[derive(Debug, Parser)]
struct Arguments {
    /// Which provider.
    #[arg(long, value_parser = providers())]
    provider: Provider,
    /// The address that it listens on.
    #[arg(long, default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    address: IpAddr,
    /// The port that it listens on; 0 takes a free one.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// An accepted key; can be repeated. Without it any key is accepted. Kling: also access:secret.
    #[arg(long)]
    key: Vec<String>,
    /// The maximum number of pieces that a text is split into.
    #[arg(long, default_value_t = 5)]
    chunks: usize,
    /// Milliseconds between two pieces of a stream.
    #[arg(long, default_value_t = 0)]
    delay_ms: u64,
    /// Seed for splitting and joining events in transmission.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Responds to every request with this many prepared bytes of text; nothing is checked.
    #[arg(long)]
    bench_bytes: Option<usize>,
    /// The number of events that a stream of such a text is split into.
    #[arg(long, default_value_t = 16)]
    bench_chunks: usize,
    /// Milliseconds that generating media takes.
    #[arg(long, default_value_t = 0)]
    work_ms: u64,
    /// The first poll, counted from 1, at which a task can have ended.
    #[arg(long, default_value_t = 1)]
    polls: u32,
    /// The smallest size of a result in bytes.
    #[arg(long)]
    result_bytes: Option<u64>,
    /// Milliseconds until links to results expire; without it they never do.
    #[arg(long)]
    link_ttl_ms: Option<u64>,
    /// Where clients reach it, for links to results: http://host:port.
    #[arg(long)]
    public_url: Option<String>,
    /// One more port, for results alone: links lead there, and requests with keys are rejected; 0 takes a free one.
    #[arg(long)]
    files_port: Option<u16>,
}

/// The parser for the name of a provider; the help lists the names.
fn providers() -> impl clap::builder::TypedValueParser<Value = Provider> {
    let names = PossibleValuesParser::new(Provider::all().map(Provider::name));
    names.try_map(|name| name.parse::<Provider>())
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let arguments = Arguments::parse();
    let chunks = arguments.bench_chunks;
    let options = Options {
        address: SocketAddr::from((arguments.address, arguments.port)),
        keys: arguments.key,
        seed: arguments.seed,
        chunks: arguments.chunks,
        delay: Duration::from_millis(arguments.delay_ms),
        bench: arguments.bench_bytes.map(|bytes| Bench { bytes, chunks }),
        work: Duration::from_millis(arguments.work_ms),
        polls: arguments.polls,
        result_bytes: arguments.result_bytes,
        link_ttl: arguments.link_ttl_ms.map(Duration::from_millis),
        public_url: arguments.public_url,
        files_address: arguments
            .files_port
            .map(|port| SocketAddr::from((arguments.address, port))),
        // A program has no test that could inspect the requests.
        remember: 0,
    };
    let fake = tollgate_fakes::start(arguments.provider, options).await?;
    println!("listening on {}", fake.base_url());
    tokio::signal::ctrl_c().await?;
    let polls = fake.poll_report();
    if polls.tasks > 0 {
        println!("{polls}");
    }
    fake.stop().await;
    Ok(())
}
