//! Checks that each concept has one name, the usual one of the field (CONTRIBUTING.md, Language): finds banned words in identifiers, paths,
//! comments, texts and documents.

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use super::source::is_doc;
use super::subject::{Subject, Violation};

/// A banned word and its replacement.
type Word = (&'static str, &'static str);

/// Banned everywhere: identifiers, names of files and folders, comments, documents.
const BANNED: &[Word] = &[
    ("film", "video"),
    ("films", "videos"),
    ("garbled", "malformed"),
    ("glance", "summary"),
    ("patience", "timeout"),
    ("payer", "account"),
    ("payers", "accounts"),
    ("picture", "image"),
    ("pictures", "images"),
    ("purse", "account"),
    ("unfit", "unsupported"),
    ("verdict", "classification"),
    ("verdicts", "classifications"),
];

/// Words that are banned in identifiers and names of files and folders only: in a sentence they are ordinary English.
const BANNED_IN_NAMES: &[Word] = &[
    ("answer", "response"),
    ("answered", "replied, responded"),
    ("answers", "responses"),
    ("ask", "request"),
    ("asked", "requested"),
    ("asks", "requests"),
    ("begun", "started"),
    ("booth", "provider or fixture"),
    ("call_off", "cancel"),
    ("came", "received"),
    ("carried", "forwarded, supported"),
    ("carrier", "channel, message or header"),
    ("carries", "forwards, supports"),
    ("complain", "print_… or reject"),
    ("course", "scenario"),
    ("crowd", "backlog"),
    ("desk", "provider or fixture"),
    ("dice", "rng"),
    ("entrance", "service"),
    ("fact", "metadata"),
    ("facts", "metadata"),
    ("fate", "what happens to it: mapping, outcome"),
    ("foretell", "prime"),
    ("forgiven", "written_off"),
    ("gate", "gateway"),
    ("house", "provider or fixture"),
    ("judge", "classify"),
    ("knobs", "sampling"),
    ("leftover", "body_drain"),
    ("life", "ttl"),
    ("made", "output, result or created"),
    ("maker", "builder, generator or provider"),
    ("misfit", "error or mismatch"),
    ("mount", "endpoint"),
    ("nap", "cooldown"),
    ("patiently", "with_retry"),
    ("refused", "rejected"),
    ("rhythm", "poll_interval"),
    ("said", "message"),
    ("seal", "checksum"),
    ("seat", "permit"),
    ("shelf", "storage"),
    ("shop", "provider or fixture"),
    ("sieve", "base64_stream"),
    ("sift", "filter or parse"),
    ("skim", "lazy_json"),
    ("slot", "permit"),
    ("sound", "audio or speech"),
    ("spoken", "speech or model_binding"),
    ("standing", "state"),
    ("storm", "stress"),
    ("studio", "provider or fixture"),
    ("talk", "conversation"),
    ("tell_off", "cancel"),
    ("ticket", "provider_job_id"),
    ("told", "error message"),
    ("trap", "the behaviour that the test proves"),
    ("trouble", "failure"),
    ("unasked", "unrequested"),
    ("wish", "scenario"),
    ("world", "model or fixture"),
];

/// Phrases banned in comments, texts and documents.
const BANNED_PHRASES: &[Word] = &[
    ("call off", "cancel"),
    ("called off", "cancelled"),
    ("calls off", "cancels"),
    ("key rests", "key is in cooldown"),
    ("model rests", "model is in cooldown"),
    ("none where", "`None` if"),
    ("none when", "`None` if"),
    ("spec's", "the catalogue's, or what is meant"),
    ("what becomes of", "how it is mapped, translated or handled"),
];

/// Names that do not say what a function does, even as a method.
const BARE_FUNCTIONS: &[Word] = &[("of", "for_…, from_…, parse or new")];

/// Names that say what a function does only together with its type: methods may have them.
const BARE_FREE_FUNCTIONS: &[Word] = &[("read", "read_… or parse_…")];

/// Exceptions, where a banned word is correct: the beginning of a path, the word, the reason.
const ALLOWED: &[(&str, &str, &str)] = &[
    (
        "xtask/src/tidy/vocabulary.rs",
        "",
        "the list of the banned words",
    ),
    (
        "crates/tollgate-server/src/provider_keys.rs",
        "seal",
        "the function of the cipher's crate that encrypts",
    ),
    (
        "crates/tollgate-server/src/chat/sealed_memory.rs",
        "seal",
        "the function of the cipher's crate that encrypts",
    ),
    (
        "crates/tollgate-sandbox/src/video/",
        "picture",
        "H.264's own term: picture parameter set",
    ),
    (
        "docs/providers/ark.md",
        "picture",
        "quotes the text that is sent to the model",
    ),
    (
        "crates/tollgate-upstream/src/ark/prompt.rs",
        "picture",
        "text that is sent to the model",
    ),
    (
        "crates/tollgate-fakes/",
        "refused",
        "the scenario `key-refused`: its name is on the wire, and used by the tests of other crates",
    ),
];

pub(super) fn check(subject: &Subject<'_>) -> Vec<Violation> {
    let mut found = Vec::new();
    for path in &subject.tree.paths {
        let names = path.split('/').flat_map(banned_words);
        found.extend(names.map(|word| violation(path, 1, "path", word)));
    }
    for file in subject.tree.rust() {
        if let Ok(tokens) = file.text.parse::<TokenStream>() {
            check_function_names(&file.path, tokens.clone(), false, &mut found);
            check_identifiers(&file.path, tokens, &mut found);
        }
        for (line, comment) in comments(&file.text) {
            check_prose(&file.path, || line, "comment", comment, &mut found);
        }
    }
    for file in subject
        .tree
        .files
        .iter()
        .filter(|f| f.path.ends_with(".md"))
    {
        for (at, line) in file.text.lines().enumerate() {
            check_prose(&file.path, || at + 1, "text", line, &mut found);
        }
    }
    found.retain(|violation| !is_allowed(violation));
    found.dedup();
    found
}

fn check_identifiers(path: &str, tokens: TokenStream, found: &mut Vec<Violation>) {
    for tree in tokens {
        match tree {
            // A doc comment, which is checked with the other comments.
            TokenTree::Group(group) if is_doc(&group.stream()) => {}
            TokenTree::Group(group) => check_identifiers(path, group.stream(), found),
            TokenTree::Ident(identifier) => {
                let text = identifier.to_string();
                let hits = banned_words(&text);
                let line = || identifier.span().start().line;
                found.extend(hits.map(|word| violation(path, line(), "identifier", word)));
            }
            TokenTree::Literal(literal) if !path.contains("/tests/") => {
                let line = || literal.span().start().line;
                check_prose(path, line, "text", &literal.to_string(), found);
            }
            TokenTree::Literal(_) | TokenTree::Punct(_) => {}
        }
    }
}

/// `is_type` is true for the items of an `impl` or a trait.
fn check_function_names(
    path: &str,
    tokens: TokenStream,
    is_type: bool,
    found: &mut Vec<Violation>,
) {
    let (mut follows_fn, mut begins_type) = (false, false);
    for tree in tokens {
        match tree {
            TokenTree::Group(group) => {
                let is_body = group.delimiter() == Delimiter::Brace;
                check_function_names(path, group.stream(), is_body && begins_type, found);
                begins_type &= !is_body;
                follows_fn = false;
            }
            TokenTree::Ident(identifier) => {
                let name = identifier.to_string();
                if follows_fn {
                    let free = BARE_FREE_FUNCTIONS.iter().filter(|_| !is_type);
                    let mut bare = BARE_FUNCTIONS.iter().chain(free);
                    let word = bare.find(|(banned, _)| *banned == name);
                    let line = identifier.span().start().line;
                    found
                        .extend(word.map(|word| violation(path, line, "bare function name", word)));
                }
                follows_fn = name == "fn";
                begins_type |= name == "impl" || name == "trait";
            }
            TokenTree::Literal(_) | TokenTree::Punct(_) => follows_fn = false,
        }
    }
}

/// `line` is a function because counting lines up to a token is slow, and few texts have a violation.
fn check_prose(
    path: &str,
    line: impl Fn() -> usize,
    kind: &str,
    text: &str,
    found: &mut Vec<Violation>,
) {
    let lower = text.to_lowercase();
    let phrases = BANNED_PHRASES
        .iter()
        .filter(|(phrase, _)| lower.contains(phrase));
    found.extend(phrases.map(|word| violation(path, line(), kind, word)));
    let split = lower.split(|c: char| !c.is_alphanumeric());
    let hits = split.filter_map(|word| BANNED.iter().find(|(banned, _)| *banned == word));
    found.extend(hits.map(|word| violation(path, line(), kind, word)));
}

fn violation(path: &str, line: usize, kind: &str, (word, instead): &Word) -> Violation {
    Violation::new(
        path,
        line,
        format!("{kind} with `{word}`: write `{instead}`"),
    )
}

/// The banned words in an identifier or in a component of a path, and the banned pairs of words, such as `call_off`.
fn banned_words(name: &str) -> impl Iterator<Item = &'static Word> {
    let words: Vec<String> = words(name).collect();
    let pairs: Vec<String> = words.windows(2).map(|pair| pair.join("_")).collect();
    let found = words.into_iter().chain(pairs);
    found.filter_map(|word| {
        let mut banned = BANNED.iter().chain(BANNED_IN_NAMES);
        banned.find(|(banned, _)| *banned == word)
    })
}

fn is_allowed(violation: &Violation) -> bool {
    ALLOWED.iter().any(|(path, word, _)| {
        violation.path.starts_with(path) && violation.what.contains(&format!("`{word}"))
    })
}

/// The words of an identifier or of a component of a path, in lower case: `CamelCase`, `snake_case` and `kebab-case`.
fn words(name: &str) -> impl Iterator<Item = String> {
    let mut words = vec![String::new()];
    let mut previous = ' ';
    for c in name.chars() {
        let starts_word = c.is_uppercase() && !previous.is_uppercase();
        if !c.is_alphanumeric() || starts_word {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
        previous = c;
    }
    words.into_iter().filter(|word| !word.is_empty())
}

/// The line comments of a Rust text, doc comments included, with their line numbers.
fn comments(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().filter_map(|(at, line)| {
        let start = line.find("// ").or_else(|| line.find("/// "));
        let start = start.or_else(|| line.find("//! "))?;
        Some((at + 1, &line[start..]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::subject;

    #[test]
    fn names_are_split_into_words() {
        let split = |name| words(name).collect::<Vec<_>>();
        assert_eq!(
            split("FilmJob_of-HTTPSeat"),
            ["film", "job", "of", "httpseat"]
        );
        assert_eq!(split("a.film.rs"), ["a", "film", "rs"]);
    }

    #[test]
    fn bare_function_names_are_found() {
        let text = "fn read() {}\nimpl Row { fn read() -> Self { fn read() {} } fn of() {} }\nmod a { fn read_row() {} }\n";
        let found = subject::check(super::check, &[("crates/a/src/lib.rs", text)]);
        let expected = [
            "crates/a/src/lib.rs:1: bare function name with `read`: write `read_… or parse_…`",
            "crates/a/src/lib.rs:2: bare function name with `read`: write `read_… or parse_…`",
            "crates/a/src/lib.rs:2: bare function name with `of`: write `for_…, from_…, parse or new`",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn banned_words_are_found_in_names_comments_and_documents() {
        let files = [
            (
                "crates/a/src/lib.rs",
                "//! A film.\nfn seat() {} // of course\n/// A key, none where it is free.\nconst FILM_JOB: u8 = 1;\nconst NAME: &str = \"A garbled text\";\n",
            ),
            ("crates/a/src/shelf.rs", "//! Storage; \"a seat\".\n"),
            ("crates/desk/src/b.rs", "fn call_off() {}\n"),
            ("docs/a.md", "A picture of the desk.\n"),
        ];
        let expected = [
            "crates/a/src/lib.rs:1: comment with `film`: write `video`",
            "crates/a/src/lib.rs:2: identifier with `seat`: write `permit`",
            "crates/a/src/lib.rs:3: comment with `none where`: write ``None` if`",
            "crates/a/src/lib.rs:4: identifier with `film`: write `video`",
            "crates/a/src/lib.rs:5: text with `garbled`: write `malformed`",
            "crates/a/src/shelf.rs:1: path with `shelf`: write `storage`",
            "crates/desk/src/b.rs:1: identifier with `call_off`: write `cancel`",
            "crates/desk/src/b.rs:1: path with `desk`: write `provider or fixture`",
            "docs/a.md:1: text with `picture`: write `image`",
        ];
        let mut found = subject::check(super::check, &files);
        found.sort();
        assert_eq!(found, expected);
    }
}
