//! Reads the `[[sandbox:…]]` directives out of a prompt, or out of a chat's last message.

use std::time::Duration;

const OPEN: &str = "[[sandbox:";
const CLOSE: &str = "]]";

/// More words than anybody reads.
const WORDS_MAX: u32 = 1_000_000;

/// What a prompt tells the sandbox to do besides its work. Directives combine; of two that say the
/// same thing the later one counts, but tools are called one after the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Directives {
    /// `fail`: every attempt fails for good.
    pub fail: bool,
    /// `fail=N`: the first N attempts fail.
    pub fail_first: Option<u32>,
    /// `partial=K`: only the first K pictures are delivered.
    pub partial: Option<u32>,
    /// `delay=MS`: takes this long instead of the configured time. At most 49 days.
    pub delay: Option<Duration>,
    /// `hang`: never answers.
    pub hang: bool,
    /// `moderated`: the safety review refuses the prompt.
    pub moderated: bool,
    /// `status=N`: answers as an upstream's HTTP status N would, 100 to 599.
    pub status: Option<u16>,
    /// `say=TEXT`: a chat answers this.
    pub say: Option<String>,
    /// `tool=NAME`: a chat calls these tools with no arguments.
    pub tools: Vec<String>,
    /// `cut=N`: a chat's stream breaks off after N chunks of its content.
    pub cut: Option<u32>,
    /// `words=N`: a chat answers that many words, up to a million.
    pub words: Option<u32>,
}

/// How an attempt ends that the directives doom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Doom {
    /// The safety review refuses.
    Moderated,
    /// It fails for good.
    Fails,
    /// This attempt fails; a later one will not. The number of the attempt, from 1.
    FailsNow(u64),
    /// The upstream answers with this HTTP status.
    Status(u16),
}

impl Directives {
    /// The directives of `prompt`, and the prompt without them. What is not a directive in every
    /// detail (an unknown name, a missing or malformed number) stays in the text.
    pub fn parse(prompt: &str) -> (Self, String) {
        let mut directives = Self::default();
        let mut text = String::with_capacity(prompt.len());
        let mut rest = prompt;
        while let Some(start) = rest.find(OPEN) {
            let inner = &rest[start + OPEN.len()..];
            let taken = inner
                .find(CLOSE)
                .filter(|&end| directives.take(&inner[..end]));
            match taken {
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

    /// How an attempt ends before which `failed_attempts` have failed; none where it goes well.
    ///
    /// With `fail=N` and `status=N` together, the failing attempts answer with that status and the
    /// ones after them succeed, as `fail=N` promises.
    pub fn doom(&self, failed_attempts: u32) -> Option<Doom> {
        if self.moderated {
            return Some(Doom::Moderated);
        }
        if self.fail {
            return Some(Doom::Fails);
        }
        let this_one_fails = self.fail_first.map(|n| failed_attempts < n);
        match (self.status, this_one_fails) {
            (_, Some(false)) | (None, None) => None,
            (Some(status), _) => Some(Doom::Status(status)),
            (None, Some(true)) => Some(Doom::FailsNow(u64::from(failed_attempts) + 1)),
        }
    }

    /// Takes one directive's inside (`fail=2`); false where it is none.
    fn take(&mut self, inside: &str) -> bool {
        let (name, value) = match inside.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (inside, None),
        };
        match (name, value) {
            ("fail", None) => self.fail = true,
            ("hang", None) => self.hang = true,
            ("moderated", None) => self.moderated = true,
            ("fail", Some(value)) => return put(&mut self.fail_first, number(value)),
            ("partial", Some(value)) => return put(&mut self.partial, number(value)),
            ("delay", Some(value)) => {
                let delay = number::<u32>(value).map(|ms| Duration::from_millis(ms.into()));
                return put(&mut self.delay, delay);
            }
            ("status", Some(value)) => {
                let status = number(value).filter(|status| (100..600).contains(status));
                return put(&mut self.status, status);
            }
            ("say", Some(value)) => self.say = Some(value.to_owned()),
            ("tool", Some(value)) if !value.is_empty() => self.tools.push(value.to_owned()),
            ("cut", Some(value)) => return put(&mut self.cut, number(value)),
            ("words", Some(value)) => {
                let words = number(value).filter(|words| *words <= WORDS_MAX);
                return put(&mut self.words, words);
            }
            _ => return false,
        }
        true
    }
}

/// Digits only: `parse` alone would also take a sign.
fn number<T: std::str::FromStr>(value: &str) -> Option<T> {
    if !value.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    value.parse().ok()
}

fn put<T>(slot: &mut Option<T>, value: Option<T>) -> bool {
    let fits = value.is_some();
    if fits {
        *slot = value;
    }
    fits
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
    fn every_directive_is_read_and_taken_out() {
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
    fn the_later_of_two_counts() {
        let (directives, _) = Directives::parse("[[sandbox:delay=1]][[sandbox:delay=2]]");
        assert_eq!(directives.delay, Some(Duration::from_millis(2)));
    }

    #[test]
    fn malformed_directives_stay_text() {
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
    fn a_directive_inside_a_broken_one_is_found() {
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
    fn failing_attempts_are_counted() {
        let doom = |prompt, failed| Directives::parse(prompt).0.doom(failed);
        assert_eq!(doom("[[sandbox:fail=2]]", 0), Some(Doom::FailsNow(1)));
        assert_eq!(doom("[[sandbox:fail=2]]", 1), Some(Doom::FailsNow(2)));
        assert_eq!(doom("[[sandbox:fail=2]]", 2), None);
        let both = "[[sandbox:fail=1]][[sandbox:status=503]]";
        assert_eq!(doom(both, 0), Some(Doom::Status(503)));
        assert_eq!(doom(both, 1), None);
        assert_eq!(doom("[[sandbox:status=503]]", 9), Some(Doom::Status(503)));
        assert_eq!(doom("[[sandbox:fail]]", 9), Some(Doom::Fails));
        assert_eq!(doom("hello", 0), None);
    }
}
