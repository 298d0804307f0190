//! Tests exchanges that break, never end or are sent in an unusual way, in every chat format; and lost responses.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use serde_json::Value;
use tollgate_fakes::Scenario;

use crate::client::{Client, Exchange, Reply, is_reset};

/// How long an exchange that hangs is waited for.
const SOON: Duration = Duration::from_millis(150);

/// Waits until no exchange is open.
async fn until_closed(client: &Client) {
    while client.fake.open_streams() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn scenarios_change_the_bytes_and_pieces_of_a_response() {
    for exchange in Exchange::chats() {
        let (path, body) = (exchange.path.as_str(), exchange.body("hello to all of you"));
        let client = exchange.start().await;
        let under = async |scenario: Scenario| -> Result<Reply, hyper::Error> {
            client.fake.set(scenario);
            client.try_post(path, &body).await
        };
        let complete = under(Scenario::Normal).await.expect("a response");
        let drops = under(Scenario::Drip { ms: 0 }).await.expect("a response");
        assert_eq!(drops.bytes().len(), complete.bytes().len(), "{path}");
        assert!(drops.pieces.len() > complete.pieces.len(), "{path}");
        let spoilt = under(Scenario::InvalidUtf8).await.expect("a response");
        assert!(std::str::from_utf8(&spoilt.bytes()).is_err(), "{path}");
        let bytes = 1 << 20;
        let huge = under(Scenario::HugeEvent { bytes })
            .await
            .expect("a response");
        assert!(huge.text().lines().any(|line| line.len() > bytes), "{path}");
        let huge = under(Scenario::HugeHeaders).await;
        assert!(huge.is_err(), "more headers than the client takes");
    }
}

#[tokio::test]
async fn scenarios_reset_or_close_the_connection() {
    for exchange in Exchange::chats() {
        let (path, body) = (exchange.path.as_str(), exchange.body("hello to all of you"));
        let client = exchange.start().await;
        let under = async |scenario: Scenario| {
            client.fake.set(scenario);
            client.try_post(path, &body).await
        };
        let reset = under(Scenario::ResetBeforeHead).await;
        assert!(is_reset(&reset.err().expect("no response")), "{path}");
        let closed = under(Scenario::CloseWithoutResponse).await;
        let closed = closed.err().expect("no response");
        assert!(
            closed.is_incomplete_message() && !is_reset(&closed),
            "{path}"
        );
        let broken = under(Scenario::ResetMidBody { after: 2 })
            .await
            .expect("a response");
        assert_eq!(broken.status, 200);
        assert!(broken.error.as_ref().is_some_and(is_reset), "{path}");
        if exchange.streams {
            assert_eq!(broken.text().matches("data: ").count(), 2, "{path}");
        } else {
            assert!(!broken.bytes().is_empty(), "{path}");
        }
        assert_eq!(client.fake.open_streams(), 0);
    }
}

#[tokio::test]
async fn stalled_endless_and_hanging_exchanges_end_when_the_client_disconnects() {
    for exchange in Exchange::chats() {
        let (path, body) = (exchange.path.as_str(), exchange.body("hello"));
        let client = exchange.start().await;
        for (scenario, wanted) in [
            (Scenario::Stall { after: 2 }, 10),
            (Scenario::Endless, 5000),
        ] {
            client.fake.set(scenario.clone());
            let response = client.open(path, &body).await.expect("a head");
            let mut incoming = response.into_body();
            let mut received = 0;
            while received < wanted {
                let frame = incoming.frame().await.expect("more").expect("no break");
                received += frame.into_data().as_ref().map_or(0, Bytes::len);
            }
            assert_eq!(client.fake.open_streams(), 1, "{scenario:?}");
            drop(incoming);
            until_closed(&client).await;
        }
        client.fake.set(Scenario::Hang);
        let arrived = async {
            while client.fake.open_streams() == 0 {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            _ = client.open(path, &body) => panic!("it hangs"),
            () = arrived => {}
        }
        until_closed(&client).await;
    }
}

#[tokio::test]
async fn a_task_is_started_even_if_its_response_is_lost() {
    for exchange in Exchange::media() {
        let path = exchange.path.as_str();
        let client = exchange.start().await;
        for (text, status) in [
            ("[[fake:reset-before-head]]", None),
            ("[[fake:status=502]]", Some(502)),
        ] {
            match client.try_post(path, &exchange.body(text)).await {
                Ok(reply) => assert_eq!(Some(reply.status), status, "{path} {text}"),
                Err(error) => assert!(status.is_none() && is_reset(&error), "{path} {text}"),
            }
        }
        let body = exchange.body("[[fake:hang]]");
        let hangs = tokio::time::timeout(SOON, client.try_post(path, &body));
        assert!(hangs.await.is_err(), "{path}");
        assert!(client.fake.polls().is_empty(), "{path}: nothing is started");

        let body = exchange.body("[[fake:reset-after-accept]]");
        let lost = client.try_post(path, &body).await;
        assert!(lost.err().as_ref().is_some_and(is_reset), "{path}");
        let started = usize::from(exchange.starts_task);
        assert_eq!(client.fake.polls().len(), started, "{path}");
        let body = exchange.body("[[fake:hang-after-accept]]");
        let submission = client.try_post(path, &body);
        let is_started = async {
            while client.fake.polls().len() < 2 * started {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            tokio::time::sleep(SOON).await;
        };
        tokio::select! {
            _ = submission => panic!("{path}: a response though it hangs"),
            () = is_started => {}
        }
        assert_eq!(client.fake.polls().len(), 2 * started, "{path}");

        let broken = client
            .post(path, &exchange.body("[[fake:reset-mid-body]]"))
            .await;
        assert!(broken.error.as_ref().is_some_and(is_reset), "{path}");
        let cut = client
            .post(path, &exchange.body("[[fake:truncated-json]]"))
            .await;
        assert!(cut.error.is_none() && serde_json::from_slice::<Value>(&cut.bytes()).is_err());
        assert!(
            client.post(path, &exchange.body("a tree")).await.status < 300,
            "{path}"
        );
        assert!(
            client
                .fake
                .requests()
                .iter()
                .all(|request| request.rejected_by.is_none())
        );
    }
}
