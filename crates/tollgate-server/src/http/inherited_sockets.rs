//! Listening sockets that the service manager passes on, which stay open while the gateway restarts
//! (<https://www.freedesktop.org/software/systemd/man/latest/sd_listen_fds.html>).

use std::env;
use std::net::TcpListener;

use listenfd::ListenFd;

/// Names that a unit can give a socket (`FileDescriptorName=`) to say which listener it is for.
const METRICS: &str = "metrics";
const ADMIN: &str = "admin";

/// The sockets of `LISTEN_FDS`.
pub struct InheritedSockets {
    sockets: ListenFd,
    /// The name of each; `None` if it was taken.
    names: Vec<Option<String>>,
}

impl InheritedSockets {
    /// Those that `LISTEN_FDS` counts, if `LISTEN_PID` is this process, under the names of `LISTEN_FDNAMES`.
    pub fn from_env() -> Self {
        let sockets = ListenFd::from_env();
        let names = env::var("LISTEN_FDNAMES").unwrap_or_default();
        Self {
            names: name_sockets(sockets.len(), &names),
            sockets,
        }
    }

    /// The socket in place of `listen`: the first one that is not named for another listener. `None` if there is none.
    ///
    /// # Errors
    /// A sentence for the operator: it is no TCP socket that listens.
    pub fn take(&mut self) -> Result<Option<TcpListener>, String> {
        let found = next_unnamed(&self.names);
        self.take_at(found)
    }

    /// The socket in place of `metrics.listen`: the one with that name, else the next that is not named for another listener.
    ///
    /// # Errors
    /// As [`InheritedSockets::take`].
    pub fn take_metrics(&mut self) -> Result<Option<TcpListener>, String> {
        let found = position(&self.names, METRICS).or_else(|| next_unnamed(&self.names));
        self.take_at(found)
    }

    /// The socket in place of `admin.listen`: the one with that name.
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

/// The names of `count` sockets from a list separated by colons; empty where the list is too short.
fn name_sockets(count: usize, list: &str) -> Vec<Option<String>> {
    let mut names = list.split(':');
    let name = |_| Some(names.next().unwrap_or_default().to_owned());
    (0..count).map(name).collect()
}

fn position(names: &[Option<String>], name: &str) -> Option<usize> {
    names.iter().position(|of| of.as_deref() == Some(name))
}

/// The first socket that was not taken and has none of our names: systemd names sockets after their unit.
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
