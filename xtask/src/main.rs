//! The workshop of the repository: everything that is done to Tollgate but is no part of it.
//! `cargo xtask --help` lists the commands.

mod bench;
mod dice;
mod docs;
mod gateway;
mod http;
mod postgres;
mod process;
mod repo;
mod soak;
mod test;
mod tidy;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// What a command ends with: an error is one sentence for a person.
type Outcome = Result<(), String>;

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
    /// Kill and restart the real binary under load, then check every promise it made
    Soak(soak::Options),
    /// Measure what Tollgate promises, beside a bare server
    Bench(bench::Options),
    /// The bare server that the bench measures beside
    #[command(hide = true)]
    BareServer(bench::BareOptions),
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Tidy => tidy::run(),
        Command::Test(options) => test::run(options),
        Command::Docs(options) => docs::run(options),
        Command::Soak(options) => soak::run(options),
        Command::Bench(options) => bench::run(options),
        Command::BareServer(options) => bench::serve_bare(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("{sentence}");
            ExitCode::FAILURE
        }
    }
}
