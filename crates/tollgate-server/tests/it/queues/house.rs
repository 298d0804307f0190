//! Gateways whose channels lead to fakes that work on tasks in queues of their own.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use http::{Method, Request};
use http_body_util::Full;
use serde_json::Value;
use tollgate_fakes::{Fake, Options, Provider, ReceivedRequest, start};

use crate::films::mp4_ms;
use crate::gate::{Backend, Client, Gate, Setup, links, status, task_id, until};
use crate::pictures::decoded;

/// What a task costs, whoever makes it.
pub(super) const PRICE: f64 = 0.5;
/// What customers have.
pub(super) const PURSE: f64 = 4.0;
/// The keys of every channel.
const KEYS: [&str; 3] = ["up-key-one", "up-key-two", "up-key-three"];

/// A provider with a queue, and how it is spoken to.
pub(super) struct House {
    provider: Provider,
    /// The model's name here and there.
    model: &'static str,
    upstream: &'static str,
    /// How the price is named.
    price: &'static str,
    /// Where clients order, and what besides model and prompt.
    path: &'static str,
    order: &'static str,
    /// What comes of it.
    product: Product,
    /// What a record calls a task that runs.
    pub(super) running: &'static str,
    /// A part of the provider's path of a submission.
    submission: &'static str,
    /// How a request that calls a task off begins, and a part of its path; none where no task can be called off.
    cancellation: Option<(&'static str, &'static str)>,
    /// What the provider answers to a request that it does not like.
    pub(super) refusal: &'static str,
    /// Whether it can be asked for what it got by our own id.
    pub(super) finds: bool,
    /// Whether what has come of a task is asked for apart from its state.
    pub(super) tells_apart: bool,
    /// Whether a task that failed there for reasons untold is left at that: made again it would be paid for again.
    pub(super) fails_for_good: bool,
}

/// What a house makes.
#[derive(Debug, Clone, Copy)]
enum Product {
    /// A picture with sides of so many pixels.
    Picture(u32),
    /// A film of so many milliseconds.
    Film(u64),
}

/// Every house.
pub(super) const HOUSES: &[House] = &[
    House {
        provider: Provider::Ark,
        model: "seedance-1.0-pro",
        upstream: "seedance-1.0-pro",
        price: "per_video",
        path: "/v1/video/generations",
        order: r#"{ "duration": 2, "aspect_ratio": "1:1", "resolution": "480p" }"#,
        product: Product::Film(2_000),
        running: "in_progress",
        submission: "/contents/generations/tasks",
        cancellation: Some(("DELETE", "/contents/generations/tasks/")),
        refusal: r#"status=400,{"error":{"code":"InvalidParameter","message":"no"}}"#,
        finds: false,
        tells_apart: false,
        fails_for_good: false,
    },
    House {
        provider: Provider::DashScope,
        model: "wan2.7-image",
        upstream: "wan2.7-image",
        price: "per_image",
        path: "/v1/images/generations",
        order: r#"{ "size": "768x768" }"#,
        product: Product::Picture(768),
        running: "processing",
        submission: "/image-generation/generation",
        cancellation: Some(("POST", "/cancel")),
        refusal: r#"status=400,{"code":"InvalidParameter","message":"no"}"#,
        finds: false,
        tells_apart: false,
        fails_for_good: false,
    },
    House {
        provider: Provider::Xai,
        model: "grok-imagine-video-1.5",
        upstream: "grok-imagine-video-1.5",
        price: "per_video",
        path: "/v1/videos",
        order: r#"{ "duration": 2, "aspect_ratio": "1:1" }"#,
        product: Product::Film(2_000),
        running: "in_progress",
        submission: "/videos/generations",
        cancellation: None,
        refusal: "status=400",
        finds: false,
        tells_apart: false,
        fails_for_good: false,
    },
    House {
        provider: Provider::Kling,
        model: "grok-imagine-video-1.5",
        upstream: "kling-3.0",
        price: "per_video",
        path: "/v1/video/generations",
        order: r#"{ "duration": 3, "aspect_ratio": "1:1" }"#,
        product: Product::Film(3_000),
        running: "in_progress",
        submission: "/text-to-video/kling-3.0",
        cancellation: None,
        refusal: r#"status=400,{"code":1201,"message":"no"}"#,
        finds: true,
        tells_apart: false,
        fails_for_good: false,
    },
    // By its older APIs.
    House {
        provider: Provider::Kling,
        model: "grok-imagine-video-1.5",
        upstream: "kling-v3",
        price: "per_video",
        path: "/v1/videos",
        order: r#"{ "duration": 3, "aspect_ratio": "1:1" }"#,
        product: Product::Film(3_000),
        running: "in_progress",
        submission: "/v1/videos/text2video",
        cancellation: None,
        refusal: r#"status=400,{"code":1201,"message":"no"}"#,
        finds: true,
        tells_apart: false,
        fails_for_good: false,
    },
];

/// Those of which it is only told how work there begins and ends: what lies between is the gateway's, and the same for all.
pub(super) const OTHER_HOUSES: &[House] = &[
    House {
        provider: Provider::Replicate,
        model: "seedance-1.0-pro",
        upstream: "seedance-1.0-pro",
        price: "per_video",
        path: "/v1/video/generations",
        order: r#"{ "duration": 2, "aspect_ratio": "1:1", "resolution": "480p" }"#,
        product: Product::Film(2_000),
        running: "in_progress",
        submission: "/seedance-1-pro/predictions",
        cancellation: Some(("POST", "/cancel")),
        refusal: r#"status=422,{"status":422,"title":"Input validation failed","detail":"no"}"#,
        finds: false,
        tells_apart: false,
        fails_for_good: false,
    },
    House {
        provider: Provider::Fal,
        model: "seedance-1.0-pro",
        upstream: "seedance-1.0-pro",
        price: "per_video",
        path: "/v1/video/generations",
        order: r#"{ "duration": 2, "aspect_ratio": "1:1", "resolution": "480p" }"#,
        product: Product::Film(2_000),
        running: "in_progress",
        submission: "/pro/text-to-video",
        cancellation: Some(("PUT", "/cancel")),
        refusal: r#"status=422,{"detail":[{"loc":["body","prompt"],"msg":"no","type":"value_error"}]}"#,
        finds: false,
        tells_apart: true,
        fails_for_good: false,
    },
    House {
        provider: Provider::Gemini,
        model: "veo-3.1-flash",
        upstream: "veo-3.1-flash",
        price: "per_video",
        path: "/v1/videos",
        order: r#"{ "seconds": "4", "aspect_ratio": "16:9" }"#,
        product: Product::Film(4_000),
        running: "in_progress",
        submission: ":predictLongRunning",
        cancellation: None,
        refusal: r#"status=400,{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"no"}}"#,
        finds: false,
        tells_apart: false,
        fails_for_good: false,
    },
    House {
        provider: Provider::OpenAi,
        model: "sora-2",
        upstream: "sora-2",
        price: "per_video",
        path: "/v1/videos",
        order: r#"{ "seconds": "8", "aspect_ratio": "16:9" }"#,
        product: Product::Film(8_000),
        running: "in_progress",
        submission: "/videos",
        cancellation: None,
        refusal: r#"status=400,{"error":{"message":"no","type":"invalid_request_error","code":"invalid_value"}}"#,
        finds: false,
        tells_apart: false,
        fails_for_good: true,
    },
];

impl House {
    /// An order; the prompt tells the fake what to do.
    fn body(&self, prompt: &str) -> Value {
        let mut body: Value = serde_json::from_str(self.order).unwrap();
        body["model"] = self.model.into();
        body["prompt"] = prompt.into();
        body
    }

    /// How many bytes of a result are too many, where a test can make them.
    pub(super) fn too_large(&self) -> Option<u64> {
        match self.product {
            Product::Picture(_) => Some((128 << 20) + 1),
            Product::Film(_) => None,
        }
    }

    /// Its name in messages.
    pub(super) fn name(&self) -> &'static str {
        self.provider.name()
    }
}

/// A gateway with one customer, and fakes in the order in which they are asked.
pub(super) struct Site {
    pub(super) house: &'static House,
    pub(super) gate: Gate,
    pub(super) client: Client,
    pub(super) fakes: Vec<Fake>,
}

impl Site {
    /// One that runs, with so many channels to fakes of their own. Tasks may take `limit_s` seconds.
    pub(super) async fn open(
        backend: Backend,
        house: &'static House,
        fakes: usize,
        limit_s: u32,
    ) -> Self {
        let mut site = Self::build(backend, house, fakes, limit_s).await;
        site.gate.start_server().await;
        site
    }

    /// The same before it runs.
    pub(super) async fn build(
        backend: Backend,
        house: &'static House,
        fakes: usize,
        limit_s: u32,
    ) -> Self {
        let House {
            model,
            upstream,
            price,
            ..
        } = house;
        let mut config = format!(
            "drain_s = 1\n[price.\"{model}\"]\n{price} = {PRICE}\n[time_limits]\nimage_s = {limit_s}\nvideo_s = {limit_s}\n"
        );
        let mut started = Vec::new();
        for at in 0..fakes {
            let fake = start(house.provider, Options::default()).await.unwrap();
            let (kind, url) = (house.provider.name(), fake.base_url());
            write!(
                config,
                "[[channel]]\nname = \"{kind}-{at}\"\nkind = \"{kind}\"\nbase_url = \"{url}\"\napi_keys = {KEYS:?}\n\
                 models = [{{ name = \"{model}\", upstream = \"{upstream}\" }}]\npriority = {at}\npoll_ms = 100\n"
            )
            .unwrap();
            started.push(fake);
        }
        // On SQLite a restarted gateway takes its tasks back at once: whoever waits for the lease here waits too long.
        let lease = match backend {
            Backend::Sqlite => "300",
            Backend::Postgres => "1",
        };
        let setup = Setup::new(backend).config(&config);
        let gate = setup.env("TOLLGATE_LEASES__SECONDS", lease).prepare().await;
        let purse = PURSE.to_string();
        let client = gate.somebody_with("payer", &["--balance", &purse]).await;
        Self {
            house,
            gate,
            client,
            fakes: started,
        }
    }

    /// Orders, which must be taken; answers the task's id.
    pub(super) async fn order(&self, prompt: &str) -> String {
        let body = self.house.body(prompt);
        let receipt = self.client.post(self.house.path, &body).await;
        task_id(&receipt.expect(200).json())
    }

    /// Orders under an idempotency key at a gateway that may end at any moment; none where it did.
    pub(super) async fn try_order(&self, prompt: &str, key: &str) -> Option<String> {
        let request: Request<_> = self
            .client
            .request(Method::POST, self.house.path)
            .header("content-type", "application/json")
            .header("idempotency-key", key)
            .body(Full::from(self.house.body(prompt).to_string()))
            .unwrap();
        let reply = self.client.try_send(request).await?;
        Some(task_id(&reply.expect(200).json()))
    }

    /// What a fake took into its queue or may have taken.
    pub(super) fn submissions(&self, fake: usize) -> Vec<ReceivedRequest> {
        let mut seen = self.fakes[fake].requests();
        seen.retain(|seen| seen.method == "POST" && seen.path.contains(self.house.submission));
        for one in &seen {
            assert_eq!(one.rejected_by, None, "{}", one.body);
        }
        seen
    }

    /// Waits until a fake was told that so many tasks are not wanted any more, where it can be told.
    pub(super) async fn called_off(&self, fake: usize, tasks: usize) {
        let Some((method, part)) = self.house.cancellation else {
            return;
        };
        until("the provider to be told", async || {
            let seen = self.fakes[fake].requests().into_iter();
            let told = seen.filter(|seen| seen.method == method && seen.path.contains(part));
            (told.count() >= tasks).then_some(())
        })
        .await;
    }

    /// How often a fake was asked for the first task in its queue.
    pub(super) fn polls(&self, fake: usize) -> usize {
        let polls = self.fakes[fake].polls();
        polls.first().map_or(0, |(_, times)| times.len())
    }

    /// A completed record: one result that is whole, one price, and nothing that is the provider's own.
    pub(super) async fn check_made(&self, record: &Value) {
        assert_eq!(status(record), "completed", "{record}");
        assert_eq!(record["cost"], PRICE, "{record}");
        let url = match record["url"].as_str() {
            Some(url) => url.to_owned(),
            None => links(record).remove(0),
        };
        assert!(url.starts_with(&self.client.url("/files/")), "{url}");
        let file = self.client.fetch(&url).await.expect(200);
        match self.house.product {
            Product::Picture(side) => {
                let (_, width, height) = decoded(&file.body);
                assert_eq!((width, height), (side, side));
            }
            Product::Film(ms) => assert_eq!(mp4_ms(&file.body), ms),
        }
        let told = format!("{record} {:?}", file.headers);
        self.check_private(&told);
    }

    /// A failed record: its code, nothing charged, and nothing that is the provider's own.
    #[track_caller]
    pub(super) fn check_failed(&self, record: &Value, code: &str) {
        assert_eq!(status(record), "failed", "{record}");
        assert_eq!(record["error"]["code"], code, "{record}");
        assert_eq!(record["cost"], 0.0, "{record}");
        self.check_private(&record.to_string());
    }

    /// Neither a provider's address, nor its ids, nor our keys there are anybody's business.
    #[track_caller]
    fn check_private(&self, told: &str) {
        for key in KEYS {
            assert!(!told.contains(key), "{told}");
        }
        for fake in &self.fakes {
            assert!(!told.contains(&fake.address().to_string()), "{told}");
            for (ticket, _) in fake.polls() {
                assert!(!told.contains(&ticket), "{told}");
            }
        }
    }

    /// What the customer has left and has spent.
    pub(super) async fn check_purse(&self, spent: f64) {
        assert_eq!(self.client.purse().await, (PURSE - spent, spent));
    }

    /// The end of a test: our keys are in no log, and the books close.
    pub(super) async fn close(self) {
        let log = self.gate.log();
        for key in KEYS {
            assert!(!log.contains(key), "a provider's key is in the log");
        }
        self.gate.close().await;
    }
}

/// The keys that each task of a fake was asked for with, sorted.
pub(super) fn keys_of_tasks(fake: &Fake) -> Vec<Vec<String>> {
    let mut keys: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for seen in fake.requests() {
        for (ticket, _) in fake.polls() {
            let is_poll = seen.method == "GET" && !seen.path.contains("_files");
            if is_poll && (seen.path.ends_with(&ticket) || seen.query.ends_with(&ticket)) {
                keys.entry(ticket).or_default().push(key(&seen));
            }
        }
    }
    let mut keys: Vec<Vec<String>> = keys.into_values().collect();
    for keys in &mut keys {
        keys.sort_unstable();
        keys.dedup();
    }
    keys.sort_unstable();
    keys
}

/// The key that a request brought.
pub(super) fn key(seen: &ReceivedRequest) -> String {
    seen.header("authorization").expect("a key").to_owned()
}
