//! Tests how media work is controlled, with one provider: directives, steps, links, polls.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tollgate_fakes::{Options, Provider, Scenario, Stage};

use crate::client::{Client, headers_of, send};

const TASKS: &str = "/api/v3/contents/generations/tasks";
const IMAGES: &str = "/api/v3/images/generations";

async fn start(options: Options) -> Client {
    Client::start(Provider::Ark, options).await
}

fn video(text: &str) -> Value {
    json!({"model": "doubao-seedance-1-0-pro-250528",
        "content": [{"type": "text", "text": text}]})
}

/// Starts a task; returns its path.
async fn submit(client: &Client, text: &str) -> String {
    let receipt = client.post(TASKS, &video(text)).await.json();
    format!("{TASKS}/{}", receipt["id"].as_str().expect("an id"))
}

/// The link of a video whose task is complete at its first poll.
async fn link(client: &Client, text: &str) -> Value {
    let path = submit(client, text).await;
    let state = client.get(&path).await.json();
    assert_eq!(state["status"], "succeeded", "{state}");
    state["content"]["video_url"].clone()
}

#[tokio::test]
async fn each_stage_applies_its_own_scenarios() {
    let client = start(Options::default()).await;
    let path = submit(
        &client,
        "a [[fake:status=503@poll*2]] b [[fake:status=410@cancel]]",
    )
    .await;
    for status in [503, 503, 200, 200] {
        assert_eq!(client.get(&path).await.status, status);
    }
    assert_eq!(client.send("DELETE", &path).await.status, 410);
    let twice = video("[[fake:overloaded*1]]");
    assert_eq!(client.post(TASKS, &twice).await.status, 429);
    assert_eq!(
        client.post(TASKS, &twice).await.status,
        200,
        "the second time goes well"
    );
    client
        .fake
        .queue_at(Stage::Poll, Scenario::Status(500, None));
    let path = submit(&client, "submission is another matter").await;
    assert_eq!(client.get(&path).await.status, 500);
    assert_eq!(client.get(&path).await.status, 200);
    client.fake.set_at(Stage::File, Scenario::Html200);
    let link = link(&client, "a video").await;
    assert!(client.fetch(&link).await.text().contains("<html>"));
    let reply = client.post(TASKS, &video("[[fake:nonsense@poll]]")).await;
    assert_eq!(
        (reply.status, reply.header("x-fake-rule")),
        (400, "scenario")
    );
}

#[tokio::test]
async fn a_request_can_hang_at_each_stage() {
    let client = start(Options::default()).await;
    let soon = Duration::from_millis(500);
    let body = video("[[fake:hang]]");
    let never = client.try_post(TASKS, &body);
    assert!(tokio::time::timeout(soon, never).await.is_err());
    assert!(client.fake.polls().is_empty(), "nothing was started");
    let path = submit(&client, "[[fake:hang@poll*1]]").await;
    assert!(tokio::time::timeout(soon, client.get(&path)).await.is_err());
    assert_eq!(client.get(&path).await.status, 200);
    let link = link(&client, "[[fake:hang@file]]").await;
    assert!(
        tokio::time::timeout(soon, client.fetch(&link))
            .await
            .is_err()
    );
}

#[tokio::test]
async fn scenarios_of_the_file_stage_change_the_fetched_file() {
    let client = start(Options::default()).await;
    let complete = client.fetch(&link(&client, "a video").await).await.bytes();
    let cut = client
        .fetch(&link(&client, "[[fake:no-end@file]]").await)
        .await;
    assert_eq!((cut.status, cut.bytes().len()), (200, complete.len() / 2));
    let broken = client
        .fetch(&link(&client, "[[fake:reset-mid-body@file]]").await)
        .await;
    assert!(broken.error.is_some() && broken.bytes().len() < complete.len());
    assert_eq!(broken.header("content-length"), complete.len().to_string());
    let gone = client
        .fetch(&link(&client, "[[fake:status=404@file]]").await)
        .await;
    assert_eq!(gone.status, 404);
    let other = client
        .fetch(&link(&client, "[[fake:wrong-content-type@file]]").await)
        .await;
    assert_eq!(other.header("content-type"), "text/plain");
    let large = client
        .fetch(&link(&client, "[[fake:result-bytes=5000000]]").await)
        .await;
    assert_eq!(large.bytes().len(), 5_000_000);
    assert_eq!(large.header("content-length"), "5000000");
    let guess = format!("http://{}/_files/guess.mp4", client.fake.address());
    assert_eq!(client.fetch(&json!(guess)).await.status, 404);
}

#[tokio::test]
async fn options_set_the_duration_and_result_size_of_work() {
    let client = start(Options {
        work: Duration::from_millis(300),
        result_bytes: Some(100_000),
        public_url: Some("http://other:1".to_owned()),
        remember: 2,
        ..Options::default()
    })
    .await;
    let started = Instant::now();
    let path = submit(&client, "a video").await;
    assert_eq!(client.get(&path).await.json()["status"], "queued");
    let mut state = Value::Null;
    while state["status"] != "succeeded" {
        assert!(started.elapsed() < Duration::from_secs(20), "{state}");
        tokio::time::sleep(Duration::from_millis(40)).await;
        state = client.get(&path).await.json();
    }
    assert!(started.elapsed() >= Duration::from_millis(300));
    let link = state["content"]["video_url"].as_str().expect("a link");
    let here = format!("http://{}", client.fake.address());
    let here = json!(link.replace("http://other:1", &here));
    assert_eq!(client.fetch(&here).await.bytes().len(), 100_000);
    assert_eq!(client.fake.requests().len(), 2);
    let started = Instant::now();
    let body = json!({"model": "doubao-seedream-4-5-251128", "prompt": "[[fake:work-ms=500]]"});
    assert_eq!(client.post(IMAGES, &body).await.status, 200);
    assert!(
        started.elapsed() >= Duration::from_millis(500),
        "a response with the result is sent after the work"
    );
}

#[tokio::test]
async fn an_expired_link_is_rejected() {
    let client = start(Options {
        link_ttl: Some(Duration::ZERO),
        ..Options::default()
    })
    .await;
    let link = link(&client, "a video").await;
    assert_eq!(client.fetch(&link).await.status, 403);
}

#[tokio::test]
async fn the_poll_report_counts_polls_and_measures_gaps() {
    let client = start(Options {
        polls: 3,
        ..Options::default()
    })
    .await;
    let path = submit(&client, "a video").await;
    submit(&client, "another").await;
    for _ in 0..3 {
        client.get(&path).await;
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    let report = client.fake.poll_report();
    assert_eq!((report.tasks, report.ended, report.polls), (2, 1, 3));
    assert!(report.gaps.min >= Duration::from_millis(30) && report.gaps.min <= report.gaps.max);
    assert!(report.late.max >= Duration::from_millis(60));
    assert!(
        report
            .to_string()
            .starts_with("2 tasks, 1 seen to their end, 3 polls; ")
    );
    let url = json!(format!("http://{}/_polls", client.fake.address()));
    let report = client.fetch(&url).await.json();
    assert_eq!(report["polls"], 3);
    assert!(
        report["gaps_ms"]["median"]
            .as_f64()
            .is_some_and(|ms| ms >= 30.0)
    );
}

#[tokio::test]
async fn results_are_served_at_a_separate_address_without_keys() {
    let options = Options {
        files_address: Some(([127, 0, 0, 1], 0).into()),
        ..Options::default()
    };
    let client = start(options).await;
    let link = link(&client, "a video").await;
    let link = link.as_str().expect("a link");
    let here = format!("http://{}", client.fake.address());
    assert!(!link.starts_with(&here));
    let rest = link.strip_prefix("http://").expect("a link of the web");
    let (address, path) = rest.split_once('/').expect("a path");
    let address = address.parse().expect("an address");
    let path = format!("/{path}");
    let file = send(address, "GET", &path, &Vec::new(), Vec::new())
        .await
        .expect("a response");
    assert_eq!(
        (file.status, file.header("content-type")),
        (200, "video/mp4")
    );
    let leaked = send(
        address,
        "GET",
        &path,
        &headers_of(Provider::Ark),
        Vec::new(),
    )
    .await;
    let leaked = leaked.expect("a response");
    assert_eq!(
        (leaked.status, leaked.header("x-fake-rule")),
        (400, "key-leaked")
    );
    let other = send(address, "POST", IMAGES, &Vec::new(), Vec::new()).await;
    assert_eq!(other.expect("a response").status, 404);
}
