//! What chats cost: to the billionth, whatever the upstream counts, and never more than there is.

use futures_util::future::join_all;
use tollgate_fakes::{Provider, Scenario, Tokens, tokens};

use super::site::{Site, WAYS, payer, records};
use super::talk::Talk;
use super::wire::Wire;
use crate::gate::{Backend, Setup, on_both, on_one, until};

on_both!(
    every_token_has_its_price,
    a_hold_is_seen_while_it_lasts,
    a_storm_never_overdraws,
);
on_one!(who_cannot_pay_is_refused_first, counts_that_cannot_be_true);

/// Prices in billionths of a token's sort.
const INPUT: u64 = 1_000_003;
const CACHED: u64 = 100_019;
const WRITTEN: u64 = 3_000_017;
const OUTPUT: u64 = 10_000_019;
const REASONING: u64 = 20_000_003;

/// The prices of these models.
pub(super) fn prices(models: &[&str]) -> String {
    let per_million = |billionths: u64| billionths as f64 / 1000.0;
    let one = |model: &&str| {
        format!(
            "[price.\"{model}\"]\ninput_per_million = {}\ncached_input_per_million = {}\n\
             cache_write_per_million = {}\noutput_per_million = {}\nreasoning_per_million = {}\n",
            per_million(INPUT),
            per_million(CACHED),
            per_million(WRITTEN),
            per_million(OUTPUT),
            per_million(REASONING),
        )
    };
    models.iter().map(one).collect()
}

/// Every model that a site's ways serve.
pub(super) fn all_models() -> Vec<&'static str> {
    let models = WAYS.iter().flat_map(|way| way.models);
    models.map(|(name, _)| *name).collect()
}

/// In billionths.
fn cost(tokens: Tokens, wrote: bool) -> u64 {
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

async fn every_token_has_its_price(backend: Backend) {
    let site = Site::start(backend, &prices(&all_models())).await;
    let client = payer(&site.gate, "1000").await;
    let mut spent = 0;
    for way in WAYS {
        for (model, upstream) in way.models {
            let thinks = *upstream != "gpt-4o";
            for (wire, stream) in Wire::ALL
                .into_iter()
                .flat_map(|wire| [(wire, false), (wire, true)])
            {
                let text = "think of the sea";
                let mut talk = Talk::saying(wire, model, stream, text);
                if thinks {
                    talk = talk.thinking();
                }
                let name = format!("{wire:?} {model} {stream}");
                let said = wire
                    .ask(&client, model, stream, &talk.body)
                    .await
                    .expect(&name);
                let counted = tokens(text, said.text.len(), thinks);
                assert_eq!(
                    (said.usage[0], said.usage[2]),
                    (counted.input, counted.output),
                    "{name}"
                );
                spent += cost(counted, way.provider != Provider::Gemini);
                let (left, used) = client.purse().await;
                assert_eq!(billionths(used), spent, "{name}");
                assert_eq!(billionths(left), 1_000_000_000_000 - spent, "{name}");
            }
        }
    }
    let rows = records(&site.gate, "estimated, outcome, forgiven, attempts").await;
    assert_eq!(rows.len(), all_models().len() * 8);
    for row in rows {
        assert_eq!(row[..2], ["0", "done"]);
        assert!(matches!(row[2].as_str(), "" | "0"), "{row:?}");
        assert_eq!(row[3], "[]");
    }
    site.gate.close().await;
}

async fn a_hold_is_seen_while_it_lasts(backend: Backend) {
    let gate = Setup::new(backend)
        .config(&prices(&["gpt-5"]))
        .start()
        .await;
    payer(&gate, "10").await;
    let client = gate.key("payer", &["--quota", "10"]).await;
    let of_key = async || client.balance().await["remain_balance"].as_f64().unwrap();
    let talk = Talk::saying(Wire::Chat, "gpt-5", false, "[[sandbox:delay=1200]] hello").cap(100);
    let path = Wire::Chat.bare_path("gpt-5", false);
    let asking = client.post(&path, &talk.body);
    let looking = until("the hold", async || {
        let (left, used) = client.purse().await;
        assert_eq!(used, 0.0, "nothing is settled yet");
        if left < 10.0 {
            assert_eq!(of_key().await, left, "of the quota too");
        }
        (left < 10.0).then_some(left)
    });
    let (reply, left) = tokio::join!(asking, looking);
    let said = Wire::Chat.said(&reply.expect(200).json());
    assert!(
        10.0 - left >= 100.0 * REASONING as f64 / 1e9,
        "the worst case is held: {left}"
    );
    let (left, used) = client.purse().await;
    let cost = said.usage[0] * INPUT + said.usage[2] * OUTPUT;
    assert_eq!(billionths(used), cost, "{said:?}");
    assert_eq!(billionths(left), 10_000_000_000 - cost);
    assert_eq!(of_key().await, left);
    gate.close().await;
}

async fn a_storm_never_overdraws(backend: Backend) {
    let site = Site::start(backend, &prices(&all_models())).await;
    // Enough for some of them.
    let client = payer(&site.gate, "6").await;
    let ask = async |number: usize| {
        let wire = Wire::ALL[number % 4];
        let stream = number.is_multiple_of(3);
        let models = all_models();
        let model = models[number % models.len()];
        let talk = Talk::saying(wire, model, stream, "a b c").cap(20);
        match wire.ask(&client, model, stream, &talk.body).await {
            Ok(_) => true,
            Err((402, _)) => false,
            Err(other) => panic!("{wire:?} {model}: {other:?}"),
        }
    };
    let answered = join_all((0..120).map(ask)).await;
    let paid = answered.iter().filter(|answered| **answered).count();
    assert!(paid > 0, "some can be paid");
    let (left, used) = client.purse().await;
    assert!(left >= 0.0);
    assert_eq!(billionths(left) + billionths(used), 6_000_000_000);
    let rows = records(&site.gate, "outcome, settled").await;
    assert_eq!(rows.len(), paid, "what was refused is not recorded");
    // One after the other until nothing is left for another.
    let mut last = 0;
    while ask(last).await {
        last += 1;
    }
    let (left, _) = client.purse().await;
    assert!((0.0..2.0).contains(&left), "{left}");
    site.gate.close().await;
}

async fn who_cannot_pay_is_refused_first(backend: Backend) {
    let site = Site::start(backend, &prices(&all_models())).await;
    let poor = payer(&site.gate, "0.001").await;
    site.gate.user("rich", &[]).await;
    let bound = site.gate.key("rich", &["--quota", "0.001"]).await;
    for (wire, kind, status) in [
        (Wire::Chat, "payment_required", "/error/type"),
        (Wire::Responses, "payment_required", "/error/type"),
        (Wire::Messages, "invalid_request_error", "/error/type"),
        (Wire::Generate, "PAYMENT_REQUIRED", "/error/status"),
    ] {
        for client in [&poor, &bound] {
            for stream in [false, true] {
                let talk = Talk::saying(wire, "gpt-5", stream, "hi");
                let reply = client
                    .post(&wire.spec_path("gpt-5", stream), &talk.body)
                    .await;
                let body = reply.expect(402).json();
                wire.error(402, &body);
                assert_eq!(body.pointer(status).unwrap(), kind, "{body}");
            }
        }
    }
    for fake in &site.fakes {
        assert!(fake.requests().is_empty(), "nobody was asked");
    }
    site.gate.close().await;
}

/// What the upstream says of its tokens is taken if it can be true. Else the gateway counts, and says so.
async fn counts_that_cannot_be_true(backend: Backend) {
    let site = Site::start(backend, &prices(&all_models())).await;
    let client = payer(&site.gate, "1000").await;
    let text = "tell me of the sea, of ships and of the harbour in the morning";
    let mut cases = 0;
    for behaviour in [
        Scenario::NoUsage,
        Scenario::NegativeUsage,
        Scenario::AbsurdUsage,
    ] {
        for (at, way) in WAYS.iter().enumerate() {
            for (wire, stream) in Wire::ALL
                .into_iter()
                .flat_map(|wire| [(wire, false), (wire, true)])
            {
                let model = way.models[0].0;
                site.fakes[at].queue(behaviour.clone());
                let name = format!("{behaviour:?} {wire:?} {model} {stream}");
                let talk = Talk::saying(wire, model, stream, text).cap(300);
                let path = wire.bare_path(model, stream);
                let mut reply = client.open(&path, &talk.body).await;
                let said = reply.text().await;
                assert_eq!(reply.status, 200, "{name}: {said}");
                cases += 1;
                let rows =
                    records(&site.gate, "input, output, reasoning, estimated, settled").await;
                assert_eq!(rows.len(), cases, "{name}");
                let row: Vec<i64> = rows[cases - 1].iter().map(|n| n.parse().unwrap()).collect();
                assert!((10..200).contains(&row[0]), "{name}: input {row:?}");
                assert!(
                    (10..100).contains(&(row[1] + row[2])),
                    "{name}: output {row:?}"
                );
                assert_eq!(row[3], 1, "{name}: marked as an estimate");
                assert!(row[4] > 0, "{name}");
            }
        }
    }
    site.gate.close().await;
}
