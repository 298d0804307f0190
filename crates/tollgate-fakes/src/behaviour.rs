//! The ways in which a fake can behave, and their names.

use std::str::FromStr;

/// How a fake answers a request that it does not refuse.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Behaviour {
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
    /// The key is refused: every key, or only this one.
    KeyRefused {
        /// The only key to refuse.
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
    /// The model refuses.
    Refusal,
    /// The answer is cut by the content filter; media are refused by it once they are made.
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
    /// Media: the work fails.
    Fail,
    /// Media: the work is not done in time.
    Expire,
    /// Media: so many of the results that were asked for are good.
    Partial {
        /// Good results.
        count: usize,
    },
    /// Media: the task is done at this poll, not before.
    Polls {
        /// Counted from 1.
        count: u32,
    },
    /// Media: the work takes so long.
    Work {
        /// Milliseconds.
        ms: u64,
    },
    /// Media: a result is at least so large.
    ResultBytes {
        /// Bytes of the file.
        bytes: u64,
    },
}

impl Behaviour {
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
                | Self::Polls { .. }
                | Self::Work { .. }
                | Self::ResultBytes { .. }
                | Self::Blocked
                | Self::ContentFilter
        )
    }
}

/// What makes a behaviour of the text after `=`.
type Make = fn(Option<&str>) -> Option<Behaviour>;

const NAMES: &[(&str, Make)] = &[
    ("normal", |_| Some(Behaviour::Normal)),
    ("status", status),
    ("rate-limited", |value| {
        let retry_after = number(value, 1)?;
        Some(Behaviour::RateLimited { retry_after })
    }),
    ("quota-exhausted", |_| Some(Behaviour::QuotaExhausted)),
    ("key-refused", |value| {
        let key = value.map(str::to_owned);
        Some(Behaviour::KeyRefused { key })
    }),
    ("model-missing", |_| Some(Behaviour::ModelMissing)),
    ("overloaded", |_| Some(Behaviour::Overloaded)),
    ("html-200", |_| Some(Behaviour::Html200)),
    ("empty-body", |_| Some(Behaviour::EmptyBody)),
    ("truncated-json", |_| Some(Behaviour::TruncatedJson)),
    ("wrong-content-type", |_| Some(Behaviour::WrongContentType)),
    ("invalid-utf8", |_| Some(Behaviour::InvalidUtf8)),
    ("huge-headers", |_| Some(Behaviour::HugeHeaders)),
    ("huge-event", |value| {
        let bytes = number(value, 32 << 20)?;
        Some(Behaviour::HugeEvent { bytes })
    }),
    ("reset-before-head", |_| Some(Behaviour::ResetBeforeHead)),
    ("reset-mid-body", |value| {
        let after = number(value, 2)?;
        Some(Behaviour::ResetMidBody { after })
    }),
    ("no-end", |_| Some(Behaviour::NoEnd)),
    ("error-event", |_| Some(Behaviour::ErrorEvent)),
    ("error-first", |_| Some(Behaviour::ErrorFirst)),
    ("drip", |value| {
        let ms = number(value, 1)?;
        Some(Behaviour::Drip { ms })
    }),
    ("stall", |value| {
        let after = number(value, 2)?;
        Some(Behaviour::Stall { after })
    }),
    ("endless", |_| Some(Behaviour::Endless)),
    ("no-usage", |_| Some(Behaviour::NoUsage)),
    ("negative-usage", |_| Some(Behaviour::NegativeUsage)),
    ("absurd-usage", |_| Some(Behaviour::AbsurdUsage)),
    ("hang", |_| Some(Behaviour::Hang)),
    ("refusal", |_| Some(Behaviour::Refusal)),
    ("content-filter", |_| Some(Behaviour::ContentFilter)),
    ("blocked", |_| Some(Behaviour::Blocked)),
    ("length-stop", |_| Some(Behaviour::LengthStop)),
    ("close-without-answer", |_| {
        Some(Behaviour::CloseWithoutAnswer)
    }),
    ("reset-after-accept", |_| {
        Some(Behaviour::LostAnswer { hang: false })
    }),
    ("hang-after-accept", |_| {
        Some(Behaviour::LostAnswer { hang: true })
    }),
    ("fail", |_| Some(Behaviour::Fail)),
    ("expire", |_| Some(Behaviour::Expire)),
    ("partial", |value| {
        let count = number(value, 1)?;
        Some(Behaviour::Partial { count })
    }),
    ("polls", |value| {
        let count = number(value, 3)?;
        Some(Behaviour::Polls { count })
    }),
    ("work-ms", |value| {
        let ms = number(value, 100)?;
        Some(Behaviour::Work { ms })
    }),
    ("result-bytes", |value| {
        let bytes = number(value, 64 << 20)?;
        Some(Behaviour::ResultBytes { bytes })
    }),
];

/// `503` or `503,{"any":"body"}`.
fn status(value: Option<&str>) -> Option<Behaviour> {
    let value = value.unwrap_or("500");
    let (status, body) = match value.split_once(',') {
        Some((status, body)) => (status, Some(body.to_owned())),
        None => (value, None),
    };
    let status = status.trim().parse().ok()?;
    (200..=599)
        .contains(&status)
        .then_some(Behaviour::Status(status, body))
}

fn number<T: FromStr>(value: Option<&str>, default: T) -> Option<T> {
    value.map_or(Some(default), |value| value.trim().parse().ok())
}

impl FromStr for Behaviour {
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
            .ok_or_else(|| format!("no behaviour is called `{text}`"))
    }
}
