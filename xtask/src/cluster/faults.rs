//! The faults: what is broken, and how it is repaired.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use super::link::{Link, Traffic};
use super::server::Server;
use super::setup::{Cluster, Links};
use crate::outcome::Outcome;
use crate::postgres::Shutdown;

/// The lease of nodes during faults, in seconds.
pub(super) const LEASE_S: u64 = 5;

const SHORT: Duration = Duration::from_secs(3);
const PAST_THE_LEASE: Duration = Duration::from_secs(LEASE_S + 3);

/// A fault.
pub(super) struct Fault {
    /// The name for `--only`: the affected part, and what happens to it.
    pub(super) name: &'static str,
    /// Preparation that takes time and breaks nothing yet.
    pub(super) prepare: fn(&mut Cluster) -> Outcome,
    /// The time between injection and repair.
    pub(super) lasts: Duration,
    /// Injects the fault. Returns false if a part that it needs is missing.
    pub(super) inject: fn(&mut Cluster) -> Result<bool, String>,
    pub(super) repair: fn(&mut Cluster) -> Outcome,
}

/// Every fault, in the order of injection.
pub(super) const FAULTS: &[Fault] = &[
    Fault {
        name: "node-killed",
        prepare: do_nothing,
        lasts: SHORT,
        inject: |cluster| cluster.gateway(0).kill().map(|()| true),
        repair: |cluster| cluster.gateway(0).start().map(drop),
    },
    Fault {
        name: "node-restarted",
        prepare: do_nothing,
        lasts: Duration::ZERO,
        inject: |cluster| cluster.gateway(1).stop().map(|_| true),
        repair: |cluster| cluster.gateway(1).start().map(drop),
    },
    Fault {
        name: "node-paused-past-its-lease",
        prepare: do_nothing,
        lasts: PAST_THE_LEASE,
        inject: |cluster| cluster.gateway(2).pause().map(|()| true),
        repair: |cluster| cluster.gateway(2).resume(),
    },
    Fault {
        name: "node-cut-from-clients",
        prepare: do_nothing,
        lasts: SHORT,
        inject: |cluster| set_traffic(cluster, 0, |links| Some(&links.clients), Traffic::IsCut),
        repair: |cluster| restore_traffic(cluster, |links| Some(&links.clients)),
    },
    Fault {
        name: "node-stalled-from-clients",
        prepare: do_nothing,
        lasts: SHORT,
        inject: |cluster| set_traffic(cluster, 1, |links| Some(&links.clients), Traffic::Stalls),
        repair: |cluster| restore_traffic(cluster, |links| Some(&links.clients)),
    },
    Fault {
        name: "node-cut-from-database",
        prepare: do_nothing,
        lasts: SHORT,
        inject: |cluster| set_traffic(cluster, 2, |links| Some(&links.database), Traffic::IsCut),
        repair: |cluster| restore_traffic(cluster, |links| Some(&links.database)),
    },
    Fault {
        name: "node-stalled-from-database-past-its-lease",
        prepare: do_nothing,
        lasts: PAST_THE_LEASE,
        inject: |cluster| set_traffic(cluster, 0, |links| Some(&links.database), Traffic::Stalls),
        repair: |cluster| restore_traffic(cluster, |links| Some(&links.database)),
    },
    Fault {
        name: "database-restarted",
        prepare: do_nothing,
        lasts: Duration::ZERO,
        inject: |cluster| cluster.database.stop(Shutdown::Fast).map(|()| true),
        repair: |cluster| cluster.database.start_server(),
    },
    Fault {
        name: "database-crashed",
        prepare: do_nothing,
        lasts: SHORT,
        inject: |cluster| cluster.database.stop(Shutdown::Immediate).map(|()| true),
        repair: |cluster| cluster.database.start_server(),
    },
    Fault {
        name: "database-paused",
        prepare: do_nothing,
        lasts: SHORT,
        inject: |cluster| cluster.database.signal_all("STOP").map(|()| true),
        repair: |cluster| cluster.database.signal_all("CONT"),
    },
    Fault {
        name: "database-fails-over",
        prepare: start_standby,
        lasts: Duration::ZERO,
        inject: fail_over,
        repair: do_nothing,
    },
    Fault {
        name: "redis-killed",
        prepare: do_nothing,
        lasts: SHORT,
        inject: |cluster| apply_to_server(cluster.redis.as_mut(), Server::kill),
        repair: |cluster| apply_to_server(cluster.redis.as_mut(), Server::start).map(drop),
    },
    Fault {
        name: "redis-paused",
        prepare: do_nothing,
        lasts: SHORT,
        inject: |cluster| apply_to_server(cluster.redis.as_mut(), |redis| redis.pause()),
        repair: |cluster| apply_to_server(cluster.redis.as_mut(), |redis| redis.resume()).map(drop),
    },
    Fault {
        name: "redis-emptied",
        prepare: do_nothing,
        lasts: Duration::ZERO,
        inject: |cluster| apply_to_server(cluster.redis.as_mut(), |redis| flush_redis(redis)),
        repair: do_nothing,
    },
    Fault {
        name: "node-stalled-from-redis",
        prepare: do_nothing,
        lasts: SHORT,
        inject: |cluster| set_traffic(cluster, 1, |links| links.redis.as_ref(), Traffic::Stalls),
        repair: |cluster| restore_traffic(cluster, |links| links.redis.as_ref()),
    },
    Fault {
        name: "s3-killed",
        prepare: do_nothing,
        lasts: SHORT,
        inject: |cluster| apply_to_server(cluster.s3.as_mut(), Server::kill),
        repair: |cluster| apply_to_server(cluster.s3.as_mut(), Server::start).map(drop),
    },
    Fault {
        name: "node-stalled-from-s3",
        prepare: do_nothing,
        lasts: SHORT,
        inject: |cluster| set_traffic(cluster, 2, |links| links.s3.as_ref(), Traffic::Stalls),
        repair: |cluster| restore_traffic(cluster, |links| links.s3.as_ref()),
    },
];

fn do_nothing(_: &mut Cluster) -> Outcome {
    Ok(())
}

/// Sets the traffic of a node's link. Returns false if the node has no such link.
fn set_traffic(
    cluster: &Cluster,
    node: usize,
    link: fn(&Links) -> Option<&Link>,
    traffic: Traffic,
) -> Result<bool, String> {
    let links = &cluster.links[node % cluster.links.len()];
    match link(links) {
        Some(link) => link.set_traffic(traffic).map(|()| true),
        None => Ok(false),
    }
}

/// Lets every link of this kind forward its bytes again.
fn restore_traffic(cluster: &Cluster, link: fn(&Links) -> Option<&Link>) -> Outcome {
    for links in &cluster.links {
        if let Some(link) = link(links) {
            link.set_traffic(Traffic::Passes)?;
        }
    }
    Ok(())
}

/// Applies `act` to a server. Returns false if there is no such server.
fn apply_to_server(
    server: Option<&mut Server>,
    act: impl FnOnce(&mut Server) -> Outcome,
) -> Result<bool, String> {
    match server {
        Some(server) => act(server).map(|()| true),
        None => Ok(false),
    }
}

fn start_standby(cluster: &mut Cluster) -> Outcome {
    cluster.standby = Some(cluster.database.start_standby()?);
    Ok(())
}

/// Kills the server as a power cut would, and promotes its standby, for which every commit has waited.
fn fail_over(cluster: &mut Cluster) -> Result<bool, String> {
    let Some(standby) = cluster.standby.take() else {
        return Ok(false);
    };
    cluster.database.stop(Shutdown::Immediate)?;
    standby.promote()?;
    for links in &cluster.links {
        links.database.redirect_to(&standby.address())?;
    }
    cluster.database = standby;
    Ok(true)
}

/// Sends FLUSHALL to Redis.
fn flush_redis(redis: &Server) -> Outcome {
    let flushed = || -> std::io::Result<[u8; 3]> {
        let mut connection = TcpStream::connect(redis.address())?;
        connection.write_all(b"FLUSHALL\r\n")?;
        let mut reply = [0; 3];
        connection.read_exact(&mut reply)?;
        Ok(reply)
    };
    match flushed() {
        Ok(reply) if &reply == b"+OK" => Ok(()),
        Ok(reply) => Err(format!("FLUSHALL: {}", String::from_utf8_lossy(&reply))),
        Err(e) => Err(format!("FLUSHALL: {e}")),
    }
}
