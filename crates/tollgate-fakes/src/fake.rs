//! A running fake: its listeners and connections, and the methods with which tests control and inspect it.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::bench::{self, Prebuilt};
use crate::directive::Stage;
use crate::exchange::{self, Port, Service};
use crate::options::Options;
use crate::provider::Provider;
use crate::request::ReceivedRequest;
use crate::scenario::Scenario;
use crate::shared::Shared;
use crate::socket::{Reset, Socket};
use crate::tasks::PollReport;

/// A running fake. It stops when it is dropped.
pub struct Fake {
    address: SocketAddr,
    service: Arc<Service>,
    listeners: Vec<JoinHandle<()>>,
}

/// Starts a fake.
///
/// # Errors
///
/// If the fake cannot listen on the address.
pub async fn start(provider: Provider, options: Options) -> io::Result<Fake> {
    let listener = TcpListener::bind(options.address).await?;
    let address = listener.local_addr()?;
    let here = || format!("http://{address}");
    let public_url = options.public_url.clone().unwrap_or_else(here);
    let mut files_url = public_url.clone();
    let mut files = None;
    if let Some(address) = options.files_address {
        let listener = TcpListener::bind(address).await?;
        files_url = format!("http://{}", listener.local_addr()?);
        files = Some(listener);
    }
    let prebuilt = options.bench.as_ref().map(Prebuilt::new);
    let service = Arc::new(Service {
        spec: provider.spec(),
        shared: Shared::new(options, public_url, files_url),
    });
    let handler = ConnectionHandler {
        service: Arc::clone(&service),
        prebuilt: prebuilt.map(Arc::new),
    };
    let mut listeners = vec![tokio::spawn(accept(listener, handler.clone(), Port::Api))];
    if let Some(files) = files {
        let accept = accept(files, handler, Port::Files);
        listeners.push(tokio::spawn(accept));
    }
    Ok(Fake {
        address,
        service,
        listeners,
    })
}

impl Fake {
    /// The base URL to configure for a channel.
    pub fn base_url(&self) -> String {
        format!("http://{}{}", self.address, self.service.spec.base_path)
    }

    /// The address that the fake listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The latest [`Options::remember`] requests, including rejected ones, in the order of arrival.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        let state = self.service.shared.state();
        let logged = state.requests.iter();
        let requests = logged.map(|logged| ReceivedRequest {
            rejected_by: logged.rejected_by.get().copied(),
            billed: logged.bill.get().and_then(|bill| bill.tokens()),
            ..ReceivedRequest::clone(&logged.request)
        });
        requests.collect()
    }

    /// Deletes the recorded requests.
    pub fn clear(&self) {
        self.service.shared.state().requests.clear();
    }

    /// Applies `scenario` to all following requests. Requests that the fake rejects are still rejected. Polls, cancellations and requests for results
    /// are not affected, see [`Fake::set_at`].
    pub fn set(&self, scenario: Scenario) {
        self.set_at(Stage::Submit, scenario);
    }

    /// Applies `scenario` to all following requests of this step.
    pub fn set_at(&self, stage: Stage, scenario: Scenario) {
        self.service.shared.state().set.insert(stage, scenario);
    }

    /// Applies `scenario` to the next request that the fake does not reject, instead of the scenario of [`Fake::set`]. Queued scenarios apply in
    /// order.
    pub fn queue(&self, scenario: Scenario) {
        self.queue_at(Stage::Submit, scenario);
    }

    /// Applies `scenario` to the next request of this step.
    pub fn queue_at(&self, stage: Stage, scenario: Scenario) {
        let mut state = self.service.shared.state();
        state.queue.entry(stage).or_default().push_back(scenario);
    }

    /// The times when each task was polled: its id and the times, the oldest task first. Polls whose response was an error count too.
    pub fn polls(&self) -> Vec<(String, Vec<Instant>)> {
        self.service.shared.tasks().polls()
    }

    /// A summary of how the tasks were polled.
    pub fn poll_report(&self) -> PollReport {
        self.service.shared.tasks().report()
    }

    /// The number of exchanges in flight: from the head of the request to the end of the response, or to the connection's end.
    pub fn open_streams(&self) -> usize {
        self.service.shared.open.load(Ordering::SeqCst)
    }

    /// Closes the listeners and every connection.
    pub async fn stop(mut self) {
        for listener in &mut self.listeners {
            listener.abort();
            // The task ends with an abort error, which is intended.
            listener.await.unwrap_or_default();
        }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.listeners.iter().for_each(JoinHandle::abort);
    }
}

/// Handles the requests of every connection.
#[derive(Clone)]
struct ConnectionHandler {
    service: Arc<Service>,
    /// Prepared responses for measuring, used instead of all others.
    prebuilt: Option<Arc<Prebuilt>>,
}

async fn accept(listener: TcpListener, handler: ConnectionHandler, port: Port) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(serve(stream, handler.clone(), port));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: TcpStream, handler: ConnectionHandler, port: Port) {
    // Without this, pieces of a stream arrive together. Failure is ignored.
    stream.set_nodelay(true).unwrap_or_default();
    let reset = Reset::default();
    let socket = TokioIo::new(Socket::new(stream, reset.clone()));
    let mut http = http1::Builder::new();
    http.max_buf_size(1 << 20);
    let ConnectionHandler { service, prebuilt } = handler;
    let served = if let Some(prebuilt) = prebuilt {
        let delay = service.shared.options.delay;
        let respond = |request| bench::respond(Arc::clone(&prebuilt), delay, request);
        http.serve_connection(socket, service_fn(respond)).await
    } else {
        let respond =
            |request| exchange::handle_request(Arc::clone(&service), port, reset.clone(), request);
        http.serve_connection(socket, service_fn(respond)).await
    };
    // Disconnected clients and connections that were broken on purpose end here too.
    served.unwrap_or_default();
}
