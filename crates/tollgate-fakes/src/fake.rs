//! A running fake: its listeners and connections, and what tests can set and read.

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
/// The address cannot be listened on.
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
    let answers = Answers {
        service: Arc::clone(&service),
        prebuilt: prebuilt.map(Arc::new),
    };
    let mut listeners = vec![tokio::spawn(accept(listener, answers.clone(), Port::Api))];
    if let Some(files) = files {
        let accept = accept(files, answers, Port::Files);
        listeners.push(tokio::spawn(accept));
    }
    Ok(Fake {
        address,
        service,
        listeners,
    })
}

impl Fake {
    /// What a channel is given as its base URL.
    pub fn base_url(&self) -> String {
        format!("http://{}{}", self.address, self.service.spec.base_path)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Every request so far, rejected ones too, in the order in which they came: no more of them
    /// than [`Options::remember`] says.
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

    /// Forgets the requests so far.
    pub fn clear(&self) {
        self.service.shared.state().requests.clear();
    }

    /// Behaves so from now on. Requests that it rejects are rejected all the same. Polls, requests
    /// that cancel and requests for results are other matters: [`Fake::set_at`].
    pub fn set(&self, scenario: Scenario) {
        self.set_at(Stage::Submit, scenario);
    }

    /// Behaves so at this step from now on.
    pub fn set_at(&self, stage: Stage, scenario: Scenario) {
        self.service.shared.state().set.insert(stage, scenario);
    }

    /// Behaves so for exactly one request that it does not reject, before what [`Fake::set`] says.
    pub fn queue(&self, scenario: Scenario) {
        self.queue_at(Stage::Submit, scenario);
    }

    /// Behaves so for exactly one request of this step.
    pub fn queue_at(&self, stage: Stage, scenario: Scenario) {
        let mut state = self.service.shared.state();
        state.queue.entry(stage).or_default().push_back(scenario);
    }

    /// When each task was polled: its id and the times, the oldest task first. Polls that were
    /// answered with an error count too.
    pub fn polls(&self) -> Vec<(String, Vec<Instant>)> {
        self.service.shared.tasks().polls()
    }

    /// How the tasks were polled, in a few numbers.
    pub fn poll_report(&self) -> PollReport {
        self.service.shared.tasks().report()
    }

    /// How many exchanges are in flight: from the head of the request to the end of the answer, or
    /// to the connection's end.
    pub fn open_streams(&self) -> usize {
        self.service.shared.open.load(Ordering::SeqCst)
    }

    /// Closes the listeners and every connection.
    pub async fn stop(mut self) {
        for listener in &mut self.listeners {
            listener.abort();
            // Its end is an abort, which is what was wanted.
            listener.await.unwrap_or_default();
        }
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.listeners.iter().for_each(JoinHandle::abort);
    }
}

/// What answers the requests of every connection.
#[derive(Clone)]
struct Answers {
    service: Arc<Service>,
    /// Answers prepared for measuring, instead of all others.
    prebuilt: Option<Arc<Prebuilt>>,
}

async fn accept(listener: TcpListener, answers: Answers, port: Port) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                if let Ok((stream, _)) = accepted {
                    connections.spawn(serve(stream, answers.clone(), port));
                }
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

async fn serve(stream: TcpStream, answers: Answers, port: Port) {
    // Without it pieces of a stream arrive together; it may fail.
    stream.set_nodelay(true).unwrap_or_default();
    let reset = Reset::default();
    let socket = TokioIo::new(Socket::new(stream, reset.clone()));
    let mut http = http1::Builder::new();
    http.max_buf_size(1 << 20);
    let Answers { service, prebuilt } = answers;
    let served = if let Some(prebuilt) = prebuilt {
        let delay = service.shared.options.delay;
        let answer = |request| bench::answer(Arc::clone(&prebuilt), delay, request);
        http.serve_connection(socket, service_fn(answer)).await
    } else {
        let answer = |request| exchange::answer(Arc::clone(&service), port, reset.clone(), request);
        http.serve_connection(socket, service_fn(answer)).await
    };
    // A client that goes away, and a connection broken on purpose, end here too.
    served.unwrap_or_default();
}
