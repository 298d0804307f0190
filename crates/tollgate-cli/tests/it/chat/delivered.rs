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
    a_client_that_disconnects_before_any_content_pays_for_the_prompt,
    a_stream_cut_just_before_its_end_costs_as_much_as_the_complete_one,
    hidden_reasoning_is_charged_to_a_client_that_disconnects,
    a_non_streaming_response_is_charged_to_a_client_that_disconnects,
    the_token_limit_of_the_hold_is_sent_upstream,
    an_impossible_token_count_is_clamped,
    a_shutdown_settles_the_chats_of_disconnected_clients,
    hidden_reasoning_is_charged_when_the_provider_disconnects,
);

/// A fake that waits before each event, and a gateway with a channel to it.
async fn slow(backend: Backend, provider: Provider, model: &str, ms: u64) -> (Fake, TestGateway) {
    let options = Options {
        delay: Duration::from_millis(ms),
        ..Options::default()
    };
    let fake = start(provider, options).await.unwrap();
    let config = prices(&[model]) + &channel(provider.name(), provider, &fake, "");
    let gateway = Setup::new(backend).config(&config).start().await;
    (fake, gateway)
}

/// Numbers and texts of the record with index `at`, once it exists.
async fn record(gateway: &TestGateway, at: usize, columns: &str) -> Vec<String> {
    until("the record", async || {
        let rows = chat_records(gateway, &format!("outcome, {columns}")).await;
        rows.get(at).filter(|row| !row[0].is_empty()).cloned()
    })
    .await
}

fn numbers(row: &[String]) -> Vec<i64> {
    row.iter().map(|cell| cell.parse().unwrap()).collect()
}

async fn a_client_that_disconnects_before_any_content_pays_for_the_prompt(backend: Backend) {
    let (fake, gateway) = slow(backend, Provider::OpenAi, "gpt-4o", 20).await;
    let client = gateway.funded_client("100").await;
    fake.set(Scenario::Hang);
    for (number, format) in [Format::Chat, Format::Messages].into_iter().enumerate() {
        fake.clear();
        let request =
            ChatRequest::of_text(format, "gpt-4o", true, "tell me a long story").max_tokens(100);
        let path = format.vendor_path("gpt-4o", true);
        let sending = client.open(&path, &request.body);
        let waiting = until("the upstream to receive the request", async || {
            (fake.open_streams() == 1).then_some(())
        });
        tokio::select! {
            reply = sending => panic!("a response: {}", reply.status),
            () = waiting => {}
        }
        let row = record(
            &gateway,
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
    gateway.close().await;
}

/// The client disconnects after the event before the last, and after fewer events; in every format, through every channel.
async fn a_stream_cut_just_before_its_end_costs_as_much_as_the_complete_one(backend: Backend) {
    let all = AllProviders::start(backend, &prices(&all_models())).await;
    let client = all.gateway.funded_client("1000").await;
    let text = "think of the sea, of ships and of the harbour in the morning";
    let mut count = 0;
    for channel in CHANNELS {
        for (model, _) in channel.models {
            for format in Format::ALL {
                let request = ChatRequest::of_text(format, model, true, text).thinking();
                let name = format!("{format:?} {model}");
                let path = format.vendor_path(model, true);
                let mut events = client.open(&path, &request.body).await.events().await.len();
                let complete = record(&all.gateway, count, "settled").await;
                assert_eq!(complete[0], "done", "{name}");
                count += 1;
                while events > 1 {
                    // First, all events but the last; then, in each round, about half of the events of the round before.
                    events = if events > 4 { events - 1 } else { 1 };
                    let mut stream = client.open(&path, &request.body).await;
                    for _ in 0..events {
                        stream.event().await.expect(&name);
                    }
                    drop(stream);
                    let cut = record(&all.gateway, count, "settled").await;
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
    all.gateway.close().await;
}

async fn hidden_reasoning_is_charged_to_a_client_that_disconnects(backend: Backend) {
    let (fake, gateway) = slow(backend, Provider::OpenAi, "gpt-5", 100).await;
    let client = gateway.funded_client("1000").await;
    let text = "think of the sea, of ships and of the harbour in the morning";
    for (number, format) in [Format::Chat, Format::Messages].into_iter().enumerate() {
        let request = ChatRequest::of_text(format, "gpt-5", true, text).thinking();
        let mut stream = client
            .open(&format.vendor_path("gpt-5", true), &request.body)
            .await;
        stream.event().await.expect("a first event");
        let (left, _) = client.balances().await;
        drop(stream);
        let reading = client.balances().await.0;
        assert!(reading <= left, "the hold is kept");
        let row = record(
            &gateway,
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
        assert_eq!(row[1..], expected, "{format:?}");
    }
    // The gateway drops a stream that never ends once the output is more than the hold covers.
    fake.set(Scenario::Endless);
    let request = ChatRequest::of_text(Format::Chat, "gpt-5", true, text)
        .max_tokens(20)
        .thinking();
    let mut stream = client
        .open(&Format::Chat.vendor_path("gpt-5", true), &request.body)
        .await;
    stream.event().await.expect("a first event");
    drop(stream);
    let row = record(&gateway, 2, "estimated, output + reasoning").await;
    let row = numbers(&row[1..]);
    assert!(row[0] == 1 && (20..60).contains(&row[1]), "{row:?}");
    gateway.close().await;
}

async fn a_non_streaming_response_is_charged_to_a_client_that_disconnects(backend: Backend) {
    let (fake, gateway) = slow(backend, Provider::OpenAi, "gpt-4o", 20).await;
    let client = gateway.funded_client("100").await;
    fake.set(Scenario::Drip { ms: 2 });
    let request =
        ChatRequest::of_text(Format::Chat, "gpt-4o", false, "hello there").max_tokens(100);
    let path = Format::Chat.vendor_path("gpt-4o", false);
    let sending = client.post(&path, &request.body);
    let waiting = until("the upstream to respond", async || {
        (fake.open_streams() == 1).then_some(())
    });
    tokio::select! {
        reply = sending => panic!("a response: {}", reply.status),
        () = waiting => {}
    }
    let row = record(
        &gateway,
        0,
        "estimated, input + cached_input + cache_write, output",
    )
    .await;
    assert_eq!(row[0], "client_gone");
    let expected = tokens("hello there", "echo: hello there".len(), false);
    let expected = [0, expected.input, expected.output].map(u64::cast_signed);
    assert_eq!(numbers(&row[1..]), expected);
    gateway.close().await;
}

async fn the_token_limit_of_the_hold_is_sent_upstream(backend: Backend) {
    let config = "[chat]\ndefault_max_tokens = 77\n".to_owned() + &prices(&all_models());
    let all = AllProviders::start(backend, &config).await;
    let limited = all.gateway.funded_client("1000").await;
    let free = all.gateway.user_client("free", &["--unlimited"]).await;
    for (client, has_cap) in [(&limited, true), (&free, false)] {
        for (fake, channel) in all.fakes.iter().zip(CHANNELS) {
            let plain = Format::ALL.into_iter().map(|format| (format, false));
            // With an effort, the limit that the gateway sets for this format would be larger.
            for (format, has_effort) in plain.chain([(Format::Messages, true)]) {
                fake.clear();
                let model = channel.models[0].0;
                let mut request = ChatRequest::of_text(format, model, false, "hi");
                if format == Format::Messages {
                    request.body.as_object_mut().unwrap().remove("max_tokens");
                }
                if has_effort {
                    request.body["output_config"] = json!({"effort": "high"});
                }
                format
                    .send(client, model, false, &request.body)
                    .await
                    .unwrap();
                let sent = fake.requests()[0].body.clone();
                let caps = [
                    "/max_tokens",
                    "/max_completion_tokens",
                    "/max_output_tokens",
                    "/generationConfig/maxOutputTokens",
                ];
                let cap = caps.iter().find_map(|path| sent.pointer(path)?.as_u64());
                if has_cap {
                    assert_eq!(cap, Some(77), "{format:?} {model}: {sent}");
                } else if channel.provider != Provider::Anthropic && format != Format::Messages {
                    assert_eq!(cap, None, "{format:?} {model}: {sent}");
                }
            }
        }
    }
    all.gateway.close().await;
}

async fn an_impossible_token_count_is_clamped(backend: Backend) {
    let all = AllProviders::start(backend, &prices(&all_models())).await;
    let client = all.gateway.user_client("free", &["--unlimited"]).await;
    let mut count = 0;
    for (fake, channel) in all.fakes.iter().zip(CHANNELS) {
        for stream in [false, true] {
            fake.queue(Scenario::AbsurdUsage);
            let model = channel.models[0].0;
            let request = ChatRequest::of_text(Format::Chat, model, stream, "tell me of the sea")
                .max_tokens(300);
            let mut reply = client
                .open(&Format::Chat.vendor_path(model, stream), &request.body)
                .await;
            reply.text().await;
            let columns = "estimated, input + cached_input + cache_write, output + reasoning, settled, clamped";
            let row = numbers(&record(&all.gateway, count, columns).await[1..]);
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
                channel.name
            );
            let clamped = all.gateway.metric(&metric).await;
            assert_eq!(clamped, if stream { 2.0 } else { 1.0 }, "{name}");
        }
    }
    let sums = all.gateway.cli_json(&["audit", "--books"]).await;
    let clamped: i64 = sums
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["clamped"].as_i64().unwrap())
        .sum();
    assert_eq!(clamped, count as i64, "{sums}");
    all.gateway.close().await;
}

async fn hidden_reasoning_is_charged_when_the_provider_disconnects(backend: Backend) {
    let (fake, gateway) = slow(backend, Provider::OpenAi, "gpt-5", 100).await;
    let client = gateway.funded_client("100").await;
    fake.set(Scenario::ResetMidBody { after: 3 });
    let request = ChatRequest::of_text(Format::Chat, "gpt-5", true, "think of the sea")
        .max_tokens(1000)
        .thinking();
    let path = Format::Chat.vendor_path("gpt-5", true);
    client.open(&path, &request.body).await.text().await;
    let row = record(&gateway, 0, "estimated, reasoning").await;
    assert_eq!(row[0], "cut");
    let row = numbers(&row[1..]);
    assert!(row[0] == 1 && row[1] > 10, "{row:?}");
    gateway.close().await;
}

async fn a_shutdown_settles_the_chats_of_disconnected_clients(backend: Backend) {
    let (fake, mut gateway) = slow(backend, Provider::OpenAi, "gpt-5", 20).await;
    let client = gateway.funded_client("100").await;
    fake.set(Scenario::Stall { after: 3 });
    let request = ChatRequest::of_text(Format::Chat, "gpt-5", true, "think of the sea")
        .max_tokens(1000)
        .thinking();
    let mut stream = client
        .open(&Format::Chat.vendor_path("gpt-5", true), &request.body)
        .await;
    stream.event().await.expect("a first event");
    drop(stream);
    gateway.terminate().await;
    let row = record(&gateway, 0, "estimated, input, output + reasoning").await;
    assert_eq!(row[0], "client_gone");
    let row = numbers(&row[1..]);
    assert!(row[0] == 1 && row[1] > 10 && row[2] > 10, "{row:?}");
    gateway.close().await;
}
