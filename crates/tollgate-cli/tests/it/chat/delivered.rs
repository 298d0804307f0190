//! What is delivered is charged: to clients that disconnect, with counts that cannot be true, and beyond the hold.

use std::time::Duration;

use serde_json::json;
use tollgate_fakes::{Fake, Options, Provider, Scenario, start, tokens};

use super::charges::prices;
use super::format::Format;
use super::providers::{AllProviders, CHANNELS, all_models, channel, chat_records};
use super::request::ChatRequest;
use crate::harness::*;

on_both!(
    a_client_that_leaves_before_any_content_pays_for_the_prompt,
    a_stream_cut_just_before_its_end_costs_what_it_costs_whole,
    hidden_reasoning_is_charged_to_a_client_that_leaves,
    a_complete_response_that_nobody_waits_for_is_charged,
    the_cap_that_is_held_for_is_sent,
    an_impossible_count_is_charged_at_its_bound,
    a_shutdown_settles_what_nobody_reads,
    hidden_reasoning_is_charged_when_the_provider_breaks_off,
);

/// A fake that waits before each event, and a gateway with a channel to it.
async fn slow(backend: Backend, provider: Provider, model: &str, ms: u64) -> (Fake, TestGateway) {
    let options = Options {
        delay: Duration::from_millis(ms),
        ..Options::default()
    };
    let fake = start(provider, options).await.unwrap();
    let config = prices(&[model]) + &channel(provider.name(), provider, &fake, "");
    let gate = Setup::new(backend).config(&config).start().await;
    (fake, gate)
}

/// Numbers and texts of the record with index `at`, once it exists.
async fn record(gate: &TestGateway, at: usize, columns: &str) -> Vec<String> {
    until("the record", async || {
        let rows = chat_records(gate, &format!("outcome, {columns}")).await;
        rows.get(at).filter(|row| !row[0].is_empty()).cloned()
    })
    .await
}

fn numbers(row: &[String]) -> Vec<i64> {
    row.iter().map(|cell| cell.parse().unwrap()).collect()
}

async fn a_client_that_leaves_before_any_content_pays_for_the_prompt(backend: Backend) {
    let (fake, gate) = slow(backend, Provider::OpenAi, "gpt-4o", 20).await;
    let client = gate.funded_client("100").await;
    fake.set(Scenario::Hang);
    for (number, wire) in [Format::Chat, Format::Messages].into_iter().enumerate() {
        fake.clear();
        let talk =
            ChatRequest::of_text(wire, "gpt-4o", true, "tell me a long story").max_tokens(100);
        let path = wire.vendor_path("gpt-4o", true);
        let asking = client.open(&path, &talk.body);
        let waiting = until("the upstream to be asked", async || {
            (fake.open_streams() == 1).then_some(())
        });
        tokio::select! {
            reply = asking => panic!("an answer: {}", reply.status),
            () = waiting => {}
        }
        let row = record(
            &gate,
            number,
            "estimated, input, output + reasoning, settled",
        )
        .await;
        assert_eq!(row[0], "client_gone");
        let row = numbers(&row[1..]);
        assert_eq!((row[0], row[2]), (1, 0), "{row:?}");
        assert!((10..200).contains(&row[1]) && row[3] > 0, "{row:?}");
        until("the upstream to be dropped", async || {
            (fake.open_streams() == 0).then_some(())
        })
        .await;
    }
    gate.close().await;
}

/// The client disconnects after the event before the last, and after fewer events; in every format, through every channel.
async fn a_stream_cut_just_before_its_end_costs_what_it_costs_whole(backend: Backend) {
    let site = AllProviders::start(backend, &prices(&all_models())).await;
    let client = site.gateway.funded_client("1000").await;
    let text = "think of the sea, of ships and of the harbour in the morning";
    let mut count = 0;
    for way in CHANNELS {
        for (model, _) in way.models {
            for wire in Format::ALL {
                let talk = ChatRequest::of_text(wire, model, true, text).thinking();
                let name = format!("{wire:?} {model}");
                let path = wire.vendor_path(model, true);
                let mut events = client.open(&path, &talk.body).await.events().await.len();
                let complete = record(&site.gateway, count, "settled").await;
                assert_eq!(complete[0], "done", "{name}");
                count += 1;
                while events > 1 {
                    // First, all events but the last; then, in each round, about half of the events of the round before.
                    events = if events > 4 { events - 1 } else { 1 };
                    let mut stream = client.open(&path, &talk.body).await;
                    for _ in 0..events {
                        stream.event().await.expect(&name);
                    }
                    drop(stream);
                    let cut = record(&site.gateway, count, "settled").await;
                    count += 1;
                    let (cut, complete) = (numbers(&cut[1..])[0], numbers(&complete[1..])[0]);
                    assert!(
                        cut * 10 >= complete * 9,
                        "{name} {events}: {cut} of {complete}"
                    );
                    events /= 2;
                }
            }
        }
    }
    site.gateway.close().await;
}

async fn hidden_reasoning_is_charged_to_a_client_that_leaves(backend: Backend) {
    let (fake, gate) = slow(backend, Provider::OpenAi, "gpt-5", 100).await;
    let client = gate.funded_client("1000").await;
    let text = "think of the sea, of ships and of the harbour in the morning";
    for (number, wire) in [Format::Chat, Format::Messages].into_iter().enumerate() {
        let talk = ChatRequest::of_text(wire, "gpt-5", true, text).thinking();
        let mut stream = client
            .open(&wire.vendor_path("gpt-5", true), &talk.body)
            .await;
        stream.event().await.expect("a first event");
        let (left, _) = client.balances().await;
        drop(stream);
        let reading = client.balances().await.0;
        assert!(reading <= left, "the hold is kept");
        let row = record(
            &gate,
            number,
            "estimated, input + cached_input + cache_write, output + reasoning, reasoning",
        )
        .await;
        assert_eq!(row[0], "client_gone");
        let expected = tokens(text, 6 + text.len(), true);
        let expected = [expected.input, expected.output, expected.reasoning];
        let expected: Vec<i64> = expected.iter().map(|n| n.cast_signed()).collect();
        let row = numbers(&row[1..]);
        assert_eq!(row[0], 0, "the upstream's count: {row:?}");
        assert_eq!(row[1..], expected, "{wire:?}");
    }
    // The gateway drops a stream that never ends once the output is more than the hold covers.
    fake.set(Scenario::Endless);
    let talk = ChatRequest::of_text(Format::Chat, "gpt-5", true, text)
        .max_tokens(20)
        .thinking();
    let mut stream = client
        .open(&Format::Chat.vendor_path("gpt-5", true), &talk.body)
        .await;
    stream.event().await.expect("a first event");
    drop(stream);
    let row = record(&gate, 2, "estimated, output + reasoning").await;
    let row = numbers(&row[1..]);
    assert!(row[0] == 1 && (20..60).contains(&row[1]), "{row:?}");
    gate.close().await;
}

async fn a_complete_response_that_nobody_waits_for_is_charged(backend: Backend) {
    let (fake, gate) = slow(backend, Provider::OpenAi, "gpt-4o", 20).await;
    let client = gate.funded_client("100").await;
    fake.set(Scenario::Drip { ms: 2 });
    let talk = ChatRequest::of_text(Format::Chat, "gpt-4o", false, "hello there").max_tokens(100);
    let path = Format::Chat.vendor_path("gpt-4o", false);
    let asking = client.post(&path, &talk.body);
    let waiting = until("the upstream to answer", async || {
        (fake.open_streams() == 1).then_some(())
    });
    tokio::select! {
        reply = asking => panic!("an answer: {}", reply.status),
        () = waiting => {}
    }
    let row = record(
        &gate,
        0,
        "estimated, input + cached_input + cache_write, output",
    )
    .await;
    assert_eq!(row[0], "client_gone");
    let expected = tokens("hello there", "echo: hello there".len(), false);
    let expected = [0, expected.input, expected.output].map(u64::cast_signed);
    assert_eq!(numbers(&row[1..]), expected);
    gate.close().await;
}

async fn the_cap_that_is_held_for_is_sent(backend: Backend) {
    let config = "[chat]\ndefault_max_tokens = 77\n".to_owned() + &prices(&all_models());
    let site = AllProviders::start(backend, &config).await;
    let limited = site.gateway.funded_client("1000").await;
    let free = site.gateway.user_client("free", &["--unlimited"]).await;
    for (client, has_cap) in [(&limited, true), (&free, false)] {
        for (fake, way) in site.fakes.iter().zip(CHANNELS) {
            let plain = Format::ALL.into_iter().map(|wire| (wire, false));
            // With an effort, the limit that the gateway sets for this format would be larger.
            for (wire, has_effort) in plain.chain([(Format::Messages, true)]) {
                fake.clear();
                let model = way.models[0].0;
                let mut talk = ChatRequest::of_text(wire, model, false, "hi");
                if wire == Format::Messages {
                    talk.body.as_object_mut().unwrap().remove("max_tokens");
                }
                if has_effort {
                    talk.body["output_config"] = json!({"effort": "high"});
                }
                wire.send(client, model, false, &talk.body).await.unwrap();
                let sent = fake.requests()[0].body.clone();
                let caps = [
                    "/max_tokens",
                    "/max_completion_tokens",
                    "/max_output_tokens",
                    "/generationConfig/maxOutputTokens",
                ];
                let cap = caps.iter().find_map(|path| sent.pointer(path)?.as_u64());
                if has_cap {
                    assert_eq!(cap, Some(77), "{wire:?} {model}: {sent}");
                } else if way.provider != Provider::Anthropic && wire != Format::Messages {
                    assert_eq!(cap, None, "{wire:?} {model}: {sent}");
                }
            }
        }
    }
    site.gateway.close().await;
}

async fn an_impossible_count_is_charged_at_its_bound(backend: Backend) {
    let site = AllProviders::start(backend, &prices(&all_models())).await;
    let client = site.gateway.user_client("free", &["--unlimited"]).await;
    let mut count = 0;
    for (fake, way) in site.fakes.iter().zip(CHANNELS) {
        for stream in [false, true] {
            fake.queue(Scenario::AbsurdUsage);
            let model = way.models[0].0;
            let talk = ChatRequest::of_text(Format::Chat, model, stream, "tell me of the sea")
                .max_tokens(300);
            let mut reply = client
                .open(&Format::Chat.vendor_path(model, stream), &talk.body)
                .await;
            reply.text().await;
            let columns = "estimated, input + cached_input + cache_write, output + reasoning, settled, clamped";
            let row = numbers(&record(&site.gateway, count, columns).await[1..]);
            count += 1;
            let name = format!("{model} {stream}: {row:?}");
            assert_eq!(row[0], 0, "{name}");
            assert!((16_000..17_000).contains(&row[1]), "{name}");
            assert!(
                row[2] >= 300 && row[3] > 0 && row[4] > 1_000_000_000,
                "{name}"
            );
            let metric = format!(
                "tollgate_chat_usage_clamped_total{{channel=\"{}\",model=\"{model}\"}}",
                way.name
            );
            let clamped = site.gateway.metric(&metric).await;
            assert_eq!(clamped, if stream { 2.0 } else { 1.0 }, "{name}");
        }
    }
    let books = site.gateway.cli_json(&["audit", "--books"]).await;
    let clamped: i64 = books
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["clamped"].as_i64().unwrap())
        .sum();
    assert_eq!(clamped, count as i64, "{books}");
    site.gateway.close().await;
}

async fn hidden_reasoning_is_charged_when_the_provider_breaks_off(backend: Backend) {
    let (fake, gate) = slow(backend, Provider::OpenAi, "gpt-5", 100).await;
    let client = gate.funded_client("100").await;
    fake.set(Scenario::ResetMidBody { after: 3 });
    let talk = ChatRequest::of_text(Format::Chat, "gpt-5", true, "think of the sea")
        .max_tokens(1000)
        .thinking();
    let path = Format::Chat.vendor_path("gpt-5", true);
    client.open(&path, &talk.body).await.text().await;
    let row = record(&gate, 0, "estimated, reasoning").await;
    assert_eq!(row[0], "cut");
    let row = numbers(&row[1..]);
    assert!(row[0] == 1 && row[1] > 10, "{row:?}");
    gate.close().await;
}

async fn a_shutdown_settles_what_nobody_reads(backend: Backend) {
    let (fake, mut gate) = slow(backend, Provider::OpenAi, "gpt-5", 20).await;
    let client = gate.funded_client("100").await;
    fake.set(Scenario::Stall { after: 3 });
    let talk = ChatRequest::of_text(Format::Chat, "gpt-5", true, "think of the sea")
        .max_tokens(1000)
        .thinking();
    let mut stream = client
        .open(&Format::Chat.vendor_path("gpt-5", true), &talk.body)
        .await;
    stream.event().await.expect("a first event");
    drop(stream);
    gate.terminate().await;
    let row = record(&gate, 0, "estimated, input, output + reasoning").await;
    assert_eq!(row[0], "client_gone");
    let row = numbers(&row[1..]);
    assert!(row[0] == 1 && row[1] > 10 && row[2] > 10, "{row:?}");
    gate.close().await;
}
