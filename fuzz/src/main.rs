//! `cargo xtask fuzz`: runs every parser of input from clients, providers and operators on mutated input, each for a limited time. Each target runs
//! in a separate process with a memory limit; an input that breaks it is saved in `target/fuzz/`.

mod chat;
mod corpus;
mod files;
mod mutate;
mod requests;
mod target;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Parser;
use mutate::Corpus;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use target::Target;

/// Address space of a target's process: inputs are at most [`mutate::LONGEST`] bytes.
const MEMORY: u64 = 1024 * 1024 * 1024;
/// The number of inputs between two checks of the elapsed time.
const BATCH: u64 = 64;

fn targets() -> Vec<Target> {
    [chat::targets(), requests::targets(), files::targets()]
        .into_iter()
        .flatten()
        .collect()
}

#[derive(Parser)]
#[command(name = "cargo xtask fuzz", about = "Mutated input for every parser")]
struct Options {
    /// How long each target runs
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Only targets whose name contains this
    #[arg(long)]
    only: Option<String>,
    /// Seed of the random choices; it is printed, so that a run can be repeated
    #[arg(long)]
    seed: Option<u64>,
    /// Run this target in this process
    #[arg(long, hide = true, requires = "seed")]
    target: Option<String>,
    /// Write every input down before it is tried: finds the one that ends the process
    #[arg(long, hide = true)]
    record: bool,
}

fn main() -> ExitCode {
    tollgate_config::providers::add_providers(tollgate_sandbox::PROVIDERS);
    let options = Options::parse();
    let outcome = match &options.target {
        Some(name) => run_one(name, &options),
        None => run_all(&options),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(sentence) => {
            eprintln!("{sentence}");
            ExitCode::FAILURE
        }
    }
}

fn run_all(options: &Options) -> Result<(), String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let fresh = now.map_or(0, |now| now.as_secs() ^ u64::from(now.subsec_nanos()));
    let seed = options.seed.unwrap_or(fresh);
    println!("seed {seed}");
    let only = options.only.as_deref().unwrap_or_default();
    let mut broken = 0;
    for target in targets().iter().filter(|target| target.name.contains(only)) {
        let succeeded = run_in_new_process(&target.name, options.seconds, seed, false)?;
        if !succeeded {
            broken += 1;
            // Repeats the run with every input recorded, to find inputs that end the process.
            run_in_new_process(&target.name, options.seconds, seed, true)?;
            let folder = folder();
            println!(
                "{}: BROKEN; the input is in {}",
                target.name,
                folder.display()
            );
        }
    }
    match broken {
        0 => Ok(()),
        n => Err(format!("fuzz: {n} targets broke")),
    }
}

/// Runs one target in a new process; returns whether it succeeded. With `record`, its stdout is discarded.
fn run_in_new_process(target: &str, seconds: u64, seed: u64, record: bool) -> Result<bool, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut command = Command::new(program);
    command.args(["--target", target]);
    command.args([
        "--seconds",
        &seconds.to_string(),
        "--seed",
        &seed.to_string(),
    ]);
    if record {
        command.arg("--record").stdout(Stdio::null());
    }
    let status = command
        .status()
        .map_err(|e| format!("cannot start a target: {e}"))?;
    Ok(status.success())
}

/// Runs one target in this process.
fn run_one(name: &str, options: &Options) -> Result<(), String> {
    let target = targets().into_iter().find(|target| target.name == name);
    let target = target.ok_or_else(|| format!("no target {name:?}"))?;
    let corpus = Corpus::new((target.corpus)()?);
    rlimit::setrlimit(rlimit::Resource::AS, MEMORY, MEMORY)
        .map_err(|e| format!("cannot limit memory: {e}"))?;
    fs::create_dir_all(folder()).map_err(|e| e.to_string())?;
    // Panics are reported below; the hook suppresses Rust's own message, so that each appears only once.
    std::panic::set_hook(Box::new(|_| {}));
    let mut rng = StdRng::seed_from_u64(options.seed.unwrap_or_default());
    let (began, limit) = (Instant::now(), Duration::from_secs(options.seconds));
    let mut inputs: u64 = 0;
    while !inputs.is_multiple_of(BATCH) || began.elapsed() < limit {
        let input = corpus.mutated(&mut rng);
        inputs += 1;
        if options.record {
            save(name, "last", &input)?;
        }
        let cuts = rng.random();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (target.run)(&input, cuts))) {
            let message = panic.downcast_ref::<String>().cloned();
            let message = message.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
            let path = save(name, "panic", &input)?;
            let message = message.unwrap_or_default();
            return Err(format!("{name}: {message} on {}", path.display()));
        }
    }
    let peak = peak_mib().unwrap_or(0);
    println!(
        "{name:<40} {inputs:>10} inputs, {} in the corpus, peak {peak} MiB",
        corpus.len()
    );
    Ok(())
}

/// The folder for inputs that break a target.
fn folder() -> PathBuf {
    let set = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    set.unwrap_or_else(|| corpus::root().join("target"))
        .join("fuzz")
}

fn save(target: &str, what: &str, input: &[u8]) -> Result<PathBuf, String> {
    let path = folder().join(format!("{target}.{what}"));
    fs::write(&path, input).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path)
}

fn peak_mib() -> Option<u64> {
    let status = fs::read_to_string(Path::new("/proc/self/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? / 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs in the ordinary tests, so that a broken target is noticed without a fuzz run.
    #[test]
    fn every_target_accepts_its_corpus_and_some_mutations() {
        for target in targets() {
            let cases = (target.corpus)().unwrap();
            assert!(!cases.is_empty(), "{}", target.name);
            for case in &cases {
                (target.run)(case, 7);
            }
            let corpus = Corpus::new(cases);
            let mut rng = StdRng::seed_from_u64(1);
            for _ in 0..20 {
                (target.run)(&corpus.mutated(&mut rng), rng.random());
            }
        }
    }
}
