//! Every client format against every sort of upstream, whole and streamed. The fakes refuse what the real ones refuse, so
//! an answer says that the request was in order.

use axum::Router;
use axum::routing::get;
use base64::Engine as _;
use serde_json::Value;

use super::site::{Site, WAYS};
use super::talk::{PNG, PNG_BYTES, TOOL, Talk};
use super::wire::{Said, Wire};
use crate::gate::{Backend, Client, on_one};

on_one!(
    words_and_turns,
    tools_and_their_results,
    pictures,
    caps_stops_and_schemas,
    thinking_with_tools,
    what_is_left_out_is_told,
);

/// One client's format and one model, whole or streamed.
struct Case {
    wire: Wire,
    model: &'static str,
    upstream: &'static str,
    fake: usize,
    stream: bool,
}

impl Case {
    fn talk(&self) -> Talk {
        Talk::new(self.wire, self.model, self.stream)
    }

    fn name(&self) -> String {
        format!(
            "{:?} -> {} stream={}",
            self.wire, self.upstream, self.stream
        )
    }
}

/// Every client format, model and manner.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for wire in Wire::ALL {
        for (fake, way) in WAYS.iter().enumerate() {
            for (model, upstream) in way.models {
                for stream in [false, true] {
                    cases.push(Case {
                        wire,
                        model,
                        upstream,
                        fake,
                        stream,
                    });
                }
            }
        }
    }
    cases
}

async fn ask(site: &Site, client: &Client, case: &Case, talk: &Talk) -> Said {
    let said = case
        .wire
        .ask(client, case.model, case.stream, &talk.body)
        .await;
    said.unwrap_or_else(|error| {
        let seen = site.fakes[case.fake].requests();
        let seen = seen
            .last()
            .map(|seen| (seen.rejected_by, seen.body.to_string()));
        panic!(
            "{}: {error:?}\nasked {}\nseen {seen:?}",
            case.name(),
            talk.body
        )
    })
}

async fn words_and_turns(backend: Backend) {
    let site = Site::start(backend, "").await;
    let client = site.gate.somebody().await;
    for case in cases() {
        let talk = case
            .talk()
            .system("Be brief.")
            .user("hi")
            .model("hello")
            .user("how are \"you\", é?");
        let said = ask(&site, &client, &case, &talk).await;
        assert_eq!(said.text, "echo: how are \"you\", é?", "{}", case.name());
        let [input, cached, output, _] = said.usage;
        let expected = tollgate_fakes::tokens("how are \"you\", é?", said.text.len(), false);
        assert_eq!(
            (input, cached, output),
            (expected.input, expected.cached, expected.output),
            "{}",
            case.name()
        );
        let seen = site.fakes[case.fake].requests();
        assert_eq!(seen.len(), 1, "{}: asked once", case.name());
        let body = seen[0].body.to_string();
        assert!(
            body.contains("Be brief.") && body.contains("hello"),
            "{body}"
        );
        site.fakes[case.fake].clear();
    }
    site.gate.close().await;
}

async fn tools_and_their_results(backend: Backend) {
    let site = Site::start(backend, "").await;
    let client = site.gate.somebody().await;
    for case in cases() {
        let name = case.name();
        let talk = case.talk().tools().forced().user("what is the weather?");
        let forced = ask(&site, &client, &case, &talk).await;
        assert_eq!(forced.calls.len(), 1, "{name}: {forced:?}");
        assert_eq!(forced.calls[0].name, TOOL, "{name}");

        let talk = case.talk().tools().user(&format!("call tool {TOOL} twice"));
        let said = ask(&site, &client, &case, &talk).await;
        let names: Vec<&str> = said.calls.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(names, [TOOL, TOOL], "{name}: {said:?}");
        assert_eq!(said.calls[0].arguments["city"], "city \"é\" 1", "{name}");
        assert_eq!(said.calls[1].arguments["city"], "city \"é\" 2", "{name}");
        let ended = match case.wire {
            Wire::Chat => "tool_calls",
            Wire::Responses => "completed",
            Wire::Messages => "tool_use",
            Wire::Generate => "STOP",
        };
        assert_eq!(said.end, ended, "{name}");

        let talk = talk.turn(&said).results(&said.calls, "sunny");
        let after = ask(&site, &client, &case, &talk).await;
        assert_eq!(after.text, "echo: sunny sunny", "{name}");
        let talk = talk.turn(&after).user("thanks");
        assert_eq!(
            ask(&site, &client, &case, &talk).await.text,
            "echo: thanks",
            "{name}"
        );
    }
    site.gate.close().await;
}

/// A server of one picture; the URL of it.
async fn gallery() -> String {
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(PNG)
        .unwrap();
    let routes = Router::new().route("/pixel.png", get(move || async move { bytes }));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/pixel.png", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    url
}

async fn pictures(backend: Backend) {
    let config = "media.allow_private_urls = [\"127.0.0.0/8\"]\n";
    let site = Site::start(backend, config).await;
    let client = site.gate.somebody().await;
    let url = gallery().await;
    for case in cases() {
        let name = case.name();
        let said = ask(&site, &client, &case, &case.talk().picture("see", None)).await;
        assert_eq!(
            said.text,
            format!("echo: see [image/png, {PNG_BYTES} bytes]"),
            "{name}"
        );
        let said = ask(
            &site,
            &client,
            &case,
            &case.talk().picture("see", Some(&url)),
        )
        .await;
        let fetched = said.text == format!("echo: see [image/png, {PNG_BYTES} bytes]");
        assert!(fetched || said.text.contains(&url), "{name}: {}", said.text);
    }
    site.gate.close().await;
}

async fn caps_stops_and_schemas(backend: Backend) {
    let site = Site::start(backend, "").await;
    let client = site.gate.somebody().await;
    for case in cases() {
        let name = case.name();
        let long = "a b c d ".repeat(100);
        let said = ask(&site, &client, &case, &case.talk().cap(16).user(&long)).await;
        assert!(
            said.text.len() <= 64 && !said.text.is_empty(),
            "{name}: {}",
            said.text
        );
        let ended = match case.wire {
            Wire::Chat => "length",
            Wire::Responses => "incomplete",
            Wire::Messages => "max_tokens",
            Wire::Generate => "MAX_TOKENS",
        };
        assert_eq!(said.end, ended, "{name}");

        let stops = case.wire != Wire::Responses && takes_stop(case.upstream);
        if stops {
            let said = ask(
                &site,
                &client,
                &case,
                &case.talk().stop("END").user("one END two"),
            )
            .await;
            assert_eq!(said.text, "echo: one ", "{name}");
            let ended = match case.wire {
                Wire::Messages if case.upstream.starts_with("claude") => "stop_sequence",
                Wire::Messages => said.end.as_str(),
                Wire::Generate => "STOP",
                _ => "stop",
            };
            assert_eq!(said.end, ended, "{name}");
        }

        let said = ask(
            &site,
            &client,
            &case,
            &case.talk().schema().user("which town?"),
        )
        .await;
        let answer: Value =
            serde_json::from_str(&said.text).unwrap_or_else(|e| panic!("{name}: {e} {said:?}"));
        assert!(
            answer["town"].is_string() && answer["count"].is_i64(),
            "{name}: {answer}"
        );
        assert!(said.calls.is_empty(), "{name}");
    }
    site.gate.close().await;
}

/// Whether the upstream, and the format it is asked in, know stop sequences.
fn takes_stop(upstream: &str) -> bool {
    !upstream.starts_with("gpt")
}

/// The proofs of thinking come back to the vendor, also through formats that have no place for them: without them
/// these fakes refuse.
async fn thinking_with_tools(backend: Backend) {
    let site = Site::start(backend, "").await;
    let client = site.gate.somebody().await;
    for case in cases().into_iter().filter(|case| case.upstream != "gpt-4o") {
        let name = case.name();
        let talk = case
            .talk()
            .thinking()
            .tools()
            .user(&format!("think, then call tool {TOOL}"));
        let said = ask(&site, &client, &case, &talk).await;
        assert_eq!(said.calls.len(), 1, "{name}: {said:?}");
        assert!(said.usage[3] > 0, "{name}: reasoning is counted: {said:?}");
        let shown = matches!(
            case.upstream,
            "claude-sonnet-4-5" | "gemini-2.5-flash" | "gpt-5-mini"
        );
        if shown && case.wire != Wire::Chat {
            assert!(said.thought.starts_with("I am asked"), "{name}: {said:?}");
        }
        let talk = talk.turn(&said).results(&said.calls, "rain");
        let after = ask(&site, &client, &case, &talk).await;
        assert_eq!(after.text, "echo: rain", "{name}");
        let talk = talk.turn(&after).user("and now think again");
        let after = ask(&site, &client, &case, &talk).await;
        assert_eq!(after.text, "echo: and now think again", "{name}");
    }
    site.gate.close().await;
}

async fn what_is_left_out_is_told(backend: Backend) {
    let site = Site::start(backend, "").await;
    let client = site.gate.somebody().await;
    let mut talk = Talk::saying(Wire::Chat, "claude-sonnet-4-5-20250929", false, "hi");
    talk.body["frequency_penalty"] = 0.5.into();
    talk.body["seed"] = 7.into();
    let path = Wire::Chat.bare_path("", false);
    let reply = client.post(&path, &talk.body).await.expect(200);
    let dropped = reply.header("x-tollgate-dropped");
    assert!(
        dropped.contains("frequency_penalty") && dropped.contains("seed"),
        "{dropped}"
    );
    let strict = [("x-tollgate-strict", "true")];
    let reply = client
        .post_with(&path, &talk.body, &strict)
        .await
        .expect(400);
    let message = Wire::Chat.error(400, &reply.json());
    assert!(
        message.contains("`frequency_penalty`") || message.contains("`seed`"),
        "{message}"
    );
    // Nothing is left out where nothing has to be.
    let plain = Talk::saying(Wire::Chat, "claude-sonnet-4-5-20250929", false, "hi");
    let reply = client
        .post_with(&path, &plain.body, &strict)
        .await
        .expect(200);
    assert_eq!(reply.header("x-tollgate-dropped"), "");
    // What would change the reply is refused in any case, and by the name of its field.
    talk.body["n"] = 2.into();
    let reply = client.post(&path, &talk.body).await.expect(400);
    assert_eq!(reply.json()["error"]["param"], "n", "{}", reply.text());
    site.gate.close().await;
}
