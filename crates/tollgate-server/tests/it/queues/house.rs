//! Gateways whose channels lead to fakes that work on tasks in queues of their own.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use http::{Method, Request};
use http_body_util::Full;
use serde_json::{Value, json};
use tollgate_fakes::{Fake, Options, Provider, Seen, start};

use crate::films::mp4_ms;
use crate::gate::{Backend, Client, Gate, Setup, links, status, task_id};
use crate::pictures::decoded;

/// What a task costs, whoever makes it.
pub(super) const PRICE: f64 = 0.5;
/// What customers have.
pub(super) const PURSE: f64 = 4.0;
/// The keys of every channel.
const KEYS: [&str; 3] = ["up-key-one", "up-key-two", "up-key-three"];

/// A provider with a queue that cannot be asked for what it got by our own id.
pub(super) struct House {
    pub(super) provider: Provider,
    pub(super) model: &'static str,
    /// How the price is named.
    price: &'static str,
    /// Where clients order.
    path: &'static str,
    /// How the provider's path of a submission ends.
    submission: &'static str,
    /// How a request that calls a task off begins and ends.
    cancellation: (&'static str, &'static str),
}

/// Every house.
pub(super) const HOUSES: &[House] = &[House {
    provider: Provider::DashScope,
    model: "wan2.7-image",
    price: "per_image",
    path: "/v1/images/generations",
    submission: "/image-generation/generation",
    cancellation: ("POST", "/cancel"),
}];

impl House {
    /// An order; the prompt tells the fake what to do.
    pub(super) fn body(&self, prompt: &str) -> Value {
        match self.provider {
            Provider::Ark => json!({
                "model": self.model, "prompt": prompt, "duration": 2, "aspect_ratio": "1:1", "resolution": "480p",
            }),
            _ => json!({ "model": self.model, "prompt": prompt, "size": "768x768" }),
        }
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
        let House { model, price, .. } = house;
        let mut config = format!(
            "[price.\"{model}\"]\n{price} = {PRICE}\n[time_limits]\nimage_s = {limit_s}\nvideo_s = {limit_s}\n"
        );
        let mut started = Vec::new();
        for at in 0..fakes {
            let fake = start(house.provider, Options::default()).await.unwrap();
            let (kind, url) = (house.provider.name(), fake.base_url());
            write!(
                config,
                "[[channel]]\nname = \"{kind}-{at}\"\nkind = \"{kind}\"\nbase_url = \"{url}\"\napi_keys = {KEYS:?}\n\
                 models = [\"{model}\"]\npriority = {at}\npoll_ms = 100\n"
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
    pub(super) fn submissions(&self, fake: usize) -> Vec<Seen> {
        let mut seen = self.fakes[fake].requests();
        seen.retain(|seen| seen.method == "POST" && seen.path.ends_with(self.house.submission));
        for one in &seen {
            assert_eq!(one.refused, None, "{}", one.body);
        }
        seen
    }

    /// How many requests of a fake call a task off.
    pub(super) fn cancellations(&self, fake: usize) -> usize {
        let (method, end) = self.house.cancellation;
        let seen = self.fakes[fake].requests().into_iter();
        seen.filter(|seen| seen.method == method && seen.path.ends_with(end))
            .count()
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
        if self.house.path.contains("video") {
            assert_eq!(mp4_ms(&file.body), 2000);
        } else {
            let (_, width, height) = decoded(&file.body);
            assert_eq!((width, height), (768, 768));
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
            if seen.path.ends_with(&format!("/{ticket}")) {
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
pub(super) fn key(seen: &Seen) -> String {
    seen.header("authorization").expect("a key").to_owned()
}
