//! Chats that end before their end: clients that hang up, servers that die or leave, a database that goes away.

use std::time::Duration;

use tollgate_fakes::{Fake, Options, Provider, Scenario, start};

use super::money::prices;
use super::site::{channel, kind, payer, records};
use super::talk::Talk;
use super::wire::Wire;
use crate::cluster::Cluster;
use crate::gate::{Backend, Client, Gate, Setup, Stream, on_both, on_one, on_postgres, until};

on_both!(
    who_hangs_up_pays_for_what_came,
    who_hangs_up_early_pays_nothing,
    a_killed_server_charges_nothing,
);
on_one!(a_drain_lets_streams_end);
on_postgres!(
    another_node_releases_what_a_dead_one_held,
    without_the_database_there_is_no_end,
);

const MODEL: &str = "gpt-4o";
/// Formats that need no translation for the fake, and those that do.
const WIRES: [Wire; 2] = [Wire::Chat, Wire::Messages];

/// A fake that takes its time, and the configuration of a gateway in front of it.
async fn slow(provider: Provider) -> (Fake, String) {
    let options = Options {
        delay: Duration::from_millis(20),
        ..Options::default()
    };
    let fake = start(provider, options).await.unwrap();
    let config = prices(&[MODEL]) + &channel(kind(provider), provider, &fake, "");
    (fake, config)
}

/// A stream of which some text has come.
async fn begun(client: &Client, wire: Wire, pieces: usize) -> Stream {
    let talk = Talk::saying(wire, MODEL, true, "tell me a long story").cap(1000);
    let mut stream = client.open(&wire.bare_path(MODEL, true), &talk.body).await;
    assert_eq!(stream.status, 200);
    let mut got = 0;
    while got < pieces {
        let event = stream.event().await.expect("more");
        got += usize::from(!wire.piece(&event).is_empty());
    }
    stream
}

async fn who_hangs_up_pays_for_what_came(backend: Backend) {
    let (fake, config) = slow(Provider::OpenAi).await;
    let gate = Setup::new(backend).config(&config).start().await;
    let client = payer(&gate, "100").await;
    fake.set(Scenario::Endless);
    for (number, wire) in WIRES.into_iter().enumerate() {
        let stream = begun(&client, wire, 6).await;
        let (_, used) = client.purse().await;
        drop(stream);
        until("the upstream's exchange to end", async || {
            (fake.open_streams() == 0).then_some(())
        })
        .await;
        let columns = "outcome, estimated, input, output, settled, channel";
        let row = until("the record", async || {
            let rows = records(&gate, columns).await;
            rows.get(number).filter(|row| !row[0].is_empty()).cloned()
        })
        .await;
        assert_eq!(row[..2], ["client_gone", "1"], "{row:?}");
        assert_eq!(row[5], "openai");
        let number = |at: usize| row[at].parse::<i64>().unwrap();
        assert!(
            (1..1000).contains(&number(2)) && (6..400).contains(&number(3)),
            "{row:?}"
        );
        let after = client.purse().await.1;
        assert_eq!(((after - used) * 1e9).round() as i64, number(4), "{row:?}");
    }
    gate.close().await;
}

async fn who_hangs_up_early_pays_nothing(backend: Backend) {
    let (fake, config) = slow(Provider::OpenAi).await;
    let gate = Setup::new(backend).config(&config).start().await;
    let client = payer(&gate, "100").await;
    fake.set(Scenario::Hang);
    for (wire, stream) in WIRES
        .into_iter()
        .flat_map(|wire| [(wire, false), (wire, true)])
    {
        fake.clear();
        let talk = Talk::saying(wire, MODEL, stream, "hi").cap(100);
        let path = wire.bare_path(MODEL, stream);
        let asking = client.open(&path, &talk.body);
        let waiting = until("the upstream to be asked", async || {
            (fake.open_streams() == 1).then_some(())
        });
        tokio::select! {
            reply = asking => panic!("an answer: {}", reply.status),
            () = waiting => {}
        }
        until("the upstream's exchange to end", async || {
            (fake.open_streams() == 0).then_some(())
        })
        .await;
        until("the hold to be released", async || {
            (client.purse().await == (100.0, 0.0)).then_some(())
        })
        .await;
    }
    gate.close().await;
}

async fn a_killed_server_charges_nothing(backend: Backend) {
    let (fake, config) = slow(Provider::OpenAi).await;
    fake.set(Scenario::Endless);
    let setup = Setup::new(backend).config(&config);
    let mut gate = setup.env("TOLLGATE_LEASES__SECONDS", "2").start().await;
    let client = payer(&gate, "100").await;
    let mut stream = begun(&client, Wire::Chat, 3).await;
    let (left, used) = client.purse().await;
    assert!(left < 100.0 && used == 0.0, "{left} {used}");
    gate.kill().await;
    while stream.event().await.is_some() {}
    assert!(stream.broken, "no end that looks like one");
    gate.start_server().await;
    until("the hold to be released", async || {
        (client.purse().await == (100.0, 0.0)).then_some(())
    })
    .await;
    fake.set(Scenario::Normal);
    let said = Wire::Chat
        .ask(
            &client,
            MODEL,
            false,
            &Talk::saying(Wire::Chat, MODEL, false, "hi").cap(9).body,
        )
        .await;
    assert_eq!(said.unwrap().text, "echo: hi");
    gate.close().await;
}

async fn another_node_releases_what_a_dead_one_held(backend: Backend) {
    let (fake, config) = slow(Provider::OpenAi).await;
    fake.set(Scenario::Endless);
    let setup = |config: &str| {
        Setup::new(backend)
            .config(config)
            .env("TOLLGATE_LEASES__SECONDS", "2")
    };
    let mut first = setup(&config).start().await;
    let second = setup(&config).beside(&first).start().await;
    let client = payer(&first, "100").await;
    let here = second.client(client.secret.clone(), client.key_id.clone());
    // A chat of the living node keeps its hold.
    let own = begun(&here, Wire::Chat, 1).await;
    let (with_own, _) = here.purse().await;
    let stream = begun(&client, Wire::Messages, 3).await;
    assert!(here.purse().await.0 < with_own);
    first.kill().await;
    drop(stream);
    until("the dead node's hold to be released", async || {
        (here.purse().await.0 == with_own).then_some(())
    })
    .await;
    drop(own);
    until("the living node's chat to end", async || {
        let (left, used) = here.purse().await;
        (used > 0.0 && ((left + used) - 100.0).abs() < 1e-9).then_some(())
    })
    .await;
    second.close().await;
    first.close().await;
}

/// Nothing looks like an end that was not charged.
async fn without_the_database_there_is_no_end(_: Backend) {
    let Some(mut cluster) = Cluster::new().await else {
        return;
    };
    let options = Options {
        delay: Duration::from_millis(150),
        ..Options::default()
    };
    let fake = start(Provider::OpenAi, options).await.unwrap();
    let config = prices(&[MODEL]) + &channel("openai", Provider::OpenAi, &fake, "");
    let setup = Setup::new(Backend::Sqlite).config(&config);
    let gate = setup
        .env("TOLLGATE_DATABASE__URL", cluster.url())
        .start()
        .await;
    let client = payer(&gate, "100").await;
    let mut streams = Vec::new();
    for wire in Wire::ALL {
        streams.push((wire, begun(&client, wire, 1).await));
    }
    cluster.stop();
    for (wire, stream) in &mut streams {
        let events = stream.events().await;
        assert!(!stream.broken, "{wire:?}");
        let (last, before) = events.split_last().expect("an event");
        assert!(wire.error_event(last).is_some(), "{wire:?}: {last:?}");
        for event in before {
            assert!(!wire.is_end(event), "{wire:?}: {event:?}");
        }
    }
    cluster.come_back();
    cluster.answers().await;
    until("the holds to be given back", async || {
        let reply = client.get("/v1/user/balance").await;
        (reply.status == 200 && reply.json()["remain_balance"] == 100.0).then_some(())
    })
    .await;
    gate.close().await;
}

async fn a_drain_lets_streams_end(backend: Backend) {
    let (_fake, config) = slow(Provider::OpenAi).await;
    let mut gate: Gate = Setup::new(backend).config(&config).start().await;
    let client = payer(&gate, "100").await;
    let mut streams = Vec::new();
    for wire in Wire::ALL {
        streams.push((wire, begun(&client, wire, 1).await));
    }
    let reading = async {
        for (wire, stream) in &mut streams {
            let events = stream.events().await;
            assert!(
                !stream.broken && wire.is_end(events.last().expect("an end")),
                "{wire:?}"
            );
        }
    };
    let (status, ()) = tokio::join!(gate.terminate(), reading);
    assert_eq!(status.code(), Some(0));
    let outcomes = records(&gate, "outcome, estimated").await;
    assert_eq!(outcomes, vec![vec!["done".to_owned(), "0".to_owned()]; 4]);
    gate.close().await;
}
