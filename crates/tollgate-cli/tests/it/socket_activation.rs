//! A listening socket that another process keeps open: no connection is refused while the gateway restarts.

use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use tokio::process::Command;

use crate::harness::*;

on_sqlite!(a_restart_under_load_refuses_no_connection);

/// Runs the gateway as a service manager does: the socket, which the shell gets as stdin, becomes file descriptor 3.
const ACTIVATE: &str = "exec 3<&0 </dev/null; LISTEN_FDS=1 LISTEN_PID=$$ exec \"$@\"";

/// The command that starts the gateway with the socket instead of an address.
fn activated(gateway: &TestGateway, socket: &TcpListener) -> Command {
    let mut command = gateway.serve_command_under("sh", &["-c", ACTIVATE, "sh"]);
    command.stdin(OwnedFd::from(socket.try_clone().unwrap()));
    command
}

async fn a_restart_under_load_refuses_no_connection(backend: Backend) {
    let socket = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap().to_string();
    let mut gateway = Setup::new(backend).listen("127.0.0.1:1").prepare().await;
    gateway.start_command(activated(&gateway, &socket)).await;
    assert_eq!(
        gateway.address(),
        address,
        "the socket stands for the configured address"
    );
    let (stopped, responses) = (AtomicBool::new(false), AtomicU32::new(0));
    let client = async || {
        while !stopped.load(Ordering::Relaxed) {
            let mut connection = RawConnection::connect(&address).await;
            connection
                .write(b"GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
                .await;
            assert_eq!(connection.status().await, Some(200));
            responses.fetch_add(1, Ordering::Relaxed);
        }
    };
    let more = async |count: u32| {
        let before = responses.load(Ordering::Relaxed);
        let enough = async || responses.load(Ordering::Relaxed) >= before + count;
        until_true("more responses", enough).await;
    };
    let restarts = async {
        for _ in 0..3 {
            more(50).await;
            gateway.terminate().await;
            gateway.start_command(activated(&gateway, &socket)).await;
        }
        more(50).await;
        stopped.store(true, Ordering::Relaxed);
    };
    tokio::join!(restarts, client(), client(), client(), client());
    gateway.close().await;
}
