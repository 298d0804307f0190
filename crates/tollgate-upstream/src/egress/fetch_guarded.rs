//! Fetches client-given URLs through the SSRF guard: every address, of every redirect too, is checked before connecting.

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

use super::error::EgressError;
use super::options::{ClientOptions, USER_AGENT as OUR_USER_AGENT};
use super::resolve::Resolve;
use super::ssrf_guard::SsrfGuard;

/// Maximum length of a URL in bytes.
const MAX_URL_BYTES: usize = 8192;
/// The timeout for the next bytes from a host.
const MAX_SILENCE: Duration = Duration::from_secs(20);
/// Maximum size of a response head in bytes.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Limits of one fetch.
#[derive(Debug, Clone, Copy)]
pub struct FetchLimits {
    /// Maximum size of the body in bytes.
    pub max_bytes: u64,
    /// Timeout from the first DNS lookup to the last byte, redirects included.
    pub total_time: Duration,
    /// Maximum number of redirects that are followed.
    pub max_redirects: u32,
}

impl FetchLimits {
    /// At most `max_bytes`, 60 seconds and three redirects.
    pub fn with_max_bytes(max_bytes: u64) -> Self {
        Self {
            max_bytes,
            total_time: Duration::from_secs(60),
            max_redirects: 3,
        }
    }
}

/// A finished fetch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetched {
    /// The URL that returned the body, after all redirects.
    pub final_url: String,
    /// The `content-type` header, which may contradict the bytes.
    pub content_type: Option<String>,
    /// The number of bytes that were written to the sink.
    pub bytes: u64,
}

/// The client for guarded requests.
pub(super) struct GuardedClient {
    tls: TlsConnector,
    guard: SsrfGuard,
    connect_timeout: Duration,
    resolver: Arc<dyn Resolve>,
}

impl GuardedClient {
    pub(super) fn new(mut tls: ClientConfig, options: ClientOptions) -> Self {
        tls.alpn_protocols = vec![b"http/1.1".to_vec()];
        Self {
            tls: TlsConnector::from(Arc::new(tls)),
            guard: SsrfGuard::new(options.allow_private),
            connect_timeout: options.connect_timeout,
            resolver: options.resolver,
        }
    }

    pub(super) async fn fetch<W: AsyncWrite + Unpin + Send>(
        &self,
        url: &str,
        limits: &FetchLimits,
        sink: &mut W,
    ) -> Result<Fetched, EgressError> {
        let mut url = parse_url(url)?;
        for _ in 0..=limits.max_redirects {
            let exchange = self.exchange(&url, get_request(&url)?);
            let result = timeout(self.connect_timeout + MAX_SILENCE, exchange).await;
            let (response, _connection) = result.map_err(|_| silence_error())??;
            if response.status().is_redirection() {
                url = redirect_target(&url, response.headers())?;
                continue;
            }
            check_response_head(response.status(), response.headers(), limits.max_bytes)?;
            let content_type = response.headers().get(CONTENT_TYPE);
            let content_type = content_type.and_then(|value| value.to_str().ok());
            let content_type = content_type.map(str::to_owned);
            let bytes = write_body(response.into_body(), limits.max_bytes, sink).await?;
            return Ok(Fetched {
                final_url: url.into(),
                content_type,
                bytes,
            });
        }
        Err(EgressError::TooManyRedirects(limits.max_redirects))
    }

    /// Sends `request` to the host of `url`. The connection stays open as long as the handle returned with the response.
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
            .max_buf_size(MAX_HEAD_BYTES)
            .handshake(TokioIo::new(stream))
            .await
            .map_err(|_| EgressError::Broken)?;
        let connection = AbortOnDropHandle::new(tokio::spawn(async move {
            // Errors of the connection are also returned by the request or the body.
            let _ = connection.await;
        }));
        let response = sender
            .send_request(request)
            .await
            .map_err(|_| EgressError::Broken)?;
        Ok((response, connection))
    }

    /// The addresses of `url`'s host, checked by the SSRF guard. If one of them is not permitted, the URL is rejected, because a name with public and
    /// private addresses is an attack.
    pub(super) async fn addresses(&self, url: &Url) -> Result<Vec<IpAddr>, EgressError> {
        let addresses = match url.host() {
            Some(Host::Ipv4(address)) => vec![address.into()],
            Some(Host::Ipv6(address)) => vec![address.into()],
            Some(Host::Domain(name)) => self
                .resolver
                .resolve(name)
                .await
                .map_err(|_| EgressError::Unresolved)?,
            None => return Err(EgressError::InvalidUrl("has no host")),
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

    /// Opens TLS over `stream` if the URL is https; the certificate must be valid for its host.
    async fn secure(&self, url: &Url, stream: TcpStream) -> Result<Box<dyn Stream>, EgressError> {
        if url.scheme() != "https" {
            return Ok(Box::new(stream));
        }
        let name = match url.host() {
            Some(Host::Domain(name)) => ServerName::try_from(name.trim_end_matches('.').to_owned())
                .map_err(|_| EgressError::InvalidUrl("has a host name that TLS cannot verify"))?,
            Some(Host::Ipv4(address)) => ServerName::from(IpAddr::from(address)),
            Some(Host::Ipv6(address)) => ServerName::from(IpAddr::from(address)),
            None => return Err(EgressError::InvalidUrl("has no host")),
        };
        let secured = self.tls.connect(name, stream).await;
        Ok(Box::new(secured.map_err(|_| EgressError::Connect)?))
    }
}

/// A connection, with TLS or without.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// Connects to the first of `addresses` that accepts the connection.
async fn connect(addresses: &[IpAddr], port: u16) -> Result<TcpStream, EgressError> {
    for address in addresses {
        if let Ok(stream) = TcpStream::connect(SocketAddr::new(*address, port)).await {
            return Ok(stream);
        }
    }
    Err(EgressError::Connect)
}

pub(super) fn parse_url(text: &str) -> Result<Url, EgressError> {
    if text.len() > MAX_URL_BYTES {
        return Err(EgressError::InvalidUrl("is longer than 8192 bytes"));
    }
    let url = Url::parse(text).map_err(|_| EgressError::InvalidUrl("is not a valid URL"))?;
    check_url(&url)?;
    Ok(url)
}

/// Checks scheme and credentials of a URL; its host is checked when it is resolved.
fn check_url(url: &Url) -> Result<(), EgressError> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(EgressError::InvalidUrl(
            "does not begin with http:// or https://",
        ));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(EgressError::InvalidUrl(
            "must not hold a user name or password",
        ));
    }
    Ok(())
}

/// The URL that a redirect from `from` leads to, if it is allowed.
fn redirect_target(from: &Url, headers: &HeaderMap) -> Result<Url, EgressError> {
    let to = headers
        .get(LOCATION)
        .and_then(|value| value.to_str().ok())
        .filter(|value| value.len() <= MAX_URL_BYTES)
        .and_then(|value| from.join(value).ok())
        .ok_or(EgressError::InvalidRedirect("nowhere"))?;
    check_url(&to).map_err(|_| EgressError::InvalidRedirect("a URL that is not allowed"))?;
    if from.scheme() == "https" && to.scheme() == "http" {
        return Err(EgressError::InvalidRedirect("http from https"));
    }
    Ok(to)
}

/// The GET request for `url`, with only the headers that a server needs and nothing about the gateway or its client.
fn get_request(url: &Url) -> Result<Request<Empty<Bytes>>, EgressError> {
    let path = &url[url::Position::BeforePath..url::Position::AfterQuery];
    let host = &url[url::Position::BeforeHost..url::Position::AfterPort];
    Request::get(path)
        .header(HOST, host)
        .header(USER_AGENT, OUR_USER_AGENT)
        .header(ACCEPT, "*/*")
        .header(ACCEPT_ENCODING, "identity")
        .header(CONNECTION, "close")
        .body(Empty::new())
        .map_err(|_| EgressError::InvalidUrl("is not a valid URL"))
}

/// Checks status, `content-encoding` and `content-length` of a response.
pub(super) fn check_response_head(
    status: StatusCode,
    headers: &HeaderMap,
    max: u64,
) -> Result<(), EgressError> {
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

fn silence_error() -> EgressError {
    EgressError::TimedOut(MAX_SILENCE)
}

/// Writes the body to `sink` as it arrives. Returns its size in bytes.
async fn write_body<W: AsyncWrite + Unpin>(
    mut body: Incoming,
    max: u64,
    sink: &mut W,
) -> Result<u64, EgressError> {
    let mut bytes = 0;
    loop {
        let frame = timeout(MAX_SILENCE, body.frame()).await;
        let Some(frame) = frame.map_err(|_| silence_error())? else {
            break;
        };
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
