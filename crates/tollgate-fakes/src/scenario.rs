//! The scenarios (failures, delays, outcomes) that a fake can play, and their names.

use std::str::FromStr;

/// How a fake answers a request that it does not reject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scenario {
    /// As the real one does.
    Normal,
    /// An error of this status in the provider's own form, or with this body.
    Status(u16, Option<String>),
    /// Too many requests; try again after so many seconds.
    RateLimited {
        /// Seconds.
        retry_after: u64,
    },
    /// The account has no credit left.
    QuotaExhausted,
    /// The key is rejected: every key, or only this one.
    KeyRefused {
        /// The only key to reject.
        key: Option<String>,
    },
    /// The provider does not know the model.
    ModelMissing,
    /// The provider has too much to do.
    Overloaded,
    /// Status 200 with a page of HTML.
    Html200,
    /// Status 200 with nothing.
    EmptyBody,
    /// The answer's JSON ends in the middle; a stream ends inside of an event.
    TruncatedJson,
    /// The right body under `text/plain`.
    WrongContentType,
    /// The first string of the text is not UTF-8.
    InvalidUtf8,
    /// Hundreds of kilobytes of headers.
    HugeHeaders,
    /// The whole text, of this many bytes, in one event.
    HugeEvent {
        /// Bytes of text.
        bytes: usize,
    },
    /// The connection is reset before the head of the answer.
    ResetBeforeHead,
    /// The connection is reset after so many events; half-way where there are none.
    ResetMidBody {
        /// Events that go out.
        after: usize,
    },
    /// The stream ends without its last event; JSON ends in the middle.
    NoEnd,
    /// An error event in the middle of the stream.
    ErrorEvent,
    /// Status 200, then an error as the first event.
    ErrorFirst,
    /// One byte at a time.
    Drip {
        /// Milliseconds between two bytes.
        ms: u64,
    },
    /// After so many events nothing more comes, and the connection stays open.
    Stall {
        /// Events that go out.
        after: usize,
    },
    /// The stream goes on until the client goes away.
    Endless,
    /// No usage anywhere.
    NoUsage,
    /// Every number of the usage is negative.
    NegativeUsage,
    /// Every number of the usage is near the largest of 64 bits.
    AbsurdUsage,
    /// Nothing is ever answered.
    Hang,
    /// The model rejects.
    Refusal,
    /// The answer is cut by the content filter; media are rejected by it once they are made.
    ContentFilter,
    /// The prompt is blocked.
    Blocked,
    /// The answer is cut at the limit of tokens.
    LengthStop,
    /// The connection is closed in good order without an answer.
    CloseWithoutAnswer,
    /// What was asked for is done, but the answer never comes: a reset, or nothing at all.
    LostAnswer {
        /// Nothing instead of a reset.
        hang: bool,
    },
    /// MediaRequest: the work fails.
    Fail,
    /// MediaRequest: the work is not done in time.
    Expire,
    /// MediaRequest: so many of the results that were asked for are good.
    Partial {
        /// Good results.
        count: usize,
    },
    /// MediaRequest: the task is done at this poll, not before.
    PollReport {
        /// Counted from 1.
        count: u32,
    },
    /// MediaRequest: the work takes so long.
    ChatRequest {
        /// Milliseconds.
        ms: u64,
    },
    /// MediaRequest: a result is at least so large.
    ResultBytes {
        /// Bytes of the file.
        bytes: u64,
    },
}

impl Scenario {
    /// One of each, with the values that a name without a value stands for.
    pub fn all() -> Vec<Self> {
        NAMES
            .iter()
            .filter_map(|(name, _)| name.parse().ok())
            .collect()
    }

    /// Whether it says how the work goes, and nothing of the exchange.
    pub(crate) fn is_of_work(&self) -> bool {
        matches!(
            self,
            Self::Fail
                | Self::Expire
                | Self::Partial { .. }
                | Self::PollReport { .. }
                | Self::ChatRequest { .. }
                | Self::ResultBytes { .. }
                | Self::Blocked
                | Self::ContentFilter
        )
    }
}

/// What makes a scenario of the text after `=`.
type Make = fn(Option<&str>) -> Option<Scenario>;

const NAMES: &[(&str, Make)] = &[
    ("normal", |_| Some(Scenario::Normal)),
    ("status", status),
    ("rate-limited", |value| {
        let retry_after = number(value, 1)?;
        Some(Scenario::RateLimited { retry_after })
    }),
    ("quota-exhausted", |_| Some(Scenario::QuotaExhausted)),
    ("key-refused", |value| {
        let key = value.map(str::to_owned);
        Some(Scenario::KeyRefused { key })
    }),
    ("model-missing", |_| Some(Scenario::ModelMissing)),
    ("overloaded", |_| Some(Scenario::Overloaded)),
    ("html-200", |_| Some(Scenario::Html200)),
    ("empty-body", |_| Some(Scenario::EmptyBody)),
    ("truncated-json", |_| Some(Scenario::TruncatedJson)),
    ("wrong-content-type", |_| Some(Scenario::WrongContentType)),
    ("invalid-utf8", |_| Some(Scenario::InvalidUtf8)),
    ("huge-headers", |_| Some(Scenario::HugeHeaders)),
    ("huge-event", |value| {
        let bytes = number(value, 32 << 20)?;
        Some(Scenario::HugeEvent { bytes })
    }),
    ("reset-before-head", |_| Some(Scenario::ResetBeforeHead)),
    ("reset-mid-body", |value| {
        let after = number(value, 2)?;
        Some(Scenario::ResetMidBody { after })
    }),
    ("no-end", |_| Some(Scenario::NoEnd)),
    ("error-event", |_| Some(Scenario::ErrorEvent)),
    ("error-first", |_| Some(Scenario::ErrorFirst)),
    ("drip", |value| {
        let ms = number(value, 1)?;
        Some(Scenario::Drip { ms })
    }),
    ("stall", |value| {
        let after = number(value, 2)?;
        Some(Scenario::Stall { after })
    }),
    ("endless", |_| Some(Scenario::Endless)),
    ("no-usage", |_| Some(Scenario::NoUsage)),
    ("negative-usage", |_| Some(Scenario::NegativeUsage)),
    ("absurd-usage", |_| Some(Scenario::AbsurdUsage)),
    ("hang", |_| Some(Scenario::Hang)),
    ("refusal", |_| Some(Scenario::Refusal)),
    ("content-filter", |_| Some(Scenario::ContentFilter)),
    ("blocked", |_| Some(Scenario::Blocked)),
    ("length-stop", |_| Some(Scenario::LengthStop)),
    ("close-without-answer", |_| {
        Some(Scenario::CloseWithoutAnswer)
    }),
    ("reset-after-accept", |_| {
        Some(Scenario::LostAnswer { hang: false })
    }),
    ("hang-after-accept", |_| {
        Some(Scenario::LostAnswer { hang: true })
    }),
    ("fail", |_| Some(Scenario::Fail)),
    ("expire", |_| Some(Scenario::Expire)),
    ("partial", |value| {
        let count = number(value, 1)?;
        Some(Scenario::Partial { count })
    }),
    ("polls", |value| {
        let count = number(value, 3)?;
        Some(Scenario::PollReport { count })
    }),
    ("work-ms", |value| {
        let ms = number(value, 100)?;
        Some(Scenario::ChatRequest { ms })
    }),
    ("result-bytes", |value| {
        let bytes = number(value, 64 << 20)?;
        Some(Scenario::ResultBytes { bytes })
    }),
];

/// `503` or `503,{"any":"body"}`.
fn status(value: Option<&str>) -> Option<Scenario> {
    let value = value.unwrap_or("500");
    let (status, body) = match value.split_once(',') {
        Some((status, body)) => (status, Some(body.to_owned())),
        None => (value, None),
    };
    let status = status.trim().parse().ok()?;
    (200..=599)
        .contains(&status)
        .then_some(Scenario::Status(status, body))
}

fn number<T: FromStr>(value: Option<&str>, default: T) -> Option<T> {
    value.map_or(Some(default), |value| value.trim().parse().ok())
}

impl FromStr for Scenario {
    type Err = String;

    /// Reads `NAME` or `NAME=VALUE`; `ResetMidBody`, `reset_mid_body` and `reset-mid-body` are one.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let plain = |name: &str| name.replace(['-', '_'], "").to_lowercase();
        let wanted = plain(name.trim());
        let found = NAMES.iter().find(|(name, _)| plain(name) == wanted);
        found
            .and_then(|(_, make)| make(value))
            .ok_or_else(|| format!("no scenario is called `{text}`"))
    }
}
