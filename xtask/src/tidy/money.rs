//! Checks that only the ledger module moves money: no other SQL text changes a balance or inserts ledger entries.

use super::source::{strings, test_lines};
use super::subject::{Subject, Violation};
use crate::repo::File;

/// The columns that only the ledger module sets.
const COLUMNS: &[&str] = &["balance", "held", "used"];

pub(super) fn check(subject: &Subject<'_>) -> Vec<Violation> {
    let files = subject.tree.files.iter();
    // Tests contain rows of older programs.
    let is_of_test = |path: &str| path.contains("/tests/");
    let outside = files
        .filter(|f| f.path.starts_with("crates/") && !is_ledger(&f.path) && !is_of_test(&f.path));
    outside
        .filter(|file| !subject.modules.is_test(&file.path))
        .flat_map(|file| {
            let moving = statements(file)
                .into_iter()
                .filter(|(_, sql)| moves_money(sql));
            moving.map(|(line, _)| {
                let what = "SQL that moves money, outside crates/tollgate-store/src/ledger";
                Violation::new(&file.path, line, what)
            })
        })
        .collect()
}

fn is_ledger(path: &str) -> bool {
    path.starts_with("crates/tollgate-store/src/ledger/")
}

/// The texts of a file that may be SQL, with their lines, except those in tests.
fn statements(file: &File) -> Vec<(usize, String)> {
    if file.path.ends_with(".sql") {
        let mut line = 1;
        let parts = file.text.split_inclusive(';').map(|part| {
            let blank = part.len() - part.trim_start().len();
            let begins = line + part[..blank].matches('\n').count();
            line += part.matches('\n').count();
            (begins, part.to_owned())
        });
        return parts.collect();
    }
    let Ok(parsed) = file.syntax() else {
        return Vec::new();
    };
    let tests = test_lines(parsed);
    let mut found = strings(&file.text);
    found.retain(|(line, _)| !tests.iter().any(|range| range.contains(line)));
    found
}

/// Whether a statement sets one of [`COLUMNS`] or writes the ledger.
fn moves_money(sql: &str) -> bool {
    let words: Vec<String> = words(sql);
    let names = |at: usize, expected: &str| words.get(at).is_some_and(|w| w == expected);
    (0..words.len()).any(|at| {
        let sets = COLUMNS.contains(&words[at].as_str()) && names(at + 1, "=");
        let to_itself = sets && words.get(at + 2) == Some(&words[at]);
        let in_set = sets && clause(&words[..at]) == Some("set");
        let writes_ledger = names(at, "into") && names(at + 1, "ledger");
        to_itself || in_set || writes_ledger
    })
}

/// The keyword of the clause that contains the last of `words`.
fn clause(words: &[String]) -> Option<&str> {
    const BEGIN: [&str; 7] = [
        "set",
        "where",
        "select",
        "from",
        "returning",
        "values",
        "on",
    ];
    let last = words.iter().rev().find(|w| BEGIN.contains(&w.as_str()));
    last.map(String::as_str)
}

/// Lower-case words and signs of a statement; `a.b` counts as `b`.
fn words(sql: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut word = String::new();
    for c in sql.to_lowercase().chars().chain([' ']) {
        if c.is_alphanumeric() || c == '_' {
            word.push(c);
            continue;
        }
        if !word.is_empty() {
            found.push(std::mem::take(&mut word));
        }
        match c {
            ' ' | '\n' | '\t' | '"' => {}
            // A qualifier is irrelevant for the column.
            '.' => {
                found.pop();
            }
            // `>=`, `<=` and `!=` are comparisons.
            '=' if found
                .last()
                .is_some_and(|w| matches!(w.as_str(), ">" | "<" | "!")) => {}
            sign => found.push(sign.to_string()),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::subject;

    #[test]
    fn statements_that_move_money_are_recognised() {
        let moving = [
            "update users set name = ?1, balance = balance - ?2 where id = ?3",
            "UPDATE keys SET used=?1",
            "insert into users values (?1) on conflict (id) do update set held = excluded.held",
            "insert into ledger (id) values (?1)",
            ", u.balance = u.balance + ",
        ];
        let still = [
            "select balance, held from users where balance = ?1",
            "update users set name = ?1 where balance >= ?2",
            "update tasks set state = 1 where used = 0",
            "used = ",
            "select * from ledger",
        ];
        for sql in moving {
            assert!(moves_money(sql), "{sql}");
        }
        for sql in still {
            assert!(!moves_money(sql), "{sql}");
        }
    }

    #[test]
    fn only_the_ledger_module_and_tests_may_move_money() {
        let sql = "fn f() { run(\"update users set balance = 0\"); }";
        let test = format!("#[cfg(test)]\nmod tests {{ {sql} }}");
        let files = [
            ("crates/tollgate-store/Cargo.toml", ""),
            (
                "crates/tollgate-store/src/lib.rs",
                "mod ledger; mod users; mod tasks;",
            ),
            ("crates/tollgate-store/src/ledger/mod.rs", "mod charges;"),
            ("crates/tollgate-store/src/ledger/charges.rs", sql),
            ("crates/tollgate-store/src/users.rs", sql),
            ("crates/tollgate-store/src/tasks.rs", &test),
            (
                "crates/tollgate-store/migrations/1.sql",
                "create table a;\n\nupdate keys set used = 0;\n",
            ),
        ];
        let found = subject::check(super::check, &files);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[0].starts_with("crates/tollgate-store/migrations/1.sql:3: "));
        assert!(found[1].starts_with("crates/tollgate-store/src/users.rs:1: "));
    }
}
