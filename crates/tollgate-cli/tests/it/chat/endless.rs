//! Responses that do not end or are far too large, and URLs that a server on a private network must not get.

use std::time::Duration;

use tollgate_fakes::{Options, Provider, Scenario, start};

use super::charges::prices;
use super::format::Format;
use super::providers::{CHANNELS, all_models, channel, chat_records};
use super::request::ChatRequest;
use crate::harness::*;

on_sqlite!(
    endless_responses_are_cut_off_and_not_retried,
    an_oversized_response_is_cut_off_and_not_retried,
    urls_are_not_forwarded_to_a_server_on_a_private_network,
);

const MAX_TOKENS: u64 = 20;
/// One event that is far larger than the responses of all models that are tested.
const HUGE: Scenario = Scenario::HugeEvent { bytes: 200_000 };

/// A gateway with these `limits`, and a fake of each API that waits before each event.
async fn all_fakes(
    backend: Backend,
    limits: &str,
    delay: Duration,
) -> (TestGateway, Vec<tollgate_fakes::Fake>) {
    let options = Options {
        delay,
        ..Options::default()
    };
    let mut config = limits.to_owned() + &prices(&all_models());
    let mut fakes = Vec::new();
    for one in CHANNELS {
        let fake = start(one.provider, options.clone()).await.unwrap();
        let (model, upstream) = one.models[usize::from(one.name == "openai-responses")];
        let more = format!(
            "models = [{{ name = \"{model}\", upstream = \"{upstream}\" }}]\n{}",
            one.more
        );
        config += &channel(one.name, one.provider, &fake, &more);
        fakes.push(fake);
    }
    let gateway = Setup::new(backend).config(&config).start().await;
    (gateway, fakes)
}

async fn endless_responses_are_cut_off_and_not_retried(backend: Backend) {
    let limits = "[time_limits]\nchat_first_byte_s = 1\nchat_idle_s = 1\n";
    let (gateway, fakes) = all_fakes(backend, limits, Duration::from_millis(1)).await;
    let client = gateway.user_client("free", &["--unlimited"]).await;
    let mut chats = 0;
    for (number, (fake, one)) in fakes.iter().zip(CHANNELS).enumerate() {
        let (model, _) = one.models[usize::from(one.name == "openai-responses")];
        // The fake's own format, and one that the gateway translates.
        for format in [Format::ALL[number], Format::ALL[(number + 1) % 4]] {
            for (scenario, outcome) in [
                (Scenario::Pings, "TimedOut"),
                (Scenario::Endless, "TooLarge"),
                (HUGE, "TooLarge"),
            ] {
                // With reasoning, the gateway accepts two megabytes of text: too many pieces for a test.
                if scenario != Scenario::Pings && number > 0 {
                    continue;
                }
                fake.clear();
                fake.set(scenario.clone());
                let name = format!("{scenario:?} {format:?} {model}");
                let request =
                    ChatRequest::of_text(format, model, true, "hi").max_tokens(MAX_TOKENS);
                let path = format.vendor_path(model, true);
                let mut response = client.open(&path, &request.body).await;
                let text = response.text().await;
                assert!(text.contains("error"), "{name}: {text}");
                assert_eq!(fake.requests().len(), 1, "{name}");
                chats += 1;
                let rows = until("the record", async || {
                    let rows = chat_records(&gateway, "outcome, attempts, output").await;
                    (rows.len() == chats).then_some(rows)
                })
                .await;
                let row = &rows[chats - 1];
                assert!(row[1].contains(outcome), "{name}: {row:?}");
                let output: u64 = row[2].parse().unwrap();
                assert!(output <= MAX_TOKENS, "{name}: {row:?}");
                fake.set(Scenario::Normal);
                let request =
                    ChatRequest::of_text(format, model, false, "hi").max_tokens(MAX_TOKENS);
                format
                    .send(&client, model, false, &request.body)
                    .await
                    .unwrap();
                chats += 1;
            }
        }
    }
    gateway.close().await;
}

async fn an_oversized_response_is_cut_off_and_not_retried(backend: Backend) {
    let (gateway, fakes) = all_fakes(backend, "", Duration::ZERO).await;
    let client = gateway.user_client("free", &["--unlimited"]).await;
    let (fake, model) = (&fakes[0], CHANNELS[0].models[0].0);
    fake.queue(Scenario::HugeEvent { bytes: 65 << 20 });
    let request = ChatRequest::of_text(Format::Chat, model, false, "hi");
    let path = Format::Chat.vendor_path(model, false);
    let reply = client.post(&path, &request.body).await.expect(502).json();
    let message = reply["error"]["message"].as_str().unwrap();
    assert!(message.contains("larger than 64 MB"), "{message}");
    assert_eq!(fake.requests().len(), 1);
    gateway.close().await;
}

async fn urls_are_not_forwarded_to_a_server_on_a_private_network(backend: Backend) {
    let secret = "http://169.254.169.254/latest/meta-data";
    let (gateway, fakes) = all_fakes(backend, "", Duration::ZERO).await;
    let client = gateway.user_client("free", &["--unlimited"]).await;
    for (fake, one) in fakes.iter().zip(CHANNELS) {
        let (model, _) = one.models[usize::from(one.name == "openai-responses")];
        for format in Format::ALL {
            for url in [secret, "file:///etc/passwd", "gs://bucket/object"] {
                let request = ChatRequest::of_text(format, model, false, "see").image_url(url);
                let path = format.vendor_path(model, false);
                let body = request.body.to_string();
                // A JSON text may have its slashes escaped.
                for body in [body.replace("://", ":\\/\\/"), body] {
                    let headers = [("content-type", "application/json")];
                    let reply = client.send_with("POST", &path, &headers, body).await;
                    assert_eq!(reply.status, 400, "{format:?} {model} {url}");
                }
            }
        }
        assert!(fake.requests().is_empty(), "{model}");
    }
    gateway.close().await;
    // With `fetch_urls = false` the operator states that this server checks URLs.
    let fake = start(Provider::OpenAi, Options::default()).await.unwrap();
    let more = "apis = [\"chat-completions\"]\nfetch_urls = false";
    let config = channel("own", Provider::OpenAi, &fake, more);
    let gateway = Setup::new(backend).config(&config).start().await;
    let client = gateway.user_client("free", &["--unlimited"]).await;
    let request = ChatRequest::of_text(Format::Chat, "gpt-4o", false, "see").image_url(secret);
    let path = Format::Chat.vendor_path("gpt-4o", false);
    client.post(&path, &request.body).await.expect(200);
    assert!(fake.requests()[0].body.to_string().contains(secret));
    gateway.close().await;
}
