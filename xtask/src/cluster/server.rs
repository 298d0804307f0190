//! Redis and the S3 server: started in folders of their own, stopped, paused and restarted.

use std::fs::File;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use std::{env, fs};

use crate::outcome::Outcome;
use crate::process::{self, TempDir, free_port, signal};

const START_LIMIT: Duration = Duration::from_secs(60);
const STOP_LIMIT: Duration = Duration::from_secs(10);
/// The access key that the S3 server accepts, and its secret.
pub(crate) const S3_KEYS: (&str, &str) = ("cluster", "cluster-secret");
pub(crate) const BUCKET: &str = "tollgate";

/// A server program of another project.
pub(crate) struct Server {
    name: &'static str,
    program: PathBuf,
    arguments: Vec<String>,
    port: u16,
    folder: TempDir,
    child: Option<Child>,
}

impl Server {
    /// Starts Redis or Valkey, without persistence. `None` if neither is installed.
    pub(crate) fn start_redis() -> Result<Option<Self>, String> {
        let Some(program) = find_program(&["redis-server", "valkey-server"]) else {
            return Ok(None);
        };
        let port = free_port()?;
        let arguments = ["--port", &port.to_string(), "--bind", "127.0.0.1"];
        let volatile = ["--save", "", "--appendonly", "no"];
        let arguments = arguments.into_iter().chain(volatile);
        let arguments = arguments.map(str::to_owned).collect();
        Self::start_new("redis", program, arguments, port).map(Some)
    }

    /// Starts SeaweedFS as an S3 server with an empty bucket. `None` if it is not installed.
    pub(crate) fn start_s3() -> Result<Option<Self>, String> {
        let Some(program) = find_program(&["weed"]) else {
            return Ok(None);
        };
        let port = free_port()?;
        let mut arguments = vec!["mini".to_owned()];
        for (option, value) in [
            ("dir", "."),
            ("ip", "127.0.0.1"),
            ("ip.bind", "127.0.0.1"),
            ("bucket", BUCKET),
            ("webdav", "false"),
            ("admin.ui", "false"),
            ("master.telemetry", "false"),
            ("s3.port.iceberg", "0"),
            ("s3.port.lance", "0"),
        ] {
            arguments.push(format!("-{option}={value}"));
        }
        arguments.push(format!("-s3.port={port}"));
        for option in [
            "s3.port.grpc",
            "master.port",
            "master.port.grpc",
            "volume.port",
            "volume.port.grpc",
            "filer.port",
            "filer.port.grpc",
            "admin.port",
            "admin.port.grpc",
        ] {
            arguments.push(format!("-{option}={}", free_port()?));
        }
        Self::start_new("s3", program, arguments, port).map(Some)
    }

    fn start_new(
        name: &'static str,
        program: PathBuf,
        arguments: Vec<String>,
        port: u16,
    ) -> Result<Self, String> {
        let folder = TempDir::new(name)?;
        let mut server = Self {
            name,
            program,
            arguments,
            port,
            folder,
            child: None,
        };
        server.start()?;
        Ok(server)
    }

    /// The server's host and port.
    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Starts the server, and waits until it accepts connections.
    pub(super) fn start(&mut self) -> Outcome {
        let log = self.folder.path().join("log");
        let log_file = File::create(&log);
        let log_file = log_file.map_err(|e| format!("cannot write {}: {e}", log.display()))?;
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .current_dir(self.folder.path());
        command.env("AWS_ACCESS_KEY_ID", S3_KEYS.0);
        command.env("AWS_SECRET_ACCESS_KEY", S3_KEYS.1);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.stderr(log_file).spawn();
        let child = child.map_err(|e| format!("cannot start {}: {e}", self.program.display()))?;
        let child = self.child.insert(child);
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let has_ended = !matches!(child.try_wait(), Ok(None));
            if has_ended || began.elapsed() > START_LIMIT {
                let log = fs::read_to_string(&log).unwrap_or_default();
                return Err(format!("{} does not start: {}", self.name, log.trim()));
            }
            sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// Kills the server as a power cut would.
    pub(super) fn kill(&mut self) -> Outcome {
        let mut child = self.child.take().ok_or("the server is not running")?;
        child
            .kill()
            .and_then(|()| child.wait())
            .map_err(|e| format!("cannot end {}: {e}", self.name))?;
        Ok(())
    }

    /// Pauses the server (SIGSTOP); its connections stay open.
    pub(super) fn pause(&self) -> Outcome {
        self.signal("STOP")
    }

    /// Resumes the server after [`Server::pause`].
    pub(super) fn resume(&self) -> Outcome {
        self.signal("CONT")
    }

    fn signal(&self, name: &str) -> Outcome {
        let child = self.child.as_ref().ok_or("the server is not running")?;
        signal(child, name)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // A paused process receives no other signal.
            let _ = signal(child, "CONT");
            process::stop(child, "TERM", STOP_LIMIT);
        }
    }
}

/// The first of `programs` that is found in `PATH`.
fn find_program(programs: &[&str]) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    let in_folders = |name: &&str| {
        let paths = folders.iter().map(|folder: &PathBuf| folder.join(name));
        paths.into_iter().find(|path: &PathBuf| Path::is_file(path))
    };
    programs.iter().find_map(in_folders)
}
