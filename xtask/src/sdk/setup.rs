//! The servers that the SDKs use: a gateway with channels to the fake providers, and accounts on it.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use crate::gateway::{Gateway, target_folder};
use crate::outcome::Outcome;
use crate::process;
use crate::repo;

const STOP_LIMIT: Duration = Duration::from_secs(10);
/// The balance of every account.
const CREDIT: u32 = 1_000;
/// The fakes: the provider, the key that it accepts, and the variable of `gateway.toml` for its address.
const FAKES: &[(&str, &str, &str)] = &[
    ("openai", "sk-fake-openai", "OPENAI_FAKE"),
    ("anthropic", "sk-ant-fake", "ANTHROPIC_FAKE"),
    ("gemini", "fake-gemini-key", "GEMINI_FAKE"),
];

/// Builds the gateway and the fakes; returns the folder of the programs.
pub(super) fn build_programs() -> Result<PathBuf, String> {
    let mut cargo = process::cargo();
    cargo.current_dir(repo::root()).args(["build", "--locked"]);
    cargo.args(["-p", "tollgate-cli", "-p", "tollgate-fakes"]);
    let status = cargo.status();
    let status = status.map_err(|e| format!("cannot run cargo: {e}"))?;
    if !status.success() {
        return Err("the build failed".to_owned());
    }
    Ok(target_folder().join("debug"))
}

/// All running programs. Dropped in this order: gateway, fakes.
pub(super) struct Setup {
    gateway: Gateway,
    _fakes: Vec<Fake>,
}

impl Setup {
    /// Starts the programs in `binaries` as configured in `folder`/gateway.toml.
    pub(super) fn open(binaries: &Path, folder: &Path) -> Result<Self, String> {
        let settings = folder.join("gateway.toml");
        let settings = fs::read_to_string(&settings)
            .map_err(|e| format!("cannot read {}: {e}", settings.display()))?;
        let mut gateway = Gateway::prepare(&binaries.join("tollgate"), &settings)?;
        let mut fakes = Vec::new();
        for (provider, key, variable) in FAKES {
            let fake = Fake::start(&binaries.join("tollgate-fakes"), provider, key)?;
            gateway.set_environment(variable, fake.base_url.clone());
            fakes.push(fake);
        }
        gateway.start()?;
        Ok(Self {
            gateway,
            _fakes: fakes,
        })
    }

    /// Creates users and keys for one script; returns the values that the script needs, as JSON.
    pub(super) fn create_account(&self, number: usize) -> Result<String, String> {
        let (user, empty) = (format!("sdk-{number}"), format!("sdk-{number}-empty"));
        let credit = CREDIT.to_string();
        self.gateway
            .cli_json(&["user", "create", &user, "--balance", &credit])?;
        self.gateway.cli_json(&["user", "create", &empty])?;
        let key = |arguments: &[&str]| {
            let create = ["key", "create", "--user"];
            let record = self.gateway.cli_json(&[&create, arguments].concat())?;
            let key = record.get("key").and_then(Value::as_str).map(str::to_owned);
            key.ok_or_else(|| format!("no key in {record}"))
        };
        let account = json!({
            "url": format!("http://{}", self.gateway.address()),
            "credit": CREDIT,
            "key": key(&[&user])?,
            "empty_key": key(&[&empty])?,
            "limited_key": key(&[&user, "--rpm", "1"])?,
        });
        Ok(account.to_string())
    }

    /// Audits the ledger, then stops the gateway cleanly.
    pub(super) fn audit_and_stop(&mut self) -> Outcome {
        let printed = self.gateway.cli(&["audit"])?;
        print!("{printed}");
        let status = self.gateway.stop()?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("the gateway ended with {status}"))
        }
    }

    /// The end of the gateway's log.
    pub(super) fn log_tail(&self) -> String {
        self.gateway.log_tail()
    }
}

/// A running fake provider.
struct Fake {
    program: Child,
    /// The `base_url` for a channel.
    base_url: String,
}

impl Fake {
    fn start(binary: &Path, provider: &str, key: &str) -> Result<Self, String> {
        let mut command = Command::new(binary);
        command.args(["--provider", provider, "--key", key]);
        command.stdin(Stdio::null()).stdout(Stdio::piped());
        let program = command.spawn();
        let program = program.map_err(|e| format!("cannot start {}: {e}", binary.display()))?;
        let mut fake = Self {
            program,
            base_url: String::new(),
        };
        let mut line = String::new();
        if let Some(stdout) = &mut fake.program.stdout {
            let read = BufReader::new(stdout).read_line(&mut line);
            read.map_err(|e| format!("cannot read the output of the fake {provider}: {e}"))?;
        }
        let url = line.trim().strip_prefix("listening on ");
        fake.base_url = url
            .ok_or_else(|| format!("the fake {provider} does not listen"))?
            .to_owned();
        Ok(fake)
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        process::stop(&mut self.program, "INT", STOP_LIMIT);
    }
}
