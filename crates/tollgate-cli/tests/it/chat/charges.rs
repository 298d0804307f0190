//! What chats cost: exact to the billionth, whatever the upstream reports, and never more than the balance.

use futures_util::future::join_all;
use tollgate_fakes::{Provider, Scenario, Tokens, tokens};

use super::format::Format;
use super::providers::{AllProviders, CHANNELS, all_models, chat_records};
use super::request::ChatRequest;
use crate::harness::*;

on_both!(
    every_token_is_charged_at_its_price,
    a_hold_is_subtracted_from_the_balance_during_the_chat,
    concurrent_chats_never_overdraw,
    chats_without_balance_are_rejected_before_the_upstream_call,
    missing_and_negative_token_counts_are_estimated,
);

/// Prices of a token in billionths.
const INPUT: u64 = 1_000_003;
const CACHED: u64 = 100_019;
const WRITTEN: u64 = 3_000_017;
const OUTPUT: u64 = 10_000_019;
const REASONING: u64 = 20_000_003;

/// The prices of these models.
pub(super) fn prices(models: &[&str]) -> String {
    let names = [
        "input",
        "cached_input",
        "cache_write",
        "output",
        "reasoning",
    ];
    let prices = [INPUT, CACHED, WRITTEN, OUTPUT, REASONING];
    let lines = names.iter().zip(prices);
    let lines = lines.map(|(name, price)| format!("{name}_per_million = {}\n", price as f64 / 1e3));
    let lines: String = lines.collect();
    let one = |model: &&str| format!("[price.\"{model}\"]\n{lines}");
    models.iter().map(one).collect()
}

/// The cost of these tokens, in billionths.
pub(super) fn cost(tokens: Tokens, wrote: bool) -> u64 {
    let written = if wrote { tokens.written } else { 0 };
    (tokens.input - tokens.cached - written) * INPUT
        + tokens.cached * CACHED
        + written * WRITTEN
        + (tokens.output - tokens.reasoning) * OUTPUT
        + tokens.reasoning * REASONING
}

fn billionths(amount: f64) -> u64 {
    (amount * 1e9).round() as u64
}

async fn every_token_is_charged_at_its_price(backend: Backend) {
    let all = AllProviders::start(backend, &prices(&all_models())).await;
    let client = all.gateway.funded_client("1000").await;
    let mut spent = 0;
    let text = "think of the sea";
    let models = CHANNELS.iter().flat_map(|channel| {
        let models = channel.models.iter();
        models.map(move |model| (channel.provider, *model))
    });
    for (provider, (model, upstream)) in models {
        let thinks = upstream != "gpt-4o";
        for (format, stream) in Format::all_and_streamed() {
            eprintln!("{format:?} {model} {stream}");
            let mut request = ChatRequest::of_text(format, model, stream, text);
            if thinks {
                request = request.thinking();
            }
            let reply = format.send(&client, model, stream, &request.body).await;
            let reply = reply.unwrap();
            let counted = tokens(text, reply.text.len(), thinks);
            let usage = (reply.usage[0], reply.usage[2]);
            assert_eq!(usage, (counted.input, counted.output));
            spent += cost(counted, provider != Provider::Gemini);
            let (left, used) = client.balances().await;
            assert_eq!(billionths(used), spent);
            assert_eq!(billionths(left), 1_000_000_000_000 - spent);
        }
    }
    let columns = "estimated, outcome, attempts, COALESCE(forgiven, 0)";
    let rows = chat_records(&all.gateway, columns).await;
    let expected = ["0", "done", "[]", "0"];
    assert_eq!(rows, vec![expected; all_models().len() * 8]);
    all.gateway.close().await;
}

async fn a_hold_is_subtracted_from_the_balance_during_the_chat(backend: Backend) {
    let setup = Setup::new(backend).config(&prices(&["gpt-5"]));
    let gateway = setup.start().await;
    gateway.user("account", &["--balance", "10"]).await;
    let client = gateway.key("account", &["--quota", "10"]).await;
    let text = "[[sandbox:delay=1200]] hello";
    let request = ChatRequest::of_text(Format::Chat, "gpt-5", false, text).max_tokens(100);
    let path = Format::Chat.vendor_path("gpt-5", false);
    let hold = until("the hold", async || {
        let (left, used) = client.balances().await;
        assert_eq!(used, 0.0, "nothing is settled yet");
        (left < 10.0).then_some(left)
    });
    let hold = async {
        let left = hold.await;
        assert_eq!(client.key_balances().await.0, left, "of the quota too");
        left
    };
    let (reply, left) = tokio::join!(client.post(&path, &request.body), hold);
    let worst_case = 100.0 * REASONING as f64 / 1e9;
    assert!(10.0 - left >= worst_case, "{left}");
    let reply = Format::Chat.parse(&reply.expect(200).json());
    let (left, used) = client.balances().await;
    let cost = reply.usage[0] * INPUT + reply.usage[2] * OUTPUT;
    assert_eq!(billionths(used), cost, "{reply:?}");
    assert_eq!(billionths(left), 10_000_000_000 - cost);
    assert_eq!(client.key_balances().await.0, left);
    gateway.close().await;
}

async fn concurrent_chats_never_overdraw(backend: Backend) {
    let all = AllProviders::start(backend, &prices(&all_models())).await;
    // The balance is enough for some of the chats.
    let client = all.gateway.funded_client("6").await;
    let models = all_models();
    // Sends a chat; returns whether the balance covered it.
    let chat = async |number: usize| {
        let format = Format::ALL[number % 4];
        let stream = number.is_multiple_of(3);
        let model = models[number % models.len()];
        let request = ChatRequest::of_text(format, model, stream, "a b c").max_tokens(20);
        let reply = format.send(&client, model, stream, &request.body).await;
        match reply {
            Ok(_) => true,
            Err((402, _)) => false,
            Err(other) => panic!("{format:?} {model}: {other:?}"),
        }
    };
    let paid = join_all((0..120).map(chat)).await;
    let paid = paid.iter().filter(|paid| **paid).count();
    assert!(paid > 0, "some can be paid");
    let (left, used) = client.balances().await;
    assert!(left >= 0.0);
    assert_eq!(billionths(left) + billionths(used), 6_000_000_000);
    let rows = chat_records(&all.gateway, "outcome").await;
    assert_eq!(rows.len(), paid, "rejections are not recorded");
    // Sends chats one after the other until the balance is too small for another.
    let mut last = 0;
    while chat(last).await {
        last += 1;
    }
    let (left, _) = client.balances().await;
    assert!((0.0..2.0).contains(&left), "{left}");
    all.gateway.close().await;
}

async fn chats_without_balance_are_rejected_before_the_upstream_call(backend: Backend) {
    let all = AllProviders::start(backend, &prices(&all_models())).await;
    let poor = all.gateway.funded_client("0.001").await;
    all.gateway.user("rich", &[]).await;
    let bound = all.gateway.key("rich", &["--quota", "0.001"]).await;
    for (format, stream) in Format::all_and_streamed() {
        let request = ChatRequest::of_text(format, "gpt-5", stream, "hi");
        let path = format.enveloped_path("gpt-5", stream);
        for client in [&poor, &bound] {
            let reply = client.post(&path, &request.body).await;
            let body = reply.expect(402).json();
            format.error(402, &body);
            let kind = match format {
                Format::Chat | Format::Responses => "payment_required",
                Format::Messages => "invalid_request_error",
                Format::Generate => "PAYMENT_REQUIRED",
            };
            let word = [&body["error"]["type"], &body["error"]["status"]];
            assert!(word.iter().any(|word| *word == kind), "{body}");
        }
    }
    let requests = all.fakes.iter().map(|fake| fake.requests().len());
    assert_eq!(requests.sum::<usize>(), 0, "no upstream was called");
    all.gateway.close().await;
}

/// If the token counts that the upstream reports are possible, they are used. Otherwise the gateway counts, and marks the charge as an estimate.
async fn missing_and_negative_token_counts_are_estimated(backend: Backend) {
    let all = AllProviders::start(backend, &prices(&all_models())).await;
    let client = all.gateway.funded_client("1000").await;
    let text = "tell me of the sea, of ships and of the harbour in the morning";
    let mut chats = 0;
    for scenario in [Scenario::NoUsage, Scenario::NegativeUsage] {
        for (fake, channel) in all.fakes.iter().zip(CHANNELS) {
            for (format, stream) in Format::all_and_streamed() {
                let (model, _) = channel.models[0];
                eprintln!("{scenario:?} {format:?} {model} {stream}");
                fake.queue(scenario.clone());
                let request = ChatRequest::of_text(format, model, stream, text).max_tokens(300);
                let path = format.vendor_path(model, stream);
                let mut reply = client.open(&path, &request.body).await;
                let body = reply.text().await;
                assert_eq!(reply.status, 200, "{body}");
                chats += 1;
            }
        }
    }
    let columns = "input, output + reasoning, estimated, settled";
    let rows = chat_records(&all.gateway, columns).await;
    assert_eq!(rows.len(), chats);
    for row in rows {
        let row: Vec<i64> = row.iter().map(|n| n.parse().unwrap()).collect();
        let plausible = (10..200).contains(&row[0]) && (10..100).contains(&row[1]);
        assert!(plausible && row[2] == 1 && row[3] > 0, "{row:?}");
    }
    all.gateway.close().await;
}
