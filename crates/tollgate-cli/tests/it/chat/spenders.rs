//! Random requests side by side on small balances: the providers never bill more than what was charged and what is owed.

use std::hash::{BuildHasher as _, DefaultHasher, Hash as _, Hasher as _, RandomState};
use std::time::Duration;

use futures_util::future::join_all;
use tollgate_fakes::{Fake, Options, Provider};

use super::charges::{cost, prices};
use super::format::Format;
use super::providers::{AllProviders, CHANNELS, Channel, all_models, chat_records};
use super::request::{ChatRequest, TOOL};
use crate::harness::*;

on_both!(concurrent_requests_deliver_no_more_than_they_pay);
on_postgres!(requests_at_two_gateways_deliver_no_more_than_they_pay);

/// The environment variable with the seed of a run to repeat; each run prints its seed.
const SEED_VARIABLE: &str = "TOLLGATE_SPENDERS_SEED";
/// The number of requests, which run side by side.
const REQUESTS: usize = 150;
/// The balances of the users; most balances are too small for most requests.
const BALANCES: [&str; 5] = ["1", "3", "10", "40", "400"];
/// Directives to the fakes, in one request of eight.
const FAILURES: [&str; 5] = [
    "reset-mid-body=5",
    "no-end",
    "error-event",
    "status=500*1",
    "drip=1",
];

/// Numbers that depend only on the seed.
#[derive(Clone, Copy)]
struct Choices {
    seed: u64,
    request: usize,
}

impl Choices {
    /// A number below `count`.
    fn below(self, what: &str, count: usize) -> usize {
        let mut hasher = DefaultHasher::new();
        (self.seed, self.request, what).hash(&mut hasher);
        (hasher.finish() % count as u64) as usize
    }

    fn is(self, what: &str, one_in: usize) -> bool {
        self.below(what, one_in) == 0
    }
}

/// One random request. Returns its status; `None` if the client left before the response began.
async fn send_random_request(client: &Client, choices: Choices) -> Option<u16> {
    let format = Format::ALL[choices.below("format", 4)];
    let models = all_models();
    let model = models[choices.below("model", models.len())];
    let stream = choices.is("stream", 2);
    let mut text = "so it goes ".repeat(choices.below("length", 150));
    if choices.is("tools", 5) {
        text += &format!("call tool {TOOL} twice aloud");
    } else if choices.is("think", 3) {
        text += "think";
    }
    if choices.is("failure", 8) {
        text += &format!("[[fake:{}]]", FAILURES[choices.below("which", 5)]);
    }
    let mut request = ChatRequest::of_text(format, model, stream, &text);
    if choices.is("tools", 5) {
        request = request.tools();
    } else if choices.is("think", 3) {
        request = request.thinking();
    }
    if !choices.is("uncapped", 3) && !choices.is("think", 3) {
        request = request.max_tokens(20 + choices.below("cap", 300) as u64);
    }
    let path = format.vendor_path(model, stream);
    let leaves = choices.is("leaves", 3);
    let open = client.open(&path, &request.body);
    let opened = match leaves && choices.is("early", 3) {
        true => {
            let wait = Duration::from_millis(choices.below("wait", 200) as u64);
            tokio::time::timeout(wait, open).await.ok()
        }
        false => Some(open.await),
    };
    let mut response = opened?;
    match leaves && stream && response.status == 200 {
        true => {
            for _ in 0..choices.below("events", 20) {
                response.event().await;
            }
        }
        false => drop(response.text().await),
    }
    Some(response.status)
}

/// What the providers bill for all requests that they got, in billionths.
fn billed(fakes: &[Fake]) -> u64 {
    let of_channel = |(fake, channel): (&Fake, &Channel)| {
        let wrote = channel.provider != Provider::Gemini;
        let requests = fake.requests().into_iter();
        let bills = requests.filter_map(|request| Some(cost(request.billed?, wrote)));
        bills.sum::<u64>()
    };
    fakes.iter().zip(CHANNELS).map(of_channel).sum()
}

async fn check_spenders(mut gateways: Vec<TestGateway>, fakes: Vec<Fake>) {
    let given = std::env::var(SEED_VARIABLE).ok();
    let seed = given.map_or_else(
        || RandomState::new().hash_one(0),
        |seed| seed.parse().unwrap(),
    );
    eprintln!("the seed of these spenders: {seed}");
    let mut clients = Vec::new();
    for (number, balance) in BALANCES.iter().enumerate() {
        let name = format!("spender-{number}");
        let client = gateways[0]
            .user_client(&name, &["--balance", balance])
            .await;
        let at =
            |gateway: &TestGateway| gateway.client(client.secret.clone(), client.key_id.clone());
        clients.push(gateways.iter().map(at).collect::<Vec<_>>());
    }
    let statuses = join_all((0..REQUESTS).map(|request| {
        let choices = Choices { seed, request };
        let at = &clients[choices.below("client", BALANCES.len())];
        send_random_request(&at[request % at.len()], choices)
    }));
    let statuses = statuses.await;
    for expected in [200, 402] {
        assert!(statuses.contains(&Some(expected)), "{seed}: {statuses:?}");
    }
    // Nothing is held once every chat is settled.
    until_true("every chat to end", async || {
        let open = fakes.iter().map(Fake::open_streams).sum::<usize>();
        open == 0
            && gateways[0]
                .query_number("SELECT COUNT(*) FROM chats WHERE outcome IS NULL")
                .await
                == 0
    })
    .await;
    // A gateway that stops settles the chats that are still open.
    for gateway in &mut gateways {
        gateway.terminate().await;
    }
    let rows = chat_records(&gateways[0], "settled, debt, forgiven").await;
    let sum = |at: usize| {
        let column = rows.iter().map(|row| row[at].parse::<u64>().unwrap());
        column.sum::<u64>()
    };
    let (charged, debt, written_off) = (sum(0), sum(1), sum(2));
    let billed = billed(&fakes);
    eprintln!("{seed}: billed {billed}, charged {charged}, of which {debt} is owed");
    assert_eq!(written_off, 0, "{seed}");
    let taken = charged - debt;
    assert!(
        billed * 10 <= taken * 11 + debt * 10,
        "{seed}: billed {billed}, taken {taken}, owed {debt}"
    );
    for gateway in gateways {
        gateway.close().await;
    }
}

fn config() -> String {
    "[chat]\ndefault_max_tokens = 100\n".to_owned() + &prices(&all_models())
}

fn options() -> Options {
    Options {
        chunks: 12,
        delay: Duration::from_millis(15),
        ..Options::default()
    }
}

async fn concurrent_requests_deliver_no_more_than_they_pay(backend: Backend) {
    let (config, fakes) = AllProviders::start_fakes(&config(), options()).await;
    let gateway = Setup::new(backend).config(&config).start().await;
    check_spenders(vec![gateway], fakes).await;
}

async fn requests_at_two_gateways_deliver_no_more_than_they_pay(backend: Backend) {
    let (config, fakes) = AllProviders::start_fakes(&config(), options()).await;
    let first = Setup::new(backend).config(&config).start().await;
    let second = Setup::new(backend)
        .config(&config)
        .beside(&first)
        .start()
        .await;
    check_spenders(vec![first, second], fakes).await;
}
