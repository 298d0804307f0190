//! The setup of a gateway before its start.

use std::sync::Arc;

use super::database::Database;
use super::process::Address;
use super::secrets::Secrets;
use super::*;

/// A gateway that is not started yet: no demo user, a sandbox without delays, a free port.
pub(crate) struct Setup {
    backend: Backend,
    config: String,
    environment: Vec<(String, String)>,
    listen: String,
    admin_key: Option<String>,
    database: Option<Arc<Database>>,
    has_no_tables: bool,
}

impl Setup {
    pub(crate) fn new(backend: Backend) -> Self {
        let setup = Self {
            backend,
            config: String::new(),
            environment: Vec::new(),
            listen: "127.0.0.1:0".to_owned(),
            admin_key: None,
            database: None,
            has_no_tables: false,
        };
        let kinds = ["IMAGE", "VIDEO", "SPEECH"].map(|kind| format!("TOLLGATE_SANDBOX__{kind}_MS"));
        kinds.iter().fold(setup, |setup, name| setup.env(name, "0"))
    }

    /// Text of `tollgate.toml`.
    pub(crate) fn config(mut self, toml: &str) -> Self {
        self.config.push_str(toml);
        self
    }

    /// Sets an environment variable of the server and of every command.
    pub(crate) fn env(mut self, name: &str, value: impl Into<String>) -> Self {
        self.environment.push((name.to_owned(), value.into()));
        self
    }

    /// On PostgreSQL, the database has no tables yet; on SQLite a new database never has any.
    pub(crate) fn without_tables(mut self) -> Self {
        self.has_no_tables = true;
        self
    }

    /// Counts limits in that Redis, with a long timeout: on a busy machine calls take long.
    pub(crate) fn redis(self, url: impl Into<String>) -> Self {
        self.env("TOLLGATE_LIMITS__REDIS_URL", url)
            .env("TOLLGATE_LIMITS__REDIS_TIMEOUT_MS", "1000")
    }

    /// Sets the address to listen on; the default is a free port of loopback.
    pub(crate) fn listen(mut self, address: &str) -> Self {
        address.clone_into(&mut self.listen);
        self
    }

    /// Sets the key that protects what only the operator may read.
    pub(crate) fn admin_key(mut self, key: &str) -> Self {
        self.admin_key = Some(key.to_owned());
        self.env("TOLLGATE_ADMIN__KEY", key)
    }

    /// Uses the database and the files of `other`, as a second node. Only if `other` is on PostgreSQL.
    pub(crate) fn beside(mut self, other: &TestGateway) -> Self {
        let database = other.database.as_ref().expect("a shared database");
        self.database = Some(Arc::clone(database));
        let files = other.data_dir().join("files");
        let url = format!("file://{}", files.display());
        self.env("TOLLGATE_STORAGE__URL", url)
    }

    /// Prepares everything, and does not start the server.
    pub(crate) async fn prepare(self) -> TestGateway {
        let dir = TempDir::new();
        std::fs::write(dir.join("tollgate.toml"), &self.config).unwrap();
        let database = match (self.database, self.backend) {
            (None, Backend::Postgres) => Some(Arc::new(Database::create(self.has_no_tables).await)),
            (database, _) => database,
        };
        let mut environment = self.environment;
        if let Some(database) = &database {
            environment.push(("TOLLGATE_DATABASE__URL".to_owned(), database.url()));
        }
        let secrets = Secrets::default();
        secrets.read_config(&self.config);
        for (name, value) in &environment {
            secrets.read_variable(name, value);
        }
        TestGateway {
            dir,
            database,
            environment,
            listen: self.listen,
            server: None,
            address: Address::default(),
            http: client::http(),
            secrets,
            admin_key: self.admin_key,
            was_killed: false,
            closed: false,
        }
    }

    /// Starts the gateway; returns when it listens.
    pub(crate) async fn start(self) -> TestGateway {
        let mut gateway = self.prepare().await;
        gateway.start_server().await;
        gateway
    }
}
