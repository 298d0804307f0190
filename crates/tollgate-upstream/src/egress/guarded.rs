//! Fetches client-given URLs, and never from an address that was not checked.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_ENCODING, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST,
    LOCATION, USER_AGENT,
};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_util::task::AbortOnDropHandle;
use url::{Host, Url};

use super::address::Guard;
use super::{Client, ClientOptions, EgressError, Resolve};

/// Longest URL that is looked at, in bytes.
const LONGEST_URL: usize = 8192;
/// Most bytes of an answer's head.
const LARGEST_HEAD: usize = 64 * 1024;

/// How much a fetch may take.
#[derive(Debug, Clone, Copy)]
pub struct FetchLimits {
    /// Most bytes of the body.
    pub max_bytes: u64,
    /// Longest time from the first look-up to the last byte, redirects included.
    pub total_time: Duration,
    /// Most redirects that are followed.
    pub max_redirects: u32,
}

impl FetchLimits {
    /// `max_bytes` in 60 seconds over at most three redirects.
    pub fn of_bytes(max_bytes: u64) -> Self {
        Self {
            max_bytes,
            total_time: Duration::from_secs(60),
            max_redirects: 3,
        }
    }
}

/// What came of a fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The URL that gave the body, after all redirects.
    pub final_url: String,
    /// What the server calls it; the bytes may disagree.
    pub content_type: Option<String>,
    /// How many bytes went into the sink.
    pub bytes: u64,
}

/// What guarded fetches share.
pub(super) struct Fetcher {
    tls: TlsConnector,
    guard: Guard,
    connect_timeout: Duration,
    resolver: Arc<dyn Resolve>,
}

impl Client {
    /// Fetches a client-given URL into `sink`, within `limits`.
    ///
    /// Only http and https, only public addresses and those allowed by configuration; every
    /// redirect is checked like the URL itself. On an error part of the body may be in the sink.
    pub async fn fetch_guarded<W: AsyncWrite + Unpin + Send>(
        &self,
        url: &str,
        limits: &FetchLimits,
        sink: &mut W,
    ) -> Result<Fetched, EgressError> {
        timeout(limits.total_time, self.guarded.fetch(url, limits, sink))
            .await
            .map_err(|_| EgressError::TimedOut(limits.total_time))?
    }
}

impl Fetcher {
    pub(super) fn new(mut tls: ClientConfig, options: ClientOptions) -> Self {
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self {
            tls: TlsConnector::from(Arc::new(tls)),
            guard: Guard::new(options.allow_private),
            connect_timeout: options.connect_timeout,
            resolver: options.resolver,
        }
    }

    async fn fetch<W: AsyncWrite + Unpin + Send>(
        &self,
        url: &str,
        limits: &FetchLimits,
        sink: &mut W,
    ) -> Result<Fetched, EgressError> {
        let mut url = parse(url)?;
        for _ in 0..=limits.max_redirects {
            let (response, _connection) = self.exchange(&url, request(&url)?).await?;
            if response.status().is_redirection() {
                url = redirect(&url, response.headers())?;
                continue;
            }
            judge(response.status(), response.headers(), limits.max_bytes)?;
            let content_type = response.headers().get(CONTENT_TYPE);
            let content_type = content_type.and_then(|value| value.to_str().ok());
            let content_type = content_type.map(str::to_owned);
            let bytes = store(response.into_body(), limits.max_bytes, sink).await?;
            return Ok(Fetched {
                final_url: url.into(),
                content_type,
                bytes,
            });
        }
        Err(EgressError::TooManyRedirects(limits.max_redirects))
    }

    /// Sends `request` to where `url` leads. The connection lives as long as the handle beside the answer.
    pub(super) async fn exchange<B>(
        &self,
        url: &Url,
        request: Request<B>,
    ) -> Result<(Response<Incoming>, AbortOnDropHandle<()>), EgressError>
    where
        B: Body<Data = Bytes, Error = Infallible> + Send + 'static,
    {
        let port = url.port_or_known_default().unwrap_or(80);
        let connecting = timeout(self.connect_timeout, async {
            let addresses = self.addresses(url).await?;
            let stream = connect(&addresses, port).await?;
            self.secure(url, stream).await
        });
        let stream = connecting.await.map_err(|_| EgressError::Connect)??;
        let (mut sender, connection) = http1::Builder::new()
            .max_buf_size(LARGEST_HEAD)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|_| EgressError::Broken)?;
        let connection = AbortOnDropHandle::new(tokio::spawn(async move {
            // Its errors come out of the request or the body as well.
            let _ = connection.await;
        }));
        let response = sender
            .send_request(request)
            .await
            .map_err(|_| EgressError::Broken)?;
        Ok((response, connection))
    }

    /// The addresses behind `url`, all of them checked. One that is not public refuses them all:
    /// a name that has both kinds is not an honest one.
    async fn addresses(&self, url: &Url) -> Result<Vec<IpAddr>, EgressError> {
        let addresses = match url.host() {
            Some(Host::Ipv4(address)) => vec![address.into()],
            Some(Host::Ipv6(address)) => vec![address.into()],
            Some(Host::Domain(name)) => self
                .resolver
                .resolve(name)
                .await
                .map_err(|_| EgressError::Unresolved)?,
            None => return Err(EgressError::BadUrl("has no host")),
        };
        if addresses.is_empty() {
            return Err(EgressError::Unresolved);
        }
        if !addresses.iter().all(|address| self.guard.permits(*address)) {
            tracing::debug!(?addresses, "a client-given URL leads to a private address");
            return Err(EgressError::NotPublic);
        }
        Ok(addresses)
    }

    /// Speaks TLS over `stream` where the URL says so, to the host by its name.
    async fn secure(&self, url: &Url, stream: TcpStream) -> Result<Box<dyn Stream>, EgressError> {
        if url.scheme() != "https" {
            return Ok(Box::new(stream));
        }
        let name = match url.host() {
            Some(Host::Domain(name)) => ServerName::try_from(name.trim_end_matches('.').to_owned())
                .map_err(|_| EgressError::BadUrl("has a host name that TLS cannot verify"))?,
            Some(Host::Ipv4(address)) => ServerName::from(IpAddr::from(address)),
            Some(Host::Ipv6(address)) => ServerName::from(IpAddr::from(address)),
            None => return Err(EgressError::BadUrl("has no host")),
        };
        let secured = self.tls.connect(name, stream).await;
        Ok(Box::new(secured.map_err(|_| EgressError::Connect)?))
    }
}

/// A connection, with TLS or without.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Connects to the first of `addresses` that answers.
async fn connect(addresses: &[IpAddr], port: u16) -> Result<TcpStream, EgressError> {
    for address in addresses {
        if let Ok(stream) = TcpStream::connect(SocketAddr::new(*address, port)).await {
            return Ok(stream);
        }
    }
    Err(EgressError::Connect)
}

pub(super) fn parse(text: &str) -> Result<Url, EgressError> {
    if text.len() > LONGEST_URL {
        return Err(EgressError::BadUrl("is longer than 8192 bytes"));
    }
    let url = Url::parse(text).map_err(|_| EgressError::BadUrl("is not a valid URL"))?;
    check(&url)?;
    Ok(url)
}

/// What can be seen of a URL without looking its host up.
fn check(url: &Url) -> Result<(), EgressError> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(EgressError::BadUrl(
            "does not begin with http:// or https://",
        ));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(EgressError::BadUrl("must not hold a user name or password"));
    }
    Ok(())
}

/// Where an answer to `from` sends us, as far as it may.
fn redirect(from: &Url, headers: &HeaderMap) -> Result<Url, EgressError> {
    let to = headers
        .get(LOCATION)
        .and_then(|value| value.to_str().ok())
        .filter(|value| value.len() <= LONGEST_URL)
        .and_then(|value| from.join(value).ok())
        .ok_or(EgressError::BadRedirect("nowhere"))?;
    check(&to).map_err(|_| EgressError::BadRedirect("a URL that is not allowed"))?;
    if from.scheme() == "https" && to.scheme() == "http" {
        return Err(EgressError::BadRedirect("http from https"));
    }
    Ok(to)
}

/// The request for `url`: what a server needs, and nothing about us or the client.
fn request(url: &Url) -> Result<Request<Empty<Bytes>>, EgressError> {
    let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
    Request::get(path)
        .header(HOST, host)
        .header(USER_AGENT, super::USER_AGENT)
        .header(ACCEPT, "*/*")
        .header(ACCEPT_ENCODING, "identity")
        .header(CONNECTION, "close")
        .body(Empty::new())
        .map_err(|_| EgressError::BadUrl("is not a valid URL"))
}

/// Judges an answer by its head.
pub(super) fn judge(status: StatusCode, headers: &HeaderMap, max: u64) -> Result<(), EgressError> {
    if !status.is_success() {
        return Err(EgressError::Status(status.as_u16()));
    }
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    if text(CONTENT_ENCODING).is_some_and(|coding| !coding.eq_ignore_ascii_case("identity")) {
        return Err(EgressError::Compressed);
    }
    let length = text(CONTENT_LENGTH).and_then(|length| length.parse::<u64>().ok());
    if length.is_some_and(|length| length > max) {
        return Err(EgressError::TooLarge { max });
    }
    Ok(())
}

/// Writes the body into `sink`, part by part; how many bytes it had.
async fn store<W: AsyncWrite + Unpin>(
    mut body: Incoming,
    max: u64,
    sink: &mut W,
) -> Result<u64, EgressError> {
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        let Ok(part) = frame.map_err(|_| EgressError::Broken)?.into_data() else {
            continue;
        };
        bytes += part.len() as u64;
        if bytes > max {
            return Err(EgressError::TooLarge { max });
        }
        sink.write_all(&part).await.map_err(EgressError::Sink)?;
    }
    sink.flush().await.map_err(EgressError::Sink)?;
    Ok(bytes)
}
