//! The bare hyper reverse proxy that the gateway is compared with: it keeps connections on both sides and forwards bodies as they arrive, nothing
//! else.

use std::sync::Arc;

use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Uri, header};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpListener;

use crate::outcome::Outcome;

type Upstream = Client<HttpConnector, Incoming>;
type Body = http_body_util::combinators::UnsyncBoxBody<bytes::Bytes, hyper::Error>;

/// Forwards every request to `upstream` (host and port); listens on a free loopback port, which it prints, until it is killed.
pub(crate) fn serve(upstream: &str) -> Outcome {
    let runtime = tokio::runtime::Runtime::new().map_err(|e| e.to_string())?;
    runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .map_err(|e| e.to_string())?;
        println!("{}", listener.local_addr().map_err(|e| e.to_string())?);
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client: Upstream = Client::builder(TokioExecutor::new()).build(connector);
        let upstream: Arc<str> = upstream.into();
        loop {
            let (stream, _) = listener.accept().await.map_err(|e| e.to_string())?;
            let _ = stream.set_nodelay(true);
            let (client, upstream) = (client.clone(), Arc::clone(&upstream));
            tokio::spawn(async move {
                let service = service_fn(move |request| {
                    forward(client.clone(), Arc::clone(&upstream), request)
                });
                let http = hyper::server::conn::http1::Builder::new();
                let _ = http.serve_connection(TokioIo::new(stream), service).await;
            });
        }
    })
}

async fn forward(
    client: Upstream,
    upstream: Arc<str>,
    mut request: Request<Incoming>,
) -> Result<Response<Body>, hyper::Error> {
    let path = request.uri().path_and_query().map_or("/", |p| p.as_str());
    let uri = Uri::builder()
        .scheme("http")
        .authority(&*upstream)
        .path_and_query(path)
        .build();
    *request.uri_mut() = uri.unwrap_or_default();
    request.headers_mut().remove(header::HOST);
    match client.request(request).await {
        Ok(response) => Ok(response.map(http_body_util::BodyExt::boxed_unsync)),
        Err(_) => {
            let empty = http_body_util::Empty::new().map_err(|never| match never {});
            let mut response = Response::new(empty.boxed_unsync());
            *response.status_mut() = StatusCode::BAD_GATEWAY;
            Ok(response)
        }
    }
}
