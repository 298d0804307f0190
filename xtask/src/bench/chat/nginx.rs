//! nginx as a plain reverse proxy to the same upstream, if it is installed.

use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::process::{TempDir, free_port};

const START_LIMIT: Duration = Duration::from_secs(10);

/// A running nginx with one process. Dropping it stops it.
pub(super) struct Nginx {
    server: Child,
    port: u16,
    _folder: TempDir,
}

impl Nginx {
    /// Starts nginx in front of `upstream` (host and port). `None` if it is not installed.
    pub(super) fn start(upstream: &str) -> Result<Option<Self>, String> {
        let found = ["/usr/sbin/nginx", "/usr/bin/nginx", "/usr/local/sbin/nginx"];
        let Some(program) = found
            .into_iter()
            .find(|path| fs::exists(path).unwrap_or(false))
        else {
            return Ok(None);
        };
        let folder = TempDir::new("nginx")?;
        let root = folder.path().display().to_string();
        let port = free_port()?;
        let config = format!(
            "daemon off; master_process off; worker_processes 1; pid {root}/pid; error_log {root}/error.log;
             events {{ worker_connections 16384; }}
             http {{
               access_log off; client_body_temp_path {root}/body; proxy_temp_path {root}/proxy;
               fastcgi_temp_path {root}/f; uwsgi_temp_path {root}/u; scgi_temp_path {root}/s;
               keepalive_requests 1000000000; client_body_buffer_size 64k; client_max_body_size 64m;
               upstream there {{ server {upstream}; keepalive 512; keepalive_requests 1000000000; }}
               server {{ listen 127.0.0.1:{port}; location / {{
                 proxy_pass http://there; proxy_http_version 1.1; proxy_set_header Connection \"\"; proxy_buffering off; }} }}
             }}"
        );
        let path = folder.path().join("nginx.conf");
        fs::write(&path, config).map_err(|e| e.to_string())?;
        let mut command = Command::new(program);
        command
            .arg("-p")
            .arg(&root)
            .arg("-e")
            .arg(format!("{root}/error.log"))
            .arg("-c")
            .arg(&path);
        let server = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        let server = server.map_err(|e| format!("cannot start nginx: {e}"))?;
        let nginx = Self {
            server,
            port,
            _folder: folder,
        };
        let began = Instant::now();
        while std::net::TcpStream::connect(nginx.address()).is_err() {
            if began.elapsed() > START_LIMIT {
                return Err("nginx does not listen".to_owned());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(Some(nginx))
    }

    pub(super) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(super) fn pid(&self) -> u32 {
        self.server.id()
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
