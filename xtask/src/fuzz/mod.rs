//! `cargo xtask fuzz`: every parser of the chat formats against mutated input, for a while each. Each target runs in a process of its
//! own with a limit on its memory; an input that breaks it is left in `target/fuzz/`.

mod mutate;
mod targets;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::rng::Rng;
use crate::{Outcome, gateway, repo};
use mutate::Corpus;
use targets::{TARGETS, Target};

/// Address space of a target's process: inputs are at most [`mutate::LONGEST`] bytes.
const MEMORY: u64 = 1024 * 1024 * 1024;
/// Inputs between two looks at the clock.
const BATCH: u64 = 256;

#[derive(clap::Args)]
pub(crate) struct Options {
    /// How long each target runs
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Only targets whose name contains this
    #[arg(long)]
    only: Option<String>,
    /// Seed of the random choices; it is printed, so that a run can be repeated
    #[arg(long)]
    seed: Option<u64>,
}

#[derive(clap::Args)]
pub(crate) struct OneOptions {
    target: String,
    seconds: u64,
    seed: u64,
    /// Write every input down before it is tried: finds the one that ends the process
    #[arg(long)]
    record: bool,
}

/// Runs every target.
pub(crate) fn run(options: &Options) -> Outcome {
    if cfg!(debug_assertions) {
        return crate::bench::rerun_in_release();
    }
    let seed = options.seed.unwrap_or_else(Rng::fresh_seed);
    println!("seed {seed}");
    let wanted = |target: &&Target| {
        options
            .only
            .as_ref()
            .is_none_or(|only| target.name.contains(only))
    };
    let mut broken = 0;
    for target in TARGETS.iter().filter(wanted) {
        let ended = child(target.name, options.seconds, seed, false)?;
        if !ended {
            broken += 1;
            // Once more with every input written down, for those that end the process.
            child(target.name, options.seconds, seed, true)?;
            println!(
                "{}: BROKEN; the input is in {}",
                target.name,
                folder().display()
            );
        }
    }
    match broken {
        0 => Ok(()),
        n => Err(format!("fuzz: {n} targets broke")),
    }
}

fn child(target: &str, seconds: u64, seed: u64, record: bool) -> Result<bool, String> {
    let program = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut command = Command::new(program);
    command.args(["fuzz-one", target, &seconds.to_string(), &seed.to_string()]);
    if record {
        command.arg("--record").stdout(Stdio::null());
    }
    let status = command
        .status()
        .map_err(|e| format!("cannot start a target: {e}"))?;
    Ok(status.success())
}

/// Runs one target in this process.
pub(crate) fn run_one(options: &OneOptions) -> Outcome {
    let target = TARGETS.iter().find(|t| t.name == options.target);
    let target = target.ok_or_else(|| format!("no target {:?}", options.target))?;
    let corpus = Corpus::load(
        &repo::root().join("crates/tollgate-chat/tests/golden"),
        target.corpus,
    )?;
    rlimit::setrlimit(rlimit::Resource::AS, MEMORY, MEMORY)
        .map_err(|e| format!("cannot limit memory: {e}"))?;
    fs::create_dir_all(folder()).map_err(|e| e.to_string())?;
    // A panic is told below; its own words only once.
    std::panic::set_hook(Box::new(|_| {}));
    let mut rng = Rng::new(options.seed);
    let (began, limit) = (Instant::now(), Duration::from_secs(options.seconds));
    let mut inputs: u64 = 0;
    while !inputs.is_multiple_of(BATCH) || began.elapsed() < limit {
        let input = corpus.mutated(&mut rng);
        inputs += 1;
        if options.record {
            save(target.name, "last", &input)?;
        }
        let cuts = rng.number();
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (target.run)(&input, cuts))) {
            let said = panic.downcast_ref::<String>().cloned();
            let said = said.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
            let path = save(target.name, "panic", &input)?;
            return Err(format!(
                "{}: {} on {}",
                target.name,
                said.unwrap_or_default(),
                path.display()
            ));
        }
    }
    let peak = peak_mib().unwrap_or(0);
    println!(
        "{:<40} {inputs:>10} inputs, {} in the corpus, peak {peak} MiB",
        target.name,
        corpus.len()
    );
    Ok(())
}

fn folder() -> PathBuf {
    gateway::target_folder().join("fuzz")
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
