//! Chats that are interrupted: clients disconnect, servers die or drain, the database becomes unavailable.

use std::time::Duration;

use futures_util::future::join_all;
use tollgate_fakes::{Fake, Options, Provider, Scenario, start};

use super::charges::prices;
use super::format::Format;
use super::providers::{channel, chat_records};
use super::request::ChatRequest;
use crate::harness::*;

on_both!(
    a_disconnected_client_pays_for_what_was_received,
    a_killed_server_charges_nothing,
);
on_sqlite!(a_drain_waits_for_the_end_of_streams);
on_postgres!(
    another_node_releases_the_holds_of_a_killed_node,
    no_stream_ends_successfully_without_the_database,
);

const MODEL: &str = "gpt-4o";
/// A format that needs no translation for the fake, and one that does.
const FORMATS: [Format; 2] = [Format::Chat, Format::Messages];

/// A slow fake, and the configuration of a gateway with a channel to it.
async fn slow(pause_ms: u64) -> (Fake, String) {
    let options = Options {
        delay: Duration::from_millis(pause_ms),
        ..Options::default()
    };
    let fake = start(Provider::OpenAi, options).await.unwrap();
    let config = prices(&[MODEL]) + &channel("openai", Provider::OpenAi, &fake, "");
    (fake, config)
}

/// Starts a stream and reads this number of pieces of text.
async fn start_stream(client: &Client, format: Format, pieces: usize) -> Stream {
    let text = "tell me a long story";
    let request = ChatRequest::of_text(format, MODEL, true, text).max_tokens(1000);
    let path = format.vendor_path(MODEL, true);
    let mut stream = client.open(&path, &request.body).await;
    assert_eq!(stream.status, 200);
    let mut got = 0;
    while got < pieces {
        let event = stream.event().await.expect("more");
        got += usize::from(!format.text_of(&event).is_empty());
    }
    stream
}

/// Starts the streams side by side: the first must not end before the last has started.
async fn start_streams(client: &Client) -> Vec<(Format, Stream)> {
    join_all(Format::ALL.map(async |format| (format, start_stream(client, format, 1).await))).await
}

async fn wait_for_upstream_end(fake: &Fake) {
    let is_over = async || fake.open_streams() == 0;
    until_true("the upstream's exchange to end", is_over).await;
}

async fn wait_for_release(client: &Client) {
    let is_released = async || {
        let reply = client.get("/v1/user/balance").await;
        reply.status == 200 && reply.json()["remain_balance"] == 100.0
    };
    until_true("every hold to be released", is_released).await;
}

async fn a_disconnected_client_pays_for_what_was_received(backend: Backend) {
    let (fake, config) = slow(20).await;
    let gateway = Setup::new(backend).config(&config).start().await;
    let client = gateway.funded_client("100").await;
    fake.set(Scenario::Endless);
    for (number, format) in FORMATS.into_iter().enumerate() {
        let stream = start_stream(&client, format, 6).await;
        let (_, used) = client.balances().await;
        drop(stream);
        wait_for_upstream_end(&fake).await;
        let columns = "outcome, estimated, channel, input, output, settled";
        let row = until("the record", async || {
            let rows = chat_records(&gateway, columns).await;
            rows.get(number).filter(|row| !row[0].is_empty()).cloned()
        });
        let row = row.await;
        assert_eq!(row[..3], ["client_gone", "1", "openai"], "{row:?}");
        let [input, output, settled] = [3, 4, 5].map(|at| row[at].parse::<i64>().unwrap());
        let plausible = (1..1000).contains(&input) && (6..400).contains(&output);
        assert!(plausible, "{row:?}");
        let charged = client.balances().await.1 - used;
        assert_eq!((charged * 1e9).round() as i64, settled, "{row:?}");
    }
    gateway.close().await;
}

async fn a_killed_server_charges_nothing(backend: Backend) {
    let (fake, config) = slow(20).await;
    fake.set(Scenario::Endless);
    let setup = Setup::new(backend).config(&config);
    let setup = setup.env("TOLLGATE_LEASES__SECONDS", "2");
    let mut gateway = setup.start().await;
    let client = gateway.funded_client("100").await;
    let mut stream = start_stream(&client, Format::Chat, 3).await;
    let (left, used) = client.balances().await;
    assert!(left < 100.0 && used == 0.0, "{left} {used}");
    gateway.kill().await;
    stream.events().await;
    assert!(stream.broken, "no end that looks like a success");
    gateway.start_server().await;
    wait_for_release(&client).await;
    assert_eq!(client.balances().await, (100.0, 0.0));
    fake.set(Scenario::Normal);
    let request = ChatRequest::of_text(Format::Chat, MODEL, false, "hi").max_tokens(9);
    let reply = Format::Chat
        .send(&client, MODEL, false, &request.body)
        .await;
    assert_eq!(reply.unwrap().text, "echo: hi");
    gateway.close().await;
}

async fn another_node_releases_the_holds_of_a_killed_node(backend: Backend) {
    let (fake, config) = slow(20).await;
    fake.set(Scenario::Endless);
    let setup = || {
        let setup = Setup::new(backend).config(&config);
        setup.env("TOLLGATE_LEASES__SECONDS", "2")
    };
    let mut first = setup().start().await;
    let second = setup().beside(&first).start().await;
    let client = first.funded_client("100").await;
    let at_second = second.client(client.secret.clone(), client.key_id.clone());
    // A chat of the living node keeps its hold.
    let own = start_stream(&at_second, Format::Chat, 1).await;
    let (with_own, _) = at_second.balances().await;
    let stream = start_stream(&client, Format::Messages, 3).await;
    assert!(at_second.balances().await.0 < with_own);
    first.kill().await;
    drop(stream);
    let is_released = async || at_second.balances().await.0 == with_own;
    until_true("the killed node's hold to be released", is_released).await;
    drop(own);
    until_true("the living node's chat to end", async || {
        let (left, used) = at_second.balances().await;
        used > 0.0 && ((left + used) - 100.0).abs() < 1e-9
    })
    .await;
    second.close().await;
    first.close().await;
}

/// No stream ends like a success unless its chat was charged.
async fn no_stream_ends_successfully_without_the_database(_: Backend) {
    let Some(mut postgres) = PostgresServer::start_new().await else {
        return;
    };
    let (_fake, config) = slow(300).await;
    let setup = Setup::new(Backend::Sqlite).config(&config);
    let setup = setup.env("TOLLGATE_DATABASE__URL", postgres.url());
    let gateway = setup.start().await;
    let client = gateway.funded_client("100").await;
    let mut streams = start_streams(&client).await;
    postgres.stop();
    for (format, stream) in &mut streams {
        let events = stream.events().await;
        assert!(!stream.broken, "{format:?}");
        let (last, before) = events.split_last().expect("an event");
        assert!(format.error_event(last).is_some(), "{format:?}: {last:?}");
        for event in before {
            assert!(!format.is_end(event), "{format:?}: {event:?}");
        }
    }
    postgres.resume();
    postgres.wait_until_ready().await;
    wait_for_release(&client).await;
    gateway.close().await;
}

async fn a_drain_waits_for_the_end_of_streams(backend: Backend) {
    let (_fake, config) = slow(20).await;
    let mut gateway = Setup::new(backend).config(&config).start().await;
    let client = gateway.funded_client("100").await;
    let mut streams = start_streams(&client).await;
    let reading = async {
        for (format, stream) in &mut streams {
            let last = stream.events().await.pop().expect("an end");
            assert!(!stream.broken && format.is_end(&last), "{format:?}");
        }
    };
    tokio::join!(gateway.terminate(), reading);
    let rows = chat_records(&gateway, "outcome, estimated").await;
    assert_eq!(rows, vec![vec!["done", "0"]; 4]);
    gateway.close().await;
}
