//! Writes and checks the table of docs/money.md that compares what the provider bills with what is charged, for each ending of a chat.
//! `TOLLGATE_BLESS=1` writes it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream;
use serde_json::json;
use tollgate_fakes::{Fake, Options, Provider, ReceivedRequest};

use super::charges::{cost, prices};
use super::format::Format;
use super::providers::{AllProviders, CHANNELS, all_models};
use super::request::{ChatRequest, TOOL};
use crate::harness::*;

// What is charged does not depend on the database: `super::charges` compares the databases.
on_sqlite!(the_table_of_bills_matches_the_charges_of_the_gateway);

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../", "docs/money.md");
const BEGIN: &str = "<!-- bills: written by the tests of tollgate-cli with TOLLGATE_BLESS=1 -->\n";
const END: &str = "<!-- end of bills -->\n";
/// The numbers of events after which a stream is cut. Few streams have more events.
const CUTS: std::ops::Range<usize> = 1..10;
/// The number of chats at the same time. With more, a slow machine does not read the remaining stream within the half second that the gateway allows
/// for it.
const CONCURRENT: usize = 6;
/// The number of chats of one channel that fail at the same time: most of them wait for a time limit.
const FAILURES_AT_ONCE: usize = 2;
/// The text of a response is shorter than the part that the gateway still reads of a stream after its client disconnects.
const PROMPT: &str =
    "so it goes so it goes so it goes so it goes so it goes so it goes so it goes so it goes";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Ending {
    Complete,
    CutByClient,
    CutWhileSilent,
    CutByProvider,
    Silent,
    Rejected,
    TimedOut,
}

use Ending::{Complete, CutByClient, CutByProvider, CutWhileSilent, Rejected, Silent, TimedOut};

const ENDINGS: [(Ending, &str); 7] = [
    (Complete, "complete"),
    (CutByClient, "left by the client"),
    (CutWhileSilent, "left by the client, the provider silent"),
    (CutByProvider, "cut off by the provider"),
    (Silent, "timed out after its beginning"),
    (Rejected, "rejected by the provider"),
    (TimedOut, "timed out"),
];
const CONTENTS: [&str; 5] = [
    "text",
    "hidden reasoning",
    "tool calls",
    "image and text",
    "generated image",
];
/// How the outputs of each kind begin: text, thoughts, arguments of a call, images.
const OUTPUTS: [&str; 6] = [
    "echo",
    "I am",
    r#"\"city"#,
    r#""args":{"city"#,
    r#""input":{"city"#,
    "iVBOR",
];
/// The index in [`CHANNELS`] of the channel whose models generate images in a chat.
const DRAWING_CHANNEL: usize = 3;

/// A cell of the table: its row and its column.
type Cell = (usize, bool, Ending, usize);

/// One chat.
#[derive(Clone, Copy)]
struct Case {
    number: usize,
    cell: Cell,
    /// An index of [`CHANNELS`].
    channel: usize,
    /// The number of events after which the stream is cut.
    cut: usize,
}

impl Case {
    /// Every case whose ending `is_included`.
    fn all(is_included: fn(Ending) -> bool) -> Vec<Self> {
        let mut cases = Vec::new();
        let ends = ENDINGS.iter().map(|(end, _)| *end);
        for end in ends.filter(|end| is_included(*end)) {
            let contents = 0..CONTENTS.len();
            for (format, content) in contents.flat_map(|c| (0..4).map(move |format| (format, c))) {
                // The channel of the same format, and one that needs a translation.
                let channels = match content {
                    4 => vec![DRAWING_CHANNEL],
                    _ if end == TimedOut => vec![format],
                    _ => vec![format, (format + 1) % 4],
                };
                for (channel, stream) in channels.into_iter().flat_map(|c| [(c, false), (c, true)])
                {
                    let cuts = match end {
                        CutByClient | CutWhileSilent | CutByProvider if stream => CUTS,
                        // Each of these cases takes as long as the time limit.
                        Silent if stream => 3..5,
                        _ => 1..2,
                    };
                    cases.extend(cuts.map(|cut| Self {
                        number: 0,
                        cell: (format, stream, end, content),
                        channel,
                        cut,
                    }));
                }
            }
        }
        cases
    }

    fn name(self) -> String {
        format!("case-{}-", self.number)
    }

    fn model(self) -> &'static str {
        let thinks = self.cell.3 == 1;
        let models = CHANNELS[self.channel].models;
        // Of the models on the responses API, the first one reasons.
        models[usize::from(thinks != (self.channel == 1))].0
    }

    /// Whether all output is visible in the stream, so that the gateway drops the provider's connection soon after the client disconnects.
    fn is_all_visible(self) -> bool {
        self.cell.3 != 1 && matches!(self.channel, 0 | 2)
    }

    /// The directive in the prompt that controls the fake.
    fn directive(self) -> String {
        let (_, stream, end, _) = self.cell;
        let cut = self.cut;
        match end {
            // If the provider continued, the gateway would read its stream to the end.
            CutByClient if stream && self.is_all_visible() => format!("[[fake:stall={cut}]]"),
            CutByClient if !stream => "[[fake:drip=1]]".to_owned(),
            CutWhileSilent if !stream => "[[fake:hang]]".to_owned(),
            CutWhileSilent => format!("[[fake:stall={cut}]]"),
            Silent => format!("[[fake:stall={cut}*1]]"),
            CutByProvider => format!("[[fake:reset-mid-body={cut}*1]]"),
            Rejected => "[[fake:status=400*1]]".to_owned(),
            TimedOut => "[[fake:hang*1]]".to_owned(),
            Complete | CutByClient => String::new(),
        }
    }

    /// Returns whether the client got any output.
    async fn run(self, client: &Client) -> bool {
        let (format, stream, end, content) = self.cell;
        let format = Format::ALL[format];
        let mut text = format!("{} {PROMPT} {}", self.name(), self.directive());
        match content {
            1 => text += "think",
            2 => text += &format!("call tool {TOOL} with {}", json!({"city": PROMPT})),
            4 => text += "draw a picture",
            _ => {}
        }
        let mut request = ChatRequest::new(format, self.model(), stream);
        if content == 3 {
            request = request.image();
        }
        request = request.user(&text);
        request = match content {
            1 => request.thinking(),
            2 => request.tools(),
            4 => request.max_tokens(4_000),
            _ => request.max_tokens(400),
        };
        let path = format.vendor_path(self.model(), stream);
        let name = self.name();
        let headers = [("x-request-id", name.as_str())];
        let read = async {
            let mut response = client.open_with(&path, &request.body, &headers).await;
            match (end, stream && !self.is_all_visible()) {
                (CutByClient, true) => {
                    for _ in 0..self.cut {
                        response.event().await;
                    }
                }
                _ => {
                    let text = response.text().await;
                    return OUTPUTS.iter().any(|output| text.contains(output));
                }
            }
            true
        };
        match end {
            // The client disconnects while the provider is silent or slow.
            CutByClient | CutWhileSilent
                if end == CutWhileSilent || !stream || self.is_all_visible() =>
            {
                let time = Duration::from_millis(150);
                tokio::time::timeout(time, read).await.unwrap_or(true)
            }
            _ => read.await,
        }
    }
}

/// The names of the cases whose request reached a provider.
fn names_of_cases(fake: &Fake) -> Vec<String> {
    fake.requests().iter().map(name_of_case).collect()
}

fn name_of_case(request: &ReceivedRequest) -> String {
    let body = request.body.to_string();
    let at = body.find("case-").expect("the name of a case");
    body[at..].split_inclusive('-').take(2).collect()
}

/// What was billed and charged for each case, in billionths.
async fn compare(gateway: &TestGateway, fakes: &[Fake], cases: &[Case]) -> Vec<(u64, u64)> {
    let rows = gateway
        .query("SELECT request_id, COALESCE(settled, 0) FROM chats")
        .await;
    let charged: BTreeMap<&str, u64> = rows
        .iter()
        .map(|row| (row[0].as_str(), row[1].parse().unwrap()))
        .collect();
    let mut billed = BTreeMap::new();
    for (fake, channel) in fakes.iter().zip(CHANNELS) {
        for request in fake.requests() {
            let name = name_of_case(&request);
            let wrote = channel.provider != Provider::Gemini;
            let bill = request.billed.map_or(0, |tokens| cost(tokens, wrote));
            // The last attempt is the one whose output the client got.
            billed.insert(name, bill);
        }
    }
    // On a busy machine a client may disconnect before the request reaches the provider: neither side has a record then.
    let amounts = |case: &Case| {
        let name = case.name();
        let charged = charged.get(name.as_str()).copied();
        (
            billed.get(&name).copied().unwrap_or(0),
            charged.unwrap_or(0),
        )
    };
    cases.iter().map(amounts).collect()
}

/// The table: the worst ratio of each cell.
fn table(worst: &BTreeMap<Cell, Option<f64>>) -> String {
    let mut table = format!("| Format | The chat is | {} |\n", CONTENTS.join(" | "));
    table += &"|---".repeat(2 + CONTENTS.len());
    table += "|\n";
    for (format, name) in [
        "chat completions",
        "responses",
        "messages",
        "generateContent",
    ]
    .iter()
    .enumerate()
    {
        for stream in [false, true] {
            for (end, end_name) in ENDINGS {
                let kind = if stream { ", streamed" } else { "" };
                table += &format!("| {name}{kind} | {end_name} |");
                for content in 0..CONTENTS.len() {
                    table += &match worst[&(format, stream, end, content)] {
                        None => " – |".to_owned(),
                        Some(ratio) if ratio < 0.995 => " < 1 |".to_owned(),
                        Some(ratio) => format!(" {ratio:.2} |"),
                    };
                }
                table.push('\n');
            }
        }
    }
    table
}

async fn the_table_of_bills_matches_the_charges_of_the_gateway(backend: Backend) {
    let limits = "[time_limits]\nchat_first_byte_s = 1\nchat_idle_s = 1\n";
    let config = limits.to_owned() + &prices(&all_models());
    let options = Options {
        chunks: 3,
        delay: Duration::from_millis(10),
        ..Options::default()
    };
    let (config, fakes) = AllProviders::start_fakes(&config, options).await;
    let mut gateway = Setup::new(backend).config(&config).start().await;
    let client = gateway.funded_client("1000000").await;
    let fails = |end| matches!(end, CutByProvider | Silent | Rejected | TimedOut);
    let mut cases = Case::all(|end| matches!(end, Complete | CutByClient | CutWhileSilent));
    let count = cases.len();
    cases.extend(Case::all(fails));
    (1..)
        .zip(&mut cases)
        .for_each(|(number, case)| case.number = number);
    stream::iter(&cases[..count])
        .for_each_concurrent(CONCURRENT, async |case| {
            case.run(&client).await;
        })
        .await;
    // After five failures in a row a channel has a cooldown, so a success follows each failure.
    let run_failure = async |case: &Case| {
        let got_output = case.run(&client).await;
        let (format, _, _, _) = case.cell;
        let number = cases.len() + case.number;
        let cell = (format, false, Complete, 0);
        let success = Case {
            number,
            cell,
            ..*case
        };
        success.run(&client).await;
        (!got_output).then_some(case.number)
    };
    let of_channel = |channel: usize| {
        let own = cases[count..]
            .iter()
            .filter(move |case| case.channel == channel);
        let ends = stream::iter(own).map(&run_failure);
        ends.buffer_unordered(FAILURES_AT_ONCE).collect::<Vec<_>>()
    };
    let ends = join_all((0..CHANNELS.len()).map(of_channel)).await;
    let without_output: Vec<usize> = ends.into_iter().flatten().flatten().collect();
    // Only cases whose request reached a provider: on a busy machine a client may disconnect before that.
    let sent: Vec<String> = fakes.iter().flat_map(names_of_cases).collect();
    until_true("every chat to end", async || {
        let ended = "SELECT request_id FROM chats WHERE outcome IS NOT NULL";
        let ended: BTreeSet<String> = gateway.query(ended).await.into_iter().flatten().collect();
        sent.iter().all(|name| ended.contains(name))
    })
    .await;
    gateway.terminate().await;
    let amounts = compare(&gateway, &fakes, &cases).await;
    let mut worst: BTreeMap<Cell, Option<f64>> = BTreeMap::new();
    let mut unpaid = Vec::new();
    for (case, (billed, charged)) in cases.iter().zip(amounts) {
        let described = format!(
            "{:?} {} after {}",
            case.cell, CHANNELS[case.channel].name, case.cut
        );
        // A client that got an error and no output pays nothing, whatever the provider bills.
        let billed = match without_output.contains(&case.number) {
            true => 0,
            false => billed,
        };
        if billed * 10 > charged * 11 {
            unpaid.push(format!("{described}: billed {billed}, charged {charged}"));
        }
        let ratio = (charged > 0).then(|| billed as f64 / charged as f64);
        let cell = worst.entry(case.cell).or_insert(None);
        if ratio > *cell {
            *cell = ratio;
        }
    }
    gateway.close().await;
    assert!(unpaid.is_empty(), "{}", unpaid.join("\n"));
    let page = std::fs::read_to_string(PAGE).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the table's place");
    let (found, after) = rest.split_once(END).expect("the table's end");
    let table = table(&worst);
    if std::env::var_os("TOLLGATE_BLESS").is_some() {
        std::fs::write(PAGE, format!("{before}{BEGIN}{table}{END}{after}")).unwrap();
    } else {
        assert_eq!(
            without_chance(found),
            without_chance(&table),
            "docs/money.md: run this test with TOLLGATE_BLESS=1"
        );
    }
}

/// The table with one value in those cells that differ between runs: the tokens that a silent provider is assumed to have generated depend on when
/// the machine noticed the client's disconnect, and if the client left before a provider had the request, nothing is billed and nothing charged.
fn without_chance(table: &str) -> String {
    let by_chance = "left by the client, the provider silent";
    let lines = table.lines().map(|line| match line.contains(by_chance) {
        true => line.replace("< 1", "1.00").replace('–', "1.00"),
        false => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}
