//! Parses the `[[sandbox:…]]` directives in a prompt or in the last message of a chat (docs/sandbox.md).

use std::time::Duration;

const OPEN: &str = "[[sandbox:";
const CLOSE: &str = "]]";

/// The largest `N` of `words=N`.
const WORDS_MAX: u32 = 1_000_000;
/// The maximum number of `tool` directives.
const CALLS_MAX: usize = 128;

/// The directives of one prompt. Different directives combine. If one is given twice, the last one is used, except `tool`, which adds a call each
/// time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Directives {
    /// `fail`: every attempt fails and is not retried.
    pub fail: bool,
    /// `fail=N`: the first N attempts fail.
    pub fail_first: Option<u32>,
    /// `partial=K`: only the first K results are delivered.
    pub partial: Option<u32>,
    /// `delay=MS`: how long a call takes, in milliseconds (32 bits: at most 49 days), instead of the configured time.
    pub delay: Option<Duration>,
    /// `hang`: the call never returns.
    pub hang: bool,
    /// `moderated`: the safety review rejects the prompt.
    pub moderated: bool,
    /// `status=N`: fails like an upstream that returns HTTP status N, 100 to 599.
    pub status: Option<u16>,
    /// `say=TEXT`: the text of a chat's response.
    pub say: Option<String>,
    /// `tool=NAME` or `tool=NAME {…}`: the tools that a chat's response calls, at most 128, with their arguments, a JSON object.
    pub tools: Vec<(String, String)>,
    /// `cut=N`: a chat's stream breaks off after N content events.
    pub cut: Option<u32>,
    /// `words=N`: a chat's response has N words, at most a million, until the token limit.
    pub words: Option<u32>,
}

/// How the directives make an attempt fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureMode {
    /// The safety review rejects the prompt.
    Moderated,
    /// The attempt fails and is not retried.
    Fails,
    /// This attempt fails and can be retried. Holds the number of the attempt, from 1.
    FailsAttempt(u64),
    /// The upstream returns this HTTP status.
    Status(u16),
}

impl Directives {
    /// The directives of `prompt`, and the prompt without them. A malformed directive (an unknown name, a missing or
    /// invalid number) stays in the text.
    pub fn parse(prompt: &str) -> (Self, String) {
        let mut directives = Self::default();
        let mut text = String::with_capacity(prompt.len());
        let mut rest = prompt;
        while let Some(start) = rest.find(OPEN) {
            let inner = &rest[start + OPEN.len()..];
            let end = inner
                .find(CLOSE)
                .filter(|&end| directives.apply(&inner[..end]));
            match end {
                Some(end) => {
                    text.push_str(&rest[..start]);
                    rest = &inner[end + CLOSE.len()..];
                }
                None => {
                    text.push_str(&rest[..start + OPEN.len()]);
                    rest = inner;
                }
            }
        }
        text.push_str(rest);
        (directives, text)
    }

    /// How an attempt fails after `failed_attempts` failed ones. `None` if it succeeds.
    ///
    /// With both `fail=N` and `status=M`, the first N attempts fail with status M and later ones succeed.
    pub fn failure_mode(&self, failed_attempts: u32) -> Option<FailureMode> {
        if self.moderated {
            return Some(FailureMode::Moderated);
        }
        if self.fail {
            return Some(FailureMode::Fails);
        }
        let this_one_fails = self.fail_first.map(|n| failed_attempts < n);
        match (self.status, this_one_fails) {
            (_, Some(false)) | (None, None) => None,
            (Some(status), _) => Some(FailureMode::Status(status)),
            (None, Some(true)) => Some(FailureMode::FailsAttempt(u64::from(failed_attempts) + 1)),
        }
    }

    /// Applies one directive, given without its brackets (`fail=2`). Returns false if it is malformed.
    fn apply(&mut self, inside: &str) -> bool {
        let (name, value) = match inside.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (inside, None),
        };
        match (name, value) {
            ("fail", None) => self.fail = true,
            ("hang", None) => self.hang = true,
            ("moderated", None) => self.moderated = true,
            ("fail", Some(value)) => return set(&mut self.fail_first, parse_number(value)),
            ("partial", Some(value)) => return set(&mut self.partial, parse_number(value)),
            ("delay", Some(value)) => {
                let delay = parse_number::<u32>(value).map(|ms| Duration::from_millis(ms.into()));
                return set(&mut self.delay, delay);
            }
            ("status", Some(value)) => {
                let status = parse_number(value).filter(|status| (100..600).contains(status));
                return set(&mut self.status, status);
            }
            ("say", Some(value)) => self.say = Some(value.to_owned()),
            ("tool", Some(value)) if !value.is_empty() && self.tools.len() < CALLS_MAX => {
                self.tools.push(parse_call(value));
            }
            ("cut", Some(value)) => return set(&mut self.cut, parse_number(value)),
            ("words", Some(value)) => {
                let words = parse_number(value).filter(|words| *words <= WORDS_MAX);
                return set(&mut self.words, words);
            }
            _ => return false,
        }
        true
    }
}

/// The name and arguments of a call: the arguments of `NAME` alone are `{}`.
fn parse_call(value: &str) -> (String, String) {
    let with_arguments = value.split_once(' ').filter(|(_, arguments)| {
        serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(arguments).is_ok()
    });
    let (name, arguments) = with_arguments.unwrap_or((value, "{}"));
    (name.to_owned(), arguments.to_owned())
}

/// Parses a number that consists of digits only: `parse` alone would also accept a sign.
fn parse_number<T: std::str::FromStr>(value: &str) -> Option<T> {
    if !value.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    value.parse().ok()
}

/// Stores `value` in `field` if it is `Some`. Returns whether it is.
fn set<T>(field: &mut Option<T>, value: Option<T>) -> bool {
    let is_valid = value.is_some();
    if is_valid {
        *field = value;
    }
    is_valid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_directive_is_parsed_and_removed_from_the_text() {
        type Expect = fn(&mut Directives);
        let cases: [(&str, &str, Expect); 10] = [
            ("a cat", "a cat", |_| {}),
            ("a [[sandbox:fail]]cat", "a cat", |d| d.fail = true),
            ("[[sandbox:fail=2]][[sandbox:delay=1500]] x", " x", |d| {
                (d.fail_first, d.delay) = (Some(2), Some(Duration::from_millis(1500)));
            }),
            (
                "[[sandbox:partial=0]] [[sandbox:hang]]\n[[sandbox:moderated]]",
                " \n",
                |d| {
                    (d.partial, d.hang, d.moderated) = (Some(0), true, true);
                },
            ),
            (
                "[[sandbox:say=one = 1,\n[two]]] [[sandbox:tool=a]][[sandbox:tool=b.c]]",
                "] ",
                |d| {
                    d.say = Some("one = 1,\n[two".to_owned());
                    d.tools = ["a", "b.c"]
                        .map(|name| (name.to_owned(), "{}".to_owned()))
                        .into();
                },
            ),
            (
                r#"[[sandbox:tool=a {"b": [[1]]}]][[sandbox:tool=a {"b": [1, 2]}]][[sandbox:tool=c d]]"#,
                "}]]",
                |d| {
                    let calls = [
                        (r#"a {"b": [[1"#, "{}"),
                        ("a", r#"{"b": [1, 2]}"#),
                        ("c d", "{}"),
                    ];
                    d.tools = calls.map(|(a, b)| (a.to_owned(), b.to_owned())).into();
                },
            ),
            (
                "[[sandbox:say=]][[sandbox:cut=3]][[sandbox:words=0]]",
                "",
                |d| {
                    (d.say, d.cut, d.words) = (Some(String::new()), Some(3), Some(0));
                },
            ),
            ("猫[[sandbox:status=503]]", "猫", |d| d.status = Some(503)),
            // Of two directives the last is used; a directive inside a malformed one is applied.
            ("[[sandbox:delay=1]][[sandbox:delay=2]]", "", |d| {
                d.delay = Some(Duration::from_millis(2))
            }),
            ("[[sandbox:x [[sandbox:fail]] y", "[[sandbox:x  y", |d| {
                d.fail = true
            }),
        ];
        for (prompt, text, expect) in cases {
            let mut expected = Directives::default();
            expect(&mut expected);
            assert_eq!(
                Directives::parse(prompt),
                (expected, text.to_owned()),
                "{prompt}"
            );
        }
    }

    #[test]
    fn directives_beyond_the_maximum_number_of_calls_stay_in_the_text() {
        let tool = "[[sandbox:tool=a]]";
        let (directives, text) = Directives::parse(&tool.repeat(CALLS_MAX + 2));
        assert_eq!(directives.tools.len(), CALLS_MAX);
        assert_eq!(text, tool.repeat(2));
    }

    const MALFORMED: &str = "\
        : :fail= :fail=-1 :fail=+1 :fail=1.5 :fail=99999999999 :status=99 :status=600 :partial \
        :delay=5s :hang=1 :Fail :unknown :say :tool= :cut= :words=1000001";

    #[test]
    fn malformed_directives_stay_in_the_text() {
        for inner in MALFORMED.split(' ') {
            for prompt in [
                format!("[[sandbox{inner}]]"),
                format!("[[ sandbox{inner}]]"),
                format!("[[sandbox{inner}"),
            ] {
                let expected = (Directives::default(), prompt.clone());
                assert_eq!(Directives::parse(&prompt), expected, "{prompt}");
            }
        }
    }

    #[test]
    fn fail_n_fails_the_first_n_attempts() {
        use FailureMode::{Fails, FailsAttempt, Status};
        for (prompt, failed, mode) in [
            ("[[sandbox:fail=2]]", 0, Some(FailsAttempt(1))),
            ("[[sandbox:fail=2]]", 1, Some(FailsAttempt(2))),
            ("[[sandbox:fail=2]]", 2, None),
            (
                "[[sandbox:fail=1]][[sandbox:status=503]]",
                0,
                Some(Status(503)),
            ),
            ("[[sandbox:fail=1]][[sandbox:status=503]]", 1, None),
            ("[[sandbox:status=503]]", 9, Some(Status(503))),
            ("[[sandbox:fail]]", 9, Some(Fails)),
            ("hello", 0, None),
        ] {
            let directives = Directives::parse(prompt).0;
            assert_eq!(directives.failure_mode(failed), mode, "{prompt} {failed}");
        }
    }
}
