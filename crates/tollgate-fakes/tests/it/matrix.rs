//! The same directives on every provider of media: faults, connections that break, answers that get
//! lost, results that are not there.

use std::time::Duration;

use serde_json::{Value, json};
use tollgate_fakes::{Options, Provider};

use crate::client::is_reset;
use crate::media::Site;

/// One way to ask for media.
struct Way {
    provider: Provider,
    header: (&'static str, &'static str),
    path: &'static str,
    body: fn(&str) -> Value,
    /// The status of an answer that is good.
    good: u16,
    /// Whether a task is begun.
    begins: bool,
    /// Statuses without credit, of too many requests, of a bad key, of an unknown model.
    faults: [u16; 4],
    /// Where an error says what it is.
    error: &'static str,
}

const BEARER: (&str, &str) = ("authorization", "Bearer k");
const VEO: &str =
    "/v1/projects/p/locations/l/publishers/google/models/veo-3.1-generate-001:predictLongRunning";

const WAYS: &[Way] = &[
    Way {
        provider: Provider::OpenAi,
        header: BEARER,
        path: "/v1/images/generations",
        body: |text| json!({"model": "gpt-image-2", "prompt": text}),
        good: 200,
        begins: false,
        faults: [429, 429, 401, 404],
        error: "/error/message",
    },
    Way {
        provider: Provider::OpenAi,
        header: BEARER,
        path: "/v1/videos",
        body: |text| json!({"model": "sora-2", "prompt": text}),
        good: 200,
        begins: true,
        faults: [429, 429, 401, 404],
        error: "/error/message",
    },
    Way {
        provider: Provider::OpenAi,
        header: BEARER,
        path: "/v1/audio/speech",
        body: |text| json!({"model": "gpt-4o-mini-tts", "input": text, "voice": "alloy"}),
        good: 200,
        begins: false,
        faults: [429, 429, 401, 404],
        error: "/error/message",
    },
    Way {
        provider: Provider::Gemini,
        header: ("x-goog-api-key", "k"),
        path: "/v1beta/models/gemini-3-pro-image:generateContent",
        body: |text| json!({"contents": [{"parts": [{"text": text}]}]}),
        good: 200,
        begins: false,
        faults: [429, 429, 400, 404],
        error: "/error/status",
    },
    Way {
        provider: Provider::Gemini,
        header: BEARER,
        path: VEO,
        body: |text| json!({"instances": [{"prompt": text}]}),
        good: 200,
        begins: true,
        faults: [429, 429, 400, 404],
        error: "/error/status",
    },
    Way {
        provider: Provider::Ark,
        header: BEARER,
        path: "/api/v3/images/generations",
        body: |text| json!({"model": "doubao-seedream-4-5-251128", "prompt": text}),
        good: 200,
        begins: false,
        faults: [403, 429, 401, 404],
        error: "/error/code",
    },
    Way {
        provider: Provider::Ark,
        header: BEARER,
        path: "/api/v3/contents/generations/tasks",
        body: |text| {
            json!({"model": "doubao-seedance-2-0-260128",
                "content": [{"type": "text", "text": text}]})
        },
        good: 200,
        begins: true,
        faults: [403, 429, 401, 404],
        error: "/error/code",
    },
    Way {
        provider: Provider::DashScope,
        header: BEARER,
        path: "/api/v1/services/aigc/multimodal-generation/generation",
        body: |text| {
            json!({"model": "wan2.7-image",
                "input": {"messages": [{"role": "user", "content": [{"text": text}]}]}})
        },
        good: 200,
        begins: false,
        faults: [400, 429, 401, 404],
        error: "/code",
    },
    Way {
        provider: Provider::Xai,
        header: BEARER,
        path: "/v1/videos/generations",
        body: |text| json!({"model": "grok-imagine-video-1.5", "prompt": text}),
        good: 200,
        begins: true,
        faults: [403, 429, 400, 404],
        error: "/error",
    },
    Way {
        provider: Provider::Kling,
        header: BEARER,
        path: "/text-to-video/kling-3.0",
        body: |text| json!({"prompt": text}),
        good: 200,
        begins: true,
        faults: [429, 429, 401, 404],
        error: "/message",
    },
    Way {
        provider: Provider::Replicate,
        header: BEARER,
        path: "/v1/models/google/veo-3.1/predictions",
        body: |text| json!({"input": {"prompt": text}}),
        good: 201,
        begins: true,
        faults: [402, 429, 401, 404],
        error: "/detail",
    },
    Way {
        provider: Provider::Fal,
        header: ("authorization", "Key k"),
        path: "/fal-ai/veo3.1",
        body: |text| json!({"prompt": text}),
        good: 200,
        begins: true,
        faults: [403, 429, 401, 404],
        error: "/detail",
    },
];

impl Way {
    async fn site(&self) -> Site {
        Site::start(self.provider, Options::default(), "", &[self.header]).await
    }
}

#[tokio::test]
async fn faults() {
    for way in WAYS {
        let site = way.site().await;
        let [quota, rate, key, model] = way.faults;
        for (text, status) in [
            ("[[fake:quota-exhausted]]", quota),
            ("[[fake:rate-limited=7]]", rate),
            ("[[fake:key-refused]]", key),
            ("[[fake:model-missing]]", model),
            ("[[fake:status=502]]", 502),
            ("[[fake:status=599]]", 599),
        ] {
            let reply = site.post(way.path, &(way.body)(text)).await;
            assert_eq!(reply.status, status, "{} {text}", way.path);
            let told = reply
                .json()
                .pointer(way.error)
                .is_some_and(|told| !told.is_null());
            assert!(told, "{} {text}: {}", way.path, reply.text());
        }
        assert!(site.fake.polls().is_empty());
        assert!(
            site.fake
                .requests()
                .iter()
                .all(|seen| seen.rejected_by.is_none())
        );
        let reply = site.post(way.path, &(way.body)("a tree")).await;
        assert_eq!(reply.status, way.good, "{}", way.path);
    }
}

#[tokio::test]
async fn moderation_lets_nothing_begin_where_it_stands_before_the_work() {
    for way in WAYS {
        let site = way.site().await;
        let reply = site.post(way.path, &(way.body)("[[fake:blocked]]")).await;
        let is_refused = reply.status >= 400;
        // Google tells it in an answer that is good, Replicate in the state of the task.
        let tells_later =
            way.path.contains(":generateContent") || way.provider == Provider::Replicate;
        assert_eq!(is_refused, !tells_later, "{}", way.path);
        let begun = !site.fake.polls().is_empty();
        assert_eq!(begun, way.provider == Provider::Replicate, "{}", way.path);
    }
}

#[tokio::test]
async fn connections_that_break() {
    for way in WAYS {
        let site = way.site().await;
        let count = || site.fake.polls().len();
        let before = site
            .try_post(way.path, &(way.body)("[[fake:reset-before-head]]"))
            .await;
        assert!(is_reset(&before.err().expect("no answer")), "{}", way.path);
        let closed = site
            .try_post(way.path, &(way.body)("[[fake:close-without-answer]]"))
            .await;
        assert!(
            closed.is_err_and(|error| error.is_incomplete_message()),
            "{}",
            way.path
        );
        assert_eq!(count(), 0);
        let middle = site
            .post(way.path, &(way.body)("[[fake:reset-mid-body]]"))
            .await;
        assert_eq!(middle.status, way.good);
        assert!(
            middle.broken.is_some_and(|error| is_reset(&error)),
            "{}",
            way.path
        );
        let after = site
            .try_post(way.path, &(way.body)("[[fake:reset-after-accept]]"))
            .await;
        assert!(is_reset(&after.err().expect("no answer")), "{}", way.path);
        assert_eq!(count(), if way.begins { 2 } else { 0 }, "{}", way.path);
    }
}

#[tokio::test]
async fn answers_that_never_come() {
    let soon = Duration::from_millis(150);
    for way in WAYS {
        let site = way.site().await;
        for (text, begun) in [("[[fake:hang]]", 0), ("[[fake:hang-after-accept]]", 1)] {
            let body = (way.body)(text);
            let never = tokio::time::timeout(soon, site.try_post(way.path, &body));
            assert!(never.await.is_err(), "{} {text}", way.path);
            let begun = if way.begins { begun } else { 0 };
            assert_eq!(site.fake.polls().len(), begun, "{} {text}", way.path);
        }
    }
}

#[tokio::test]
async fn bodies_that_are_wrong() {
    for way in WAYS {
        let site = way.site().await;
        let page = site.post(way.path, &(way.body)("[[fake:html200]]")).await;
        assert!(
            page.status == 200 && page.text().contains("<html>"),
            "{}",
            way.path
        );
        let empty = site
            .post(way.path, &(way.body)("[[fake:empty-body]]"))
            .await;
        assert!(empty.bytes().is_empty(), "{}", way.path);
        let cut = site
            .post(way.path, &(way.body)("[[fake:truncated-json]]"))
            .await;
        let whole = serde_json::from_slice::<Value>(&cut.bytes());
        assert!(cut.broken.is_none() && whole.is_err(), "{}", way.path);
    }
}
