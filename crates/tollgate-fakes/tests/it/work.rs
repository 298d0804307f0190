//! How media work is steered, on one provider: directives, steps, links, polls.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tollgate_fakes::{Options, Provider, Scenario, Stage};

use crate::client::{is_reset, send_to};
use crate::media::Site;

const TASKS: &str = "/contents/generations/tasks";
const IMAGES: &str = "/images/generations";

async fn site(options: Options) -> Site {
    Site::start(
        Provider::Ark,
        options,
        "/api/v3",
        &[("authorization", "Bearer k")],
    )
    .await
}

fn film(text: &str) -> Value {
    json!({"model": "doubao-seedance-1-0-pro-250528",
        "content": [{"type": "text", "text": text}]})
}

async fn begin(site: &Site, text: &str) -> String {
    let answer = site.good(TASKS, &film(text)).await;
    format!("{TASKS}/{}", answer["id"].as_str().expect("an id"))
}

/// The link of a video that is done at its first poll.
async fn link(site: &Site, text: &str) -> Value {
    let path = begin(site, text).await;
    let state = site.get(&path).await.json();
    assert_eq!(state["status"], "succeeded", "{state}");
    state["content"]["video_url"].clone()
}

#[tokio::test]
async fn steps_have_behaviours_of_their_own() {
    let site = site(Options::default()).await;
    let path = begin(
        &site,
        "a [[fake:status=503@poll*2]] b [[fake:status=410@cancel]]",
    )
    .await;
    for status in [503, 503, 200, 200] {
        assert_eq!(site.get(&path).await.status, status);
    }
    assert_eq!(site.ask("DELETE", &path).await.status, 410);
    let twice = film("[[fake:overloaded*1]]");
    assert_eq!(site.post(TASKS, &twice).await.status, 429);
    assert_eq!(
        site.post(TASKS, &twice).await.status,
        200,
        "the second time goes well"
    );
    site.fake.queue_at(Stage::Poll, Scenario::Status(500, None));
    let path = begin(&site, "submission is another matter").await;
    assert_eq!(site.get(&path).await.status, 500);
    assert_eq!(site.get(&path).await.status, 200);
    site.fake.set_at(Stage::File, Scenario::Html200);
    let link = link(&site, "a film").await;
    assert!(site.fetch(&link).await.text().contains("<html>"));
    let reply = site.post(TASKS, &film("[[fake:nonsense@poll]]")).await;
    assert_eq!(
        (reply.status, reply.header("x-fake-rule")),
        (400, "scenario")
    );
}

#[tokio::test]
async fn hanging_at_each_step() {
    let site = site(Options::default()).await;
    let soon = Duration::from_millis(200);
    let body = film("[[fake:hang]]");
    let never = site.try_post(TASKS, &body);
    assert!(tokio::time::timeout(soon, never).await.is_err());
    assert!(site.fake.polls().is_empty(), "nothing was begun");
    let path = begin(&site, "[[fake:hang@poll*1]]").await;
    assert!(tokio::time::timeout(soon, site.get(&path)).await.is_err());
    assert_eq!(site.get(&path).await.status, 200);
    let link = link(&site, "[[fake:hang@file]]").await;
    assert!(tokio::time::timeout(soon, site.fetch(&link)).await.is_err());
}

#[tokio::test]
async fn answers_that_get_lost() {
    let site = site(Options::default()).await;
    for (text, made) in [
        ("[[fake:reset-before-head]]", 0),
        ("[[fake:reset-after-accept]]", 1),
    ] {
        let lost = site.try_post(TASKS, &film(text)).await;
        assert!(is_reset(&lost.err().expect("no answer")));
        assert_eq!(site.fake.polls().len(), made);
    }
    let reply = site.post(TASKS, &film("[[fake:reset-mid-body]]")).await;
    assert!(reply.broken.is_some_and(|error| is_reset(&error)));
    assert_eq!(site.fake.polls().len(), 2);
    let body = film("[[fake:hang-after-accept]]");
    let never = site.try_post(TASKS, &body);
    let soon = Duration::from_millis(200);
    assert!(tokio::time::timeout(soon, never).await.is_err());
    assert_eq!(site.fake.polls().len(), 3);
    let id = site.fake.polls()[2].0.clone();
    let state = site.get(&format!("{TASKS}/{id}")).await.json();
    assert_eq!(
        state["status"], "succeeded",
        "the task is there all the same"
    );
}

#[tokio::test]
async fn links_that_fail() {
    let site = site(Options::default()).await;
    let whole = site.fetch(&link(&site, "a film").await).await.bytes();
    let cut = site.fetch(&link(&site, "[[fake:no-end@file]]").await).await;
    assert_eq!((cut.status, cut.bytes().len()), (200, whole.len() / 2));
    let broken = site
        .fetch(&link(&site, "[[fake:reset-mid-body@file]]").await)
        .await;
    assert!(broken.broken.is_some() && broken.bytes().len() < whole.len());
    assert_eq!(broken.header("content-length"), whole.len().to_string());
    let gone = site
        .fetch(&link(&site, "[[fake:status=404@file]]").await)
        .await;
    assert_eq!(gone.status, 404);
    let other = site
        .fetch(&link(&site, "[[fake:wrong-content-type@file]]").await)
        .await;
    assert_eq!(other.header("content-type"), "text/plain");
    let large = site
        .fetch(&link(&site, "[[fake:result-bytes=5000000]]").await)
        .await;
    assert_eq!(large.bytes().len(), 5_000_000);
    assert_eq!(large.header("content-length"), "5000000");
    let guess = format!("http://{}/_files/guess.mp4", site.fake.address());
    assert_eq!(site.fetch(&json!(guess)).await.status, 404);
}

#[tokio::test]
async fn options_of_work() {
    let site = site(Options {
        work: Duration::from_millis(300),
        result_bytes: Some(100_000),
        link_ttl: Some(Duration::from_millis(200)),
        public_url: Some("http://other:1".to_owned()),
        remember: 2,
        ..Options::default()
    })
    .await;
    let begun = Instant::now();
    let path = begin(&site, "a film").await;
    assert_eq!(site.get(&path).await.json()["status"], "queued");
    let mut state = Value::Null;
    while state["status"] != "succeeded" {
        assert!(begun.elapsed() < Duration::from_secs(20), "{state}");
        tokio::time::sleep(Duration::from_millis(40)).await;
        state = site.get(&path).await.json();
    }
    assert!(begun.elapsed() >= Duration::from_millis(300));
    let link = state["content"]["video_url"].as_str().expect("a link");
    let here = format!("http://{}", site.fake.address());
    let here = json!(link.replace("http://other:1", &here));
    assert_eq!(site.fetch(&here).await.bytes().len(), 100_000);
    tokio::time::sleep(Duration::from_millis(220)).await;
    assert_eq!(site.fetch(&here).await.status, 403, "the link has expired");
    assert_eq!(site.fake.requests().len(), 2);
    let begun = Instant::now();
    let body = json!({"model": "doubao-seedream-4-5-251128", "prompt": "[[fake:work-ms=500]]"});
    site.good(IMAGES, &body).await;
    assert!(
        begun.elapsed() >= Duration::from_millis(500),
        "an answer at once takes its time"
    );
}

#[tokio::test]
async fn polls_are_told() {
    let site = site(Options {
        polls: 3,
        ..Options::default()
    })
    .await;
    let path = begin(&site, "a film").await;
    begin(&site, "another").await;
    for _ in 0..3 {
        site.get(&path).await;
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    let report = site.fake.poll_report();
    assert_eq!((report.tasks, report.ended, report.polls), (2, 1, 3));
    assert!(report.gaps.min >= Duration::from_millis(30) && report.gaps.min <= report.gaps.max);
    assert!(report.late.max >= Duration::from_millis(60));
    assert!(
        report
            .to_string()
            .starts_with("2 tasks, 1 seen to their end, 3 polls; ")
    );
    let url = json!(format!("http://{}/_polls", site.fake.address()));
    let told = site.fetch(&url).await.json();
    assert_eq!(told["polls"], 3);
    assert!(
        told["gaps_ms"]["median"]
            .as_f64()
            .is_some_and(|ms| ms >= 30.0)
    );
}

#[tokio::test]
async fn faults_of_a_submission() {
    let site = site(Options::default()).await;
    for (text, status, code) in [
        ("[[fake:quota-exhausted]]", 403, "AccountOverdueError"),
        (
            "[[fake:rate-limited=7]]",
            429,
            "ModelAccountRpmRateLimitExceeded",
        ),
        ("[[fake:key-refused]]", 401, "AuthenticationError"),
        (
            "[[fake:model-missing]]",
            404,
            "InvalidEndpointOrModel.NotFound",
        ),
        ("[[fake:overloaded]]", 429, "ServerOverloaded"),
        ("[[fake:status=502]]", 502, "InternalServiceError"),
    ] {
        let reply = site.post(TASKS, &film(text)).await;
        assert_eq!(
            (reply.status, &reply.json()["error"]["code"]),
            (status, &json!(code))
        );
    }
    assert!(site.fake.polls().is_empty());
    assert!(
        site.fake
            .requests()
            .iter()
            .all(|seen| seen.rejected_by.is_none())
    );
}

#[tokio::test]
async fn results_at_an_address_of_their_own() {
    let options = Options {
        files_address: Some(([127, 0, 0, 1], 0).into()),
        ..Options::default()
    };
    let site = site(options).await;
    let link = link(&site, "a film").await;
    let link = link.as_str().expect("a link");
    let here = format!("http://{}", site.fake.address());
    assert!(!link.starts_with(&here));
    let rest = link.strip_prefix("http://").expect("a link of the web");
    let (address, path) = rest.split_once('/').expect("a path");
    let address = address.parse().expect("an address");
    let path = format!("/{path}");
    let file = send_to(address, "GET", &path, &[], "")
        .await
        .expect("an answer");
    assert_eq!(
        (file.status, file.header("content-type")),
        (200, "video/mp4")
    );
    let key = [("authorization", "Bearer k")];
    let leaked = send_to(address, "GET", &path, &key, "")
        .await
        .expect("an answer");
    assert_eq!(
        (leaked.status, leaked.header("x-fake-rule")),
        (400, "key-leaked")
    );
    let other = send_to(address, "POST", "/api/v3/images/generations", &[], "").await;
    assert_eq!(other.expect("an answer").status, 404);
}
