//! The scenarios (failures, delays, outcomes) of a fake, and their names.

use std::str::FromStr;

/// Creates a scenario from the text after `=`.
type Make = fn(Option<&str>) -> Option<Scenario>;

/// Scenarios by their names: without a value, or with a number that has a default.
macro_rules! scenarios {
    ($(
        $(#[$doc:meta])*
        $name:literal $variant:ident $({ $field:ident: $type:ty = $default:expr, $unit:literal })?
    )*) => {
        /// How a fake handles a request that it does not reject.
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum Scenario {
            $($(#[$doc])* $variant $({ #[doc = $unit] $field: $type })?,)*
            /// An error with this status in the provider's own format, or with this body.
            Status(u16, Option<String>),
            /// The key is rejected: every key, or only this one.
            KeyRefused {
                /// The only key to reject.
                key: Option<String>,
            },
            /// The request is carried out, but the response is lost: a reset, or nothing at all.
            LostResponse {
                /// Whether nothing is sent instead of a reset.
                hang: bool,
            },
        }

        const NAMES: &[(&str, Make)] = &[
            $(($name, |_value| {
                Some(Scenario::$variant $({ $field: number(_value, $default)? })?)
            }),)*
            ("status", status),
            ("key-refused", |key| Some(Scenario::KeyRefused { key: key.map(str::to_owned) })),
            ("reset-after-accept", |_| Some(Scenario::LostResponse { hang: false })),
            ("hang-after-accept", |_| Some(Scenario::LostResponse { hang: true })),
        ];
    };
}

scenarios! {
    /// Behaves like the real provider.
    "normal" Normal
    /// Too many requests; try again later.
    "rate-limited" RateLimited { retry_after: u64 = 1, "Seconds." }
    /// The account has no credit left.
    "quota-exhausted" QuotaExhausted
    /// The provider does not know the model.
    "model-missing" ModelMissing
    /// The provider is overloaded.
    "overloaded" Overloaded
    /// Status 200 with an HTML page.
    "html-200" Html200
    /// Status 200 with an empty body.
    "empty-body" EmptyBody
    /// JSON is cut in the middle; a stream ends inside an event.
    "truncated-json" TruncatedJson
    /// The correct body with the content type `text/plain`.
    "wrong-content-type" WrongContentType
    /// The first string of the body is not UTF-8.
    "invalid-utf8" InvalidUtf8
    /// Hundreds of kilobytes of headers.
    "huge-headers" HugeHeaders
    /// The complete text in one event.
    "huge-event" HugeEvent { bytes: usize = 32 << 20, "Bytes of text." }
    /// The connection is reset before the head of the response.
    "reset-before-head" ResetBeforeHead
    /// The connection is reset after that many events; half-way if the response has no events.
    "reset-mid-body" ResetMidBody { after: usize = 2, "Events that are sent." }
    /// The stream ends without its last event; JSON is cut in the middle.
    "no-end" NoEnd
    /// An error event in the middle of the stream.
    "error-event" ErrorEvent
    /// Status 200, then an error as the first event.
    "error-first" ErrorFirst
    /// Sends one byte at a time.
    "drip" Drip { ms: u64 = 1, "Milliseconds between two bytes." }
    /// After that many events nothing more is sent, and the connection stays open.
    "stall" Stall { after: usize = 2, "Events that are sent." }
    /// The stream continues until the client disconnects.
    "endless" Endless
    /// After the beginning only comments are sent, without end.
    "pings" Pings
    /// No response or event contains usage.
    "no-usage" NoUsage
    /// Every number of the usage is negative.
    "negative-usage" NegativeUsage
    /// Every number of the usage is near the maximum of 64 bits.
    "absurd-usage" AbsurdUsage
    /// No response is ever sent.
    "hang" Hang
    /// The model refuses.
    "refusal" Refusal
    /// The content filter cuts off the output; it rejects generated media.
    "content-filter" ContentFilter
    /// The prompt is blocked.
    "blocked" Blocked
    /// The output ends at the limit of tokens.
    "length-stop" LengthStop
    /// The connection is closed cleanly without a response.
    "close-without-response" CloseWithoutResponse
    /// Media: the work fails.
    "fail" Fail
    /// Media: the work does not end in time.
    "expire" Expire
    /// Media: not all requested results are generated.
    "partial" Partial { count: usize = 1, "Generated results." }
    /// Media: the task ends at this poll, not earlier.
    "polls" Polls { count: u32 = 3, "Counted from 1." }
    /// Media: the duration of the work.
    "work-ms" Work { ms: u64 = 100, "Milliseconds." }
    /// Media: the minimum size of a result.
    "result-bytes" ResultBytes { bytes: u64 = 64 << 20, "Bytes of the file." }
}

impl Scenario {
    /// Whether the provider itself ends a response before its end.
    pub(crate) fn breaks_off(&self) -> bool {
        matches!(
            self,
            Self::ErrorEvent
                | Self::ErrorFirst
                | Self::TruncatedJson
                | Self::NoEnd
                | Self::InvalidUtf8
                | Self::ResetMidBody { .. }
        )
    }

    /// One scenario of each kind, with the values that a name without a value implies.
    pub fn all() -> Vec<Self> {
        let names = NAMES.iter();
        names.filter_map(|(_, make)| make(None)).collect()
    }
}

/// Parses `503` or `503,{"any":"body"}`. `None` if the status is not a number from 200 to 599.
fn status(value: Option<&str>) -> Option<Scenario> {
    let value = value.unwrap_or("500");
    let (status, body) = match value.split_once(',') {
        Some((status, body)) => (status, Some(body.to_owned())),
        None => (value, None),
    };
    let status = status.trim().parse().ok()?;
    let is_status = (200..=599).contains(&status);
    is_status.then_some(Scenario::Status(status, body))
}

fn number<T: FromStr>(value: Option<&str>, default: T) -> Option<T> {
    value.map_or(Some(default), |value| value.trim().parse().ok())
}

impl FromStr for Scenario {
    type Err = String;

    /// Parses `NAME` or `NAME=VALUE`; `ResetMidBody`, `reset_mid_body` and `reset-mid-body` are equivalent.
    fn from_str(text: &str) -> Result<Self, String> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (text, None),
        };
        let letters = |name: &str| name.replace(['-', '_'], "").to_lowercase();
        let wanted = letters(name.trim());
        let found = NAMES.iter().find(|(name, _)| letters(name) == wanted);
        found
            .and_then(|(_, make)| make(value))
            .ok_or_else(|| format!("no scenario is called `{text}`"))
    }
}
