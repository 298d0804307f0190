//! An S3 server in memory with configurable faults. It checks that each request is signed with its key, and the MD5 of each upload.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use futures_util::stream;
use md5::{Digest as _, Md5};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::Setup;

const KEY: &str = "AKFAKE";
const SECRET: &str = "fake-secret";
const BUCKET: &str = "files";

/// A fault that is applied to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// 503 with an error document.
    Unavailable,
    /// 403 with an error document.
    Forbidden,
    /// The response is delayed by this time.
    Slow(Duration),
    /// The connection is closed in the middle of the request.
    CutRequest,
    /// The connection is closed in the middle of the response.
    CutResponse,
    /// The bytes arrive damaged, which the server notices by their MD5.
    Damaged,
    /// The server stores other bytes than it received.
    MismatchedTag,
}

/// The requests to which a fault is applied.
struct FaultRule {
    fault: Fault,
    method: Method,
    /// Part of the path or query.
    url_part: &'static str,
    /// How many more requests it is applied to.
    left: u32,
}

#[derive(Default)]
struct Shared {
    objects: BTreeMap<String, (Bytes, String)>,
    /// Keys and parts of multipart uploads, by their ids.
    uploads: BTreeMap<String, (String, BTreeMap<u16, Bytes>)>,
    uploads_created: usize,
    /// The methods, paths and queries of all requests.
    requests: Vec<(Method, String)>,
    fault: Option<FaultRule>,
}

/// Listens until it is dropped.
pub(crate) struct FakeS3 {
    address: SocketAddr,
    shared: Arc<Mutex<Shared>>,
    server: JoinHandle<()>,
}

impl FakeS3 {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::<Mutex<Shared>>::default();
        let routes = Router::new().fallback(respond).with_state(shared.clone());
        let server = tokio::spawn(async move {
            let _ = axum::serve(listener, routes).await;
        });
        Self {
            address,
            shared,
            server,
        }
    }

    /// A gateway that stores its files in this bucket under `data/`.
    pub(crate) fn setup(&self, setup: Setup) -> Setup {
        let url = format!(
            "s3://{BUCKET}/data?endpoint=http://{}&region=test",
            self.address
        );
        setup
            .env("TOLLGATE_STORAGE__URL", url)
            .env("AWS_ACCESS_KEY_ID", KEY)
            .env("AWS_SECRET_ACCESS_KEY", SECRET)
    }

    /// Applies `fault` to the next `times` requests of `method`.
    pub(crate) fn fail(&self, fault: Fault, method: Method, times: u32) {
        self.fail_at(fault, method, "", times);
    }

    /// The same, only for requests with `url_part` in the path or query.
    pub(crate) fn fail_at(&self, fault: Fault, method: Method, url_part: &'static str, times: u32) {
        self.shared.lock().unwrap().fault = Some(FaultRule {
            fault,
            method,
            url_part,
            left: times,
        });
    }

    /// Removes all faults.
    pub(crate) fn clear_faults(&self) {
        self.shared.lock().unwrap().fault = None;
    }

    /// The keys of the objects.
    pub(crate) fn keys(&self) -> Vec<String> {
        self.shared
            .lock()
            .unwrap()
            .objects
            .keys()
            .cloned()
            .collect()
    }

    /// Deletes every object.
    pub(crate) fn clear(&self) {
        self.shared.lock().unwrap().objects.clear();
    }

    /// How many multipart uploads began, and how many of them are neither complete nor aborted.
    pub(crate) fn uploads(&self) -> (usize, usize) {
        let shared = self.shared.lock().unwrap();
        (shared.uploads_created, shared.uploads.len())
    }

    /// How many requests of `method` had `url_part` in their path or query.
    pub(crate) fn count(&self, method: &Method, url_part: &str) -> usize {
        let shared = self.shared.lock().unwrap();
        let requests = shared.requests.iter();
        let found = requests.filter(|(m, target)| m == method && target.contains(url_part));
        found.count()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for FakeS3 {
    fn drop(&mut self) {
        self.server.abort();
    }
}

fn error(status: StatusCode, code: &str) -> Response {
    let text = format!("<Error><Code>{code}</Code><Message>as configured</Message></Error>");
    (status, text).into_response()
}

async fn respond(
    State(shared): State<Arc<Mutex<Shared>>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let query: BTreeMap<String, String> =
        url::form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes())
            .into_owned()
            .collect();
    let fault = {
        let mut shared = shared.lock().unwrap();
        shared.requests.push((method.clone(), uri.to_string()));
        match &mut shared.fault {
            Some(rule)
                if rule.method == method
                    && rule.left > 0
                    && uri.to_string().contains(rule.url_part) =>
            {
                rule.left -= 1;
                Some(rule.fault)
            }
            _ => None,
        }
    };
    match fault {
        Some(Fault::Unavailable) => return error(StatusCode::SERVICE_UNAVAILABLE, "SlowDown"),
        Some(Fault::Forbidden) => return error(StatusCode::FORBIDDEN, "AccessDenied"),
        Some(Fault::Slow(time)) => tokio::time::sleep(time).await,
        // Closes the connection without a response, while its client may still be sending.
        Some(Fault::CutRequest) => std::panic::resume_unwind(Box::new(())),
        _ => {}
    }
    let signed_with = query.get("X-Amz-Credential");
    let is_signed = signed_with.is_some_and(|c| c.starts_with(&format!("{KEY}/")))
        && query.get("X-Amz-Signature").is_some_and(|s| s.len() == 64);
    if !is_signed {
        return error(StatusCode::FORBIDDEN, "AccessDenied");
    }
    let Ok(mut body) = to_bytes(body, usize::MAX).await else {
        return error(StatusCode::BAD_REQUEST, "IncompleteBody");
    };
    if fault == Some(Fault::Damaged) {
        body = [b"damaged", &body[..]].concat().into();
    }
    let md5 = headers.get("content-md5").map(|v| v.to_str().unwrap());
    if md5.is_some_and(|md5| md5 != STANDARD.encode(Md5::digest(&body))) {
        return error(StatusCode::BAD_REQUEST, "BadDigest");
    }
    let Some(key) = uri.path().strip_prefix(&format!("/{BUCKET}")) else {
        return error(StatusCode::NOT_FOUND, "NoSuchBucket");
    };
    let media_type = headers.get("content-type").map(|v| v.to_str().unwrap());
    let request = ObjectRequest {
        method,
        key: key.trim_start_matches('/').to_owned(),
        query,
        range: headers.get("range").map(|v| v.to_str().unwrap().to_owned()),
        media_type: media_type.unwrap_or_default().to_owned(),
        body,
    };
    let response = request.respond(&mut shared.lock().unwrap());
    match fault {
        Some(Fault::CutResponse) => cut(response).await,
        Some(Fault::MismatchedTag) => {
            let (mut parts, body) = response.into_parts();
            parts
                .headers
                .insert("etag", tag(b"other bytes").parse().unwrap());
            Response::from_parts(parts, body)
        }
        _ => response,
    }
}

/// Sends half of the response, then closes the connection.
async fn cut(response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    parts.headers.insert("content-length", body.len().into());
    let half = body.slice(..body.len() / 2);
    let chunks = [Ok(half), Err(std::io::Error::other("cut"))];
    Response::from_parts(parts, Body::from_stream(stream::iter(chunks)))
}

fn tag(bytes: &[u8]) -> String {
    let digest: [u8; 16] = Md5::digest(bytes).into();
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("\"{digits}\"")
}

struct ObjectRequest {
    method: Method,
    key: String,
    query: BTreeMap<String, String>,
    range: Option<String>,
    media_type: String,
    body: Bytes,
}

impl ObjectRequest {
    fn respond(self, shared: &mut Shared) -> Response {
        let parameter = |name: &str| self.query.get(name).map(String::as_str);
        match self.method {
            Method::PUT => self.put(shared),
            Method::POST if parameter("uploads").is_some() => {
                shared.uploads_created += 1;
                let id = format!("upload-{}", shared.uploads_created);
                let upload = (self.key, BTreeMap::new());
                shared.uploads.insert(id.clone(), upload);
                let root = "InitiateMultipartUploadResult";
                format!("<{root}><UploadId>{id}</UploadId></{root}>").into_response()
            }
            Method::POST if parameter("delete").is_some() => {
                let text = String::from_utf8(self.body.to_vec()).unwrap();
                for key in text.split("<Key>").skip(1) {
                    let (key, _) = key.split_once("</Key>").unwrap();
                    shared.objects.remove(key).expect("it is there");
                }
                "<DeleteResult></DeleteResult>".into_response()
            }
            Method::POST => {
                let upload = shared.uploads.remove(parameter("uploadId").unwrap());
                let Some((key, parts)) = upload else {
                    return error(StatusCode::NOT_FOUND, "NoSuchUpload");
                };
                let all: Vec<u8> = parts.into_values().flatten().collect();
                shared.objects.insert(key, (all.into(), String::new()));
                "<CompleteMultipartUploadResult></CompleteMultipartUploadResult>".into_response()
            }
            Method::DELETE => {
                match parameter("uploadId") {
                    Some(id) => drop(shared.uploads.remove(id)),
                    None => drop(shared.objects.remove(&self.key)),
                }
                StatusCode::NO_CONTENT.into_response()
            }
            _ if parameter("uploads").is_some() => "<R></R>".into_response(),
            _ if self.key.is_empty() => {
                let prefix = parameter("prefix").unwrap();
                let after = parameter("start-after").unwrap_or_default();
                let keys = shared.objects.keys();
                let keys = keys.filter(|key| key.starts_with(prefix) && key.as_str() > after);
                let contents = keys.map(|key| {
                    format!(
                        "<Contents><Key>{key}</Key><ETag>e</ETag><LastModified>t</LastModified><Size>1</Size></Contents>"
                    )
                });
                let contents: String = contents.take(1_000).collect();
                format!("<ListBucketResult>{contents}</ListBucketResult>").into_response()
            }
            _ => self.get(shared),
        }
    }

    fn put(self, shared: &mut Shared) -> Response {
        let etag = tag(&self.body);
        match self.query.get("uploadId") {
            Some(id) => {
                let Some((_, parts)) = shared.uploads.get_mut(id) else {
                    return error(StatusCode::NOT_FOUND, "NoSuchUpload");
                };
                let number = self.query["partNumber"].parse().unwrap();
                parts.insert(number, self.body);
            }
            None => {
                let object = (self.body, self.media_type);
                shared.objects.insert(self.key, object);
            }
        }
        ([("etag", etag)], "").into_response()
    }

    fn get(self, shared: &Shared) -> Response {
        let Some((bytes, media_type)) = shared.objects.get(&self.key) else {
            return error(StatusCode::NOT_FOUND, "NoSuchKey");
        };
        let head = [("content-type", media_type.clone())];
        let Some(range) = self.range else {
            return (head, bytes.clone()).into_response();
        };
        let (first, last) = range
            .strip_prefix("bytes=")
            .unwrap()
            .split_once('-')
            .unwrap();
        let (first, last): (usize, usize) = (first.parse().unwrap(), last.parse().unwrap());
        let range = format!("bytes {first}-{last}/{}", bytes.len());
        let head = [
            ("content-range", range),
            ("content-type", media_type.clone()),
        ];
        let part = bytes.slice(first..=last);
        (StatusCode::PARTIAL_CONTENT, head, part).into_response()
    }
}
