//! `cargo xtask sdk`: runs the official SDKs, each in a current and an older version, and coding agents against a running gateway that has one
//! channel of every kind. `tests/sdk` lists what they must be able to do.
//!
//! 1. [`environment`]s with the pinned versions are created, if they do not exist yet.
//! 2. [`setup`] starts the fake providers and the gateway, and creates users and keys.
//! 3. Every script runs with every version; at the end the audit must succeed.

mod environment;
mod setup;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use crate::outcome::Outcome;
use crate::{process, repo};
use environment::{Environment, Language};
use setup::Setup;

/// The time limit of one script, so that a hanging script is recognised.
const SCRIPT_LIMIT: Duration = Duration::from_secs(600);
/// Prefixes of environment variables that would change the behaviour of an SDK.
const SDK_VARIABLE_PREFIXES: &[&str] = &["OPENAI_", "ANTHROPIC_", "GOOGLE_", "GEMINI_"];

/// The name of the environment of the coding agents.
const AGENTS: &str = "agents";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only the SDKs whose names begin with this, such as `openai`, `anthropic-0` or `node`
    #[arg(long)]
    only: Option<String>,
    /// Which coding agents run with which models
    #[arg(long, value_enum, default_value_t = Agents::Own)]
    agents: Agents,
    /// The folder of the programs `tollgate` and `tollgate-fakes`, instead of building them
    #[arg(long)]
    binaries: Option<PathBuf>,
    /// Only install the SDKs and agents
    #[arg(long)]
    install: bool,
    /// Only the cases whose names contain one of these words
    cases: Vec<String>,
}

/// Which pairs of a coding agent and a model are run.
#[derive(Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Agents {
    /// None; no agent is installed
    None,
    /// Every agent with a model of its own format, and one pair that needs translation
    Own,
    /// Every agent with every kind of channel
    All,
}

/// One SDK in one version, and a script that uses it.
struct Suite {
    environment: Environment,
    script: &'static str,
}

const fn suite(language: Language, environment: &'static str, script: &'static str) -> Suite {
    let environment = Environment {
        language,
        name: environment,
    };
    Suite {
        environment,
        script,
    }
}

const SUITES: &[Suite] = &[
    suite(Language::Python, "openai-3", "openai_chat.py"),
    suite(Language::Python, "openai-3", "openai_responses.py"),
    suite(Language::Python, "openai-3", "openai_media.py"),
    suite(Language::Python, "openai-1", "openai_chat.py"),
    suite(Language::Python, "openai-1", "openai_responses.py"),
    suite(Language::Python, "anthropic-2", "anthropic_messages.py"),
    suite(Language::Python, "anthropic-0", "anthropic_messages.py"),
    suite(Language::Python, "google-genai-3", "google_generate.py"),
    suite(Language::Python, "google-genai-2", "google_generate.py"),
    suite(Language::JavaScript, "node", "openai.cjs"),
    suite(Language::JavaScript, "node", "anthropic.cjs"),
    suite(Language::JavaScript, "node", "google.cjs"),
    suite(Language::JavaScript, AGENTS, "agents.cjs"),
];

/// Creates missing environments, starts everything, runs the scripts, audits the ledger.
pub(crate) fn run(options: Options) -> Outcome {
    let wanted = options.only.as_deref().unwrap_or_default();
    let suites = SUITES
        .iter()
        .filter(|suite| suite.environment.name.starts_with(wanted))
        .filter(|suite| suite.environment.name != AGENTS || options.agents != Agents::None);
    let mut suites: Vec<&Suite> = suites.collect();
    if suites.is_empty() {
        return Err(format!("--only: no SDK's name begins with `{wanted}`"));
    }
    let folder = repo::root().join("tests/sdk");
    let mut skipped = Vec::new();
    for suite in &suites {
        if let Some(why) = suite.environment.create_if_outdated(&folder)? {
            println!("sdk: {} SKIPPED: {why}", suite.script);
            skipped.push(suite.script);
        }
    }
    if options.install {
        return Ok(());
    }
    suites.retain(|suite| !skipped.contains(&suite.script));
    let binaries = match &options.binaries {
        Some(folder) => {
            fs::canonicalize(folder).map_err(|e| format!("no folder {}: {e}", folder.display()))?
        }
        None => setup::build_programs()?,
    };
    let mut setup = Setup::open(&binaries, &folder)?;
    let mut failed = Vec::new();
    for (number, suite) in suites.into_iter().enumerate() {
        let account = setup.create_account(number)?;
        let began = Instant::now();
        let passed = suite.run(&folder, &account, &options)?;
        let name = format!("{} {}", suite.environment.name, suite.script);
        println!("sdk: {name}: {:.1} s", began.elapsed().as_secs_f64());
        if !passed {
            failed.push(name);
        }
    }
    let audited = setup.audit_and_stop();
    if failed.is_empty() {
        return audited;
    }
    let log_tail = setup.log_tail();
    let audit_error = audited.map_or_else(|e| format!("\n{e}"), |()| String::new());
    Err(format!(
        "failed: {}{audit_error}; the gateway's log ends with:\n{log_tail}",
        failed.join(", ")
    ))
}

impl Suite {
    /// Runs the script; returns whether all of its cases passed.
    fn run(&self, folder: &Path, account: &str, options: &Options) -> Result<bool, String> {
        let mut command = Command::new(self.environment.program());
        command.arg(folder.join(self.script)).args(&options.cases);
        command.current_dir(folder);
        for (name, _) in std::env::vars_os() {
            let name = name.to_string_lossy();
            if SDK_VARIABLE_PREFIXES
                .iter()
                .any(|prefix| name.starts_with(prefix))
            {
                command.env_remove(&*name);
            }
        }
        command
            .env("TOLLGATE_SDK_SITE", account)
            .env(
                "TOLLGATE_SDK_AGENTS",
                match options.agents {
                    Agents::All => "all",
                    Agents::Own | Agents::None => "own",
                },
            )
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("NODE_PATH", self.environment.folder().join("node_modules"))
            .env("NO_PROXY", "127.0.0.1")
            .env("no_proxy", "127.0.0.1");
        let script = command.spawn();
        let mut script = script.map_err(|e| format!("cannot run {}: {e}", self.script))?;
        let ended = process::wait(&mut script, SCRIPT_LIMIT);
        if ended.is_none() {
            let _ = script.kill();
            let _ = script.wait();
            println!("{} did not end within {SCRIPT_LIMIT:?}", self.script);
        }
        Ok(ended.is_some_and(|status| status.success()))
    }
}
