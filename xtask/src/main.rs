//! Tools of the repository: checks, tests, measurements, packages. They are not part of the gateway.
//! `cargo xtask --help` lists the commands.

mod abuse;
mod balancer;
mod bench;
mod cluster;
mod customers;
mod deb;
mod dist;
mod docs;
mod fuzz;
mod gateway;
mod http;
mod man;
mod outcome;
mod postgres;
mod process;
mod repo;
mod rng;
mod rustc;
mod sbom;
mod sdk;
mod soak;
mod test;
mod tidy;
mod upgrade;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Tools of the Tollgate repository")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check headers, sizes, dependencies between crates, links, and that nothing is dead
    Tidy,
    /// Run all tests, with a PostgreSQL server of their own
    Test(test::Options),
    /// Write the pages of docs/models from the models' declarations
    Docs(docs::Options),
    /// Run the official SDKs against a gateway with channels to the sandbox and to fakes of OpenAI, Anthropic and Gemini
    Sdk(sdk::Options),
    /// Kill and restart the real binary under load, then check everything that it acknowledged
    Soak(soak::Options),
    /// Upgrade three nodes one by one under load, from an older program
    UpgradeTest(upgrade::Options),
    /// Start three nodes with PostgreSQL, Redis, S3 and a load balancer to try out, or to break
    Cluster(cluster::Options),
    /// Run hostile clients beside honest ones, and print what the honest ones notice
    Abuse(abuse::Options),
    /// Measure what Tollgate promises, beside a bare server
    Bench(bench::Options),
    /// Build the shipped binary: fat LTO, profile-guided, trained in the same run
    Dist(dist::Options),
    /// Write the list of packages that the gateway is compiled from (CycloneDX)
    Sbom(sbom::Options),
    /// Make the Debian package
    Deb(deb::Options),
    /// Write the manual pages of the gateway's commands
    Man(man::Options),
    /// Mutated input for every parser, a minute each
    Fuzz(fuzz::Options),
    /// The bare server that the bench measures beside
    #[command(hide = true)]
    BareServer(bench::BareOptions),
    /// The upstream of the chat bench
    #[command(hide = true)]
    BenchUpstream,
    /// The bare proxy of the chat bench
    #[command(hide = true)]
    BenchProxy(bench::ProxyOptions),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Tidy => tidy::run(),
        Command::Test(options) => test::run(options),
        Command::Docs(options) => docs::run(options),
        Command::Sdk(options) => sdk::run(options),
        Command::Soak(options) => soak::run(options),
        Command::UpgradeTest(options) => upgrade::run(&options),
        Command::Cluster(options) => cluster::run(&options),
        Command::Abuse(options) => abuse::run(&options),
        Command::Bench(options) => bench::run(options),
        Command::Dist(options) => dist::run(&options),
        Command::Sbom(options) => sbom::run(options),
        Command::Deb(options) => deb::run(options),
        Command::Man(options) => man::run(options),
        Command::Fuzz(options) => fuzz::run(&options),
        Command::BareServer(options) => bench::serve_bare(&options),
        Command::BenchUpstream => bench::serve_upstream(),
        Command::BenchProxy(options) => bench::serve_proxy(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("{sentence}");
            ExitCode::FAILURE
        }
    }
}
