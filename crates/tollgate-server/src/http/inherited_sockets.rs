//! Listening sockets that the service manager passes to the process; they stay open while the gateway restarts
//! (<https://www.freedesktop.org/software/systemd/man/latest/sd_listen_fds.html>).

use std::env;
use std::net::TcpListener;

use listenfd::ListenFd;

/// Names that a unit can give to a socket (`FileDescriptorName=`) to select the listener that uses it.
const METRICS: &str = "metrics";
const ADMIN: &str = "admin";

/// The sockets of `LISTEN_FDS`.
pub struct InheritedSockets {
    sockets: ListenFd,
    /// The name of each socket; `None` if the socket was taken.
    names: Vec<Option<String>>,
}

impl InheritedSockets {
    /// The sockets that `LISTEN_FDS` counts, if `LISTEN_PID` is this process, with the names in `LISTEN_FDNAMES`.
    pub fn from_env() -> Self {
        let sockets = ListenFd::from_env();
        let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
        Self {
            names: name_sockets(sockets.len(), &names),
            sockets,
        }
    }

    /// Takes the socket that replaces `listen`: the first one that is not named for another listener. `None` if there is none.
    ///
    /// # Errors
    /// A sentence for the operator if it is not a listening TCP socket.
    pub fn take(&mut self) -> Result<Option<TcpListener>, String> {
        let found = next_unnamed(&self.names);
        self.take_at(found)
    }

    /// Takes the socket that replaces `metrics.listen`: the one with that name, else the next that is not named for another listener.
    ///
    /// # Errors
    /// As [`InheritedSockets::take`].
    pub fn take_metrics(&mut self) -> Result<Option<TcpListener>, String> {
        let found = position(&self.names, METRICS).or_else(|| next_unnamed(&self.names));
        self.take_at(found)
    }

    /// Takes the socket that replaces `admin.listen`: the one with that name.
    ///
    /// # Errors
    /// As [`InheritedSockets::take`].
    pub fn take_admin(&mut self) -> Result<Option<TcpListener>, String> {
        let found = position(&self.names, ADMIN);
        self.take_at(found)
    }

    fn take_at(&mut self, number: Option<usize>) -> Result<Option<TcpListener>, String> {
        let Some(number) = number else {
            return Ok(None);
        };
        self.names[number] = None;
        let socket = self.sockets.take_tcp_listener(number);
        socket.map_err(|e| format!("socket {number} of the service manager cannot be used: {e}"))
    }
}

/// The names of `count` sockets from a list separated by colons; empty if the list is too short.
fn name_sockets(count: usize, list: &str) -> Vec<Option<String>> {
    let mut names = list.split(':');
    let name = |_| Some(names.next().unwrap_or_default().to_owned());
    (0..count).map(name).collect()
}

fn position(names: &[Option<String>], name: &str) -> Option<usize> {
    names
        .iter()
        .position(|known| known.as_deref() == Some(name))
}

/// The first socket that was not taken and is not named for a listener: by default systemd names sockets after their unit.
fn next_unnamed(names: &[Option<String>]) -> Option<usize> {
    let is_unnamed = |name: &Option<String>| {
        let name = name.as_deref();
        name.is_some_and(|name| name != METRICS && name != ADMIN)
    };
    names.iter().position(is_unnamed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_are_found_by_name_and_else_by_their_order() {
        for (count, list, main, metrics, admin) in [
            (0, "", None, None, None),
            (1, "", Some(0), None, None),
            (2, "tollgate.socket:tollgate.socket", Some(0), Some(1), None),
            (
                3,
                "admin:tollgate.socket:metrics",
                Some(1),
                Some(2),
                Some(0),
            ),
            (
                3,
                "metrics:admin:tollgate.socket",
                Some(2),
                Some(0),
                Some(1),
            ),
            (1, "admin", None, None, Some(0)),
            (2, "admin", Some(1), None, Some(0)),
        ] {
            let mut names = name_sockets(count, list);
            let mut take = |found: Option<usize>| {
                if let Some(at) = found {
                    names[at] = None;
                }
                (found, names.clone())
            };
            let (found, left) = take(next_unnamed(&name_sockets(count, list)));
            assert_eq!(found, main, "{list}");
            let (found, left) = take(position(&left, METRICS).or_else(|| next_unnamed(&left)));
            assert_eq!(found, metrics, "{list}");
            assert_eq!(position(&left, ADMIN), admin, "{list}");
        }
    }
}
