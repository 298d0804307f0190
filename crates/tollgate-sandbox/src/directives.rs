//! Parses the `[[sandbox:…]]` directives in a prompt or in the last message of a chat (docs/sandbox.md).

use std::time::Duration;

const OPEN: &str = "[[sandbox:";
const CLOSE: &str = "]]";

/// The largest `N` of `words=N`.
const WORDS_MAX: u32 = 1_000_000;

/// The directives of one prompt. Different directives combine. If one is given twice, the last one counts, except
/// `tool`, which adds a call each time.
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
    /// `status=N`: fails as an upstream would that answers with HTTP status N, 100 to 599.
    pub status: Option<u16>,
    /// `say=TEXT`: the text of a chat's response.
    pub say: Option<String>,
    /// `tool=NAME`: the tools that a chat's response calls, with empty arguments.
    pub tools: Vec<String>,
    /// `cut=N`: a chat's stream breaks off after N content events.
    pub cut: Option<u32>,
    /// `words=N`: a chat's response has N words, at most a million.
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
    /// The upstream answers with this HTTP status.
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

    /// How an attempt fails that follows `failed_attempts` failed ones. `None` if it succeeds.
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
            ("tool", Some(value)) if !value.is_empty() => self.tools.push(value.to_owned()),
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

/// Parses a number of digits only: `parse` alone would also accept a sign.
fn parse_number<T: std::str::FromStr>(value: &str) -> Option<T> {
    if !value.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    value.parse().ok()
}

/// Stores `value` in `field` if there is one. Returns whether there was one.
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

    fn check(prompt: &str, expected: Directives, text: &str) {
        let (directives, left) = Directives::parse(prompt);
        assert_eq!(directives, expected, "{prompt}");
        assert_eq!(left, text, "{prompt}");
    }

    #[test]
    fn every_directive_is_parsed_and_removed_from_the_text() {
        let none = Directives::default;
        check("a cat", none(), "a cat");
        check(
            "a [[sandbox:fail]]cat",
            Directives {
                fail: true,
                ..none()
            },
            "a cat",
        );
        check(
            "[[sandbox:fail=2]][[sandbox:delay=1500]] x",
            Directives {
                fail_first: Some(2),
                delay: Some(Duration::from_millis(1500)),
                ..none()
            },
            " x",
        );
        check(
            "[[sandbox:partial=0]] [[sandbox:hang]]\n[[sandbox:moderated]]",
            Directives {
                partial: Some(0),
                hang: true,
                moderated: true,
                ..none()
            },
            " \n",
        );
        check(
            "[[sandbox:say=one = 1,\n[two]]] [[sandbox:tool=a]][[sandbox:tool=b.c]]",
            Directives {
                say: Some("one = 1,\n[two".to_owned()),
                tools: vec!["a".to_owned(), "b.c".to_owned()],
                ..none()
            },
            "] ",
        );
        check(
            "[[sandbox:say=]][[sandbox:cut=3]][[sandbox:words=0]]",
            Directives {
                say: Some(String::new()),
                cut: Some(3),
                words: Some(0),
                ..none()
            },
            "",
        );
        check(
            "猫[[sandbox:status=503]]",
            Directives {
                status: Some(503),
                ..none()
            },
            "猫",
        );
    }

    #[test]
    fn the_last_of_two_equal_directives_counts() {
        let (directives, _) = Directives::parse("[[sandbox:delay=1]][[sandbox:delay=2]]");
        assert_eq!(directives.delay, Some(Duration::from_millis(2)));
    }

    #[test]
    fn malformed_directives_stay_in_the_text() {
        for prompt in [
            "[[sandbox:]]",
            "[[sandbox:fail",
            "[[sandbox:fail=]]",
            "[[sandbox:fail=-1]]",
            "[[sandbox:fail=+1]]",
            "[[sandbox:fail=1.5]]",
            "[[sandbox:fail=99999999999]]",
            "[[sandbox:status=99]]",
            "[[sandbox:status=600]]",
            "[[sandbox:partial]]",
            "[[sandbox:delay=5s]]",
            "[[sandbox:hang=1]]",
            "[[sandbox:Fail]]",
            "[[ sandbox:fail]]",
            "[sandbox:fail]",
            "[[sandbox:unknown]]",
            "[[sandbox:say]]",
            "[[sandbox:tool=]]",
            "[[sandbox:cut=]]",
            "[[sandbox:words=1000001]]",
            "[[sandbox:[[sandbox:",
        ] {
            check(prompt, Directives::default(), prompt);
        }
    }

    #[test]
    fn a_directive_inside_a_malformed_one_is_applied() {
        check(
            "[[sandbox:x [[sandbox:fail]] y",
            Directives {
                fail: true,
                ..Directives::default()
            },
            "[[sandbox:x  y",
        );
    }

    #[test]
    fn fail_n_fails_the_first_n_attempts() {
        let mode = |prompt, failed| Directives::parse(prompt).0.failure_mode(failed);
        assert_eq!(
            mode("[[sandbox:fail=2]]", 0),
            Some(FailureMode::FailsAttempt(1))
        );
        assert_eq!(
            mode("[[sandbox:fail=2]]", 1),
            Some(FailureMode::FailsAttempt(2))
        );
        assert_eq!(mode("[[sandbox:fail=2]]", 2), None);
        let both = "[[sandbox:fail=1]][[sandbox:status=503]]";
        assert_eq!(mode(both, 0), Some(FailureMode::Status(503)));
        assert_eq!(mode(both, 1), None);
        assert_eq!(
            mode("[[sandbox:status=503]]", 9),
            Some(FailureMode::Status(503))
        );
        assert_eq!(mode("[[sandbox:fail]]", 9), Some(FailureMode::Fails));
        assert_eq!(mode("hello", 0), None);
    }
}
