//! A network namespace for each gateway, with a virtual cable to each part. A disconnected cable loses every packet in both directions without
//! notice to either side, as between two machines. Needs root and `ip` (Debian's iproute2).
//!
//! Addresses are from 198.18.0.0/15, which is reserved for network tests.

use std::process::Command;
use std::{fs, process};

use crate::outcome::Outcome;
use crate::process::output;

/// A namespace with the loopback interface and one end of each cable.
pub(super) struct Network {
    namespace: String,
    cables: Vec<Cable>,
}

/// A virtual Ethernet pair between the namespace and a bridge of this machine.
#[derive(Clone)]
pub(super) struct Cable {
    bridge: String,
    /// The name of the end on this machine.
    port: String,
    /// The address of the gateway's end.
    pub(super) gateway: String,
    /// The address of the bridge, at which the gateway reaches this machine.
    pub(super) host: String,
}

impl Network {
    /// Creates the network of gateway `number` (0 to 15) with that number of cables (at most 16). `None` if this machine does not allow it.
    pub(super) fn create(number: usize, cables: usize) -> Result<Option<Self>, String> {
        let id = format!("tg{:x}-{number:x}", process::id());
        if !is_root() || ip(&format!("netns add {id}")).is_err() {
            return Ok(None);
        }
        let mut network = Self {
            namespace: id,
            cables: Vec::new(),
        };
        ip(&format!("-n {} link set lo up", network.namespace))?;
        for at in 0..cables {
            network.add_cable(number, at)?;
        }
        Ok(Some(network))
    }

    fn add_cable(&mut self, number: usize, at: usize) -> Outcome {
        let namespace = &self.namespace;
        let name = |end: char| format!("{namespace}{at:x}{end}");
        let (bridge, port, inside) = (name('b'), name('p'), name('n'));
        let host = format!("198.18.{number}.{}", 4 * at + 1);
        let gateway = format!("198.18.{number}.{}", 4 * at + 2);
        // An explicit address: a bridge without one uses the address of its port, and would continue to receive packets for it.
        ip(&format!(
            "link add {bridge} address 02:00:00:00:{number:02x}:{at:02x} type bridge"
        ))?;
        self.cables.push(Cable {
            bridge: bridge.clone(),
            port: port.clone(),
            gateway: gateway.clone(),
            host: host.clone(),
        });
        for command in [
            format!("link add {port} type veth peer name {inside} netns {namespace}"),
            format!("address add {host}/30 dev {bridge}"),
            format!("link set {port} master {bridge} up"),
            format!("link set {bridge} up"),
            format!("-n {namespace} address add {gateway}/30 dev {inside}"),
            format!("-n {namespace} link set {inside} up"),
        ] {
            ip(&command)?;
        }
        Ok(())
    }

    /// The name of the namespace for `ip netns`.
    pub(super) fn namespace(&self) -> &str {
        &self.namespace
    }

    pub(super) fn cable(&self, at: usize) -> Cable {
        self.cables[at].clone()
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        // Deleting the namespace deletes the interfaces in it, and deleting one end of a cable deletes the other.
        let mut commands = vec![format!("netns delete {}", self.namespace)];
        let bridges = self.cables.iter().map(|cable| &cable.bridge);
        commands.extend(bridges.map(|bridge| format!("link delete {bridge}")));
        for command in commands {
            if let Err(e) = ip(&command) {
                eprintln!("{e}");
            }
        }
    }
}

impl Cable {
    /// Drops all packets from now on.
    pub(super) fn disconnect(&self) -> Outcome {
        ip(&format!("link set {} nomaster", self.port))
    }

    /// Forwards packets again.
    pub(super) fn reconnect(&self) -> Outcome {
        ip(&format!("link set {} master {}", self.port, self.bridge))
    }
}

fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    ids.and_then(|ids| ids.split_whitespace().nth(1)) == Some("0")
}

fn ip(arguments: &str) -> Outcome {
    let ran = output(Command::new("ip").args(arguments.split_whitespace()));
    ran.map(drop).map_err(|e| format!("ip {arguments}: {e}"))
}
