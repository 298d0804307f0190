//! Hostile clients. Each has its own account with a balance; its behaviour is allowed by the protocol, or nearly.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::victim::Victim;
use crate::http::{Client, HttpRequest};

type Attack = Pin<Box<dyn Future<Output = Vec<JoinHandle<()>>> + Send>>;

/// One way to use up resources that other clients need.
pub(super) struct HostileClient {
    pub(super) name: &'static str,
    /// Prepares the attack and starts it; it runs in the tasks that are returned.
    pub(super) attack: fn(Arc<Victim>) -> Attack,
}

/// All hostile clients; the first does nothing and serves as the baseline.
pub(super) const HOSTILE_CLIENTS: &[HostileClient] = &[
    hostile_client("nobody", |_| Box::pin(async { Vec::new() })),
    hostile_client("objects-20mb", |v| Box::pin(large_bodies(v, "{}"))),
    hostile_client("numbers-20mb", |v| Box::pin(large_bodies(v, "0"))),
    hostile_client("drip-feed", |v| Box::pin(drip_feed(v))),
    hostile_client("waiting-tasks", |v| Box::pin(fill_the_queue(v))),
    hostile_client("hanging-tasks", |v| Box::pin(hanging_tasks(v))),
    hostile_client("slow-references", |v| Box::pin(slow_references(v))),
    hostile_client("hanging-webhooks", |v| Box::pin(hanging_webhooks(v))),
    hostile_client("slow-readers", |v| Box::pin(slow_readers(v))),
    hostile_client("idle-connections", |v| Box::pin(idle_connections(v))),
    hostile_client("new-connections", |v| Box::pin(new_connections(v))),
    hostile_client("http2-settings", |v| Box::pin(settings_flood(v))),
];

const fn hostile_client(name: &'static str, attack: fn(Arc<Victim>) -> Attack) -> HostileClient {
    HostileClient { name, attack }
}

fn image_request(prompt: &str) -> Value {
    json!({ "model": "gpt-image-1-official", "prompt": prompt })
}

/// Three bodies of 20 MB at a time whose JSON tree would be far larger.
async fn large_bodies(victim: Arc<Victim>, item: &str) -> Vec<JoinHandle<()>> {
    let items = vec![item; 20 * 1024 * 1024 / (item.len() + 1)].join(",");
    let body: Arc<str> = format!("{{\"model\":\"gpt-5\",\"messages\":[{items}]}}").into();
    let send = |path: &'static str| {
        let (victim, body) = (Arc::clone(&victim), Arc::clone(&body));
        tokio::spawn(async move {
            let http = Client::new();
            while !victim.has_attack_ended() {
                let url = format!("http://{}{path}", victim.address);
                let request = HttpRequest::post(url, "application/json", body.to_string());
                let _ = http.send(&victim.key, request).await;
            }
        })
    };
    [
        "/v1/chat/completions",
        "/v1/messages",
        "/v1/images/generations",
    ]
    .map(send)
    .into()
}

/// 64 connections that announce 60 MB and send one byte a second.
async fn drip_feed(victim: Arc<Victim>) -> Vec<JoinHandle<()>> {
    let drip = async |victim: &Victim| {
        let mut connection = victim.connect().await?;
        let head = victim.request_head("/v1/chat/completions", "Content-Length: 60000000\r\n");
        connection.write_all(head.as_bytes()).await.ok()?;
        connection.write_all(&[b' '; 70_000]).await.ok()?;
        while !victim.has_attack_ended() {
            tokio::time::sleep(Duration::from_secs(1)).await;
            connection.write_all(b" ").await.ok()?;
        }
        Some(())
    };
    (0..64)
        .map(|_| {
            let victim = Arc::clone(&victim);
            tokio::spawn(async move { drip(&victim).await.unwrap_or_default() })
        })
        .collect()
}

/// Thousands of tasks that wait in the queue.
async fn fill_the_queue(victim: Arc<Victim>) -> Vec<JoinHandle<()>> {
    let slow = image_request("a mill [[sandbox:delay=2000]]");
    victim.submit_many(victim.tasks, &slow).await;
    Vec::new()
}

/// Tasks that occupy every worker until their time limit.
async fn hanging_tasks(victim: Arc<Victim>) -> Vec<JoinHandle<()>> {
    victim
        .submit_many(64, &image_request("a mill [[sandbox:hang]]"))
        .await;
    Vec::new()
}

/// 48 tasks whose reference images arrive at one byte a second.
async fn slow_references(victim: Arc<Victim>) -> Vec<JoinHandle<()>> {
    let Ok((port, server)) = trickle_server(Duration::from_secs(1)).await else {
        return Vec::new();
    };
    let url = format!("http://127.0.0.1:{port}/a.png");
    let body = json!({ "model": "Doubao-Seedream-4.5", "prompt": "a mill", "image_urls": [url] });
    victim.submit_many(48, &body).await;
    vec![server]
}

/// Tasks whose webhook receivers never respond.
async fn hanging_webhooks(victim: Arc<Victim>) -> Vec<JoinHandle<()>> {
    let Ok((port, server)) = trickle_server(Duration::from_secs(3600)).await else {
        return Vec::new();
    };
    let body = json!({
        "model": "gpt-image-1-official", "prompt": "a mill",
        "callback_url": format!("http://127.0.0.1:{port}/hook"),
    });
    let submissions = tokio::spawn(async move {
        while !victim.has_attack_ended() {
            victim.submit_many(64, &body).await;
        }
    });
    vec![server, submissions]
}

/// A server whose response is the head of an image, followed by a byte every `pause`. If `pause` is a minute or more, it sends nothing before the
/// first one.
async fn trickle_server(pause: Duration) -> std::io::Result<(u16, JoinHandle<()>)> {
    const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 100000\r\n\r\n\x89PNG\r\n\x1a\n";
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let port = listener.local_addr()?.port();
    let server = tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = [0; 4096];
                let _ = connection.read(&mut request).await;
                if pause < Duration::from_secs(60) {
                    let _ = connection.write_all(HEAD).await;
                }
                loop {
                    tokio::time::sleep(pause).await;
                    if connection.write_all(b"x").await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    Ok((port, server))
}

/// 64 streams of long responses that the client does not read.
async fn slow_readers(victim: Arc<Victim>) -> Vec<JoinHandle<()>> {
    let message = json!({ "role": "user", "content": "[[sandbox:words=200000]]" });
    let body = json!({ "model": "gpt-5", "stream": true, "messages": [message] }).to_string();
    let mut connections = Vec::new();
    for _ in 0..64 {
        let length = format!("Content-Length: {}\r\n", body.len());
        let head = victim.request_head("/v1/chat/completions", &length);
        let Some(mut connection) = victim.connect().await else {
            continue;
        };
        let _ = connection.write_all(head.as_bytes()).await;
        let _ = connection.write_all(body.as_bytes()).await;
        connections.push(connection);
    }
    vec![keep_open(connections)]
}

/// 2000 connections that send nothing.
async fn idle_connections(victim: Arc<Victim>) -> Vec<JoinHandle<()>> {
    let mut connections = Vec::new();
    for _ in 0..2000 {
        connections.extend(victim.connect().await);
    }
    vec![keep_open(connections)]
}

/// Keeps connections open until the task is aborted.
fn keep_open(connections: Vec<TcpStream>) -> JoinHandle<()> {
    tokio::spawn(async move {
        std::future::pending::<()>().await;
        drop(connections);
    })
}

/// Connections that are opened and closed at once, one after the other.
async fn new_connections(victim: Arc<Victim>) -> Vec<JoinHandle<()>> {
    let worker = || {
        let victim = Arc::clone(&victim);
        tokio::spawn(async move {
            while !victim.has_attack_ended() {
                if let Some(mut connection) = victim.connect().await {
                    let _ = connection.write_all(b"GET /healthz HT").await;
                }
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
    };
    vec![worker(), worker()]
}

/// HTTP/2 connections that send one SETTINGS frame after the other and read no acknowledgement.
async fn settings_flood(victim: Arc<Victim>) -> Vec<JoinHandle<()>> {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
    let flood = async |victim: &Victim| {
        let mut connection = victim.connect().await?;
        connection.write_all(PREFACE).await.ok()?;
        let frames = SETTINGS.repeat(1000);
        while !victim.has_attack_ended() {
            connection.write_all(&frames).await.ok()?;
        }
        Some(())
    };
    (0..8)
        .map(|_| {
            let victim = Arc::clone(&victim);
            tokio::spawn(async move {
                while !victim.has_attack_ended() {
                    flood(&victim).await;
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            })
        })
        .collect()
}
