//! Checks that docs/errors.md lists every error code of the admin API and of failed tasks with its cause and what to do, and lists no code that does
//! not exist. Tests of tollgate-core and tollgate-chat compare the codes of the client API.

use std::collections::BTreeMap;

use syn::visit::{self, Visit};
use syn::{Arm, Expr, ExprCall, ExprTuple, Lit};

use super::source::marks_test;
use super::subject::{Subject, Violation};
use crate::repo::File;

const PAGE: &str = "docs/errors.md";

/// A table of the page and the sources of its codes.
struct Table {
    heading: &'static str,
    /// The beginnings of the paths of the files that are searched for codes.
    sources: &'static [&'static str],
    /// The last two parts, or the only one, of a function's path, and the index of the argument that is the code.
    calls: &'static [(&'static str, usize)],
    /// Files in which codes are also values of match arms: an arm that is a code, or a tuple that begins with one.
    values: &'static [&'static str],
}

const TABLES: &[Table] = &[
    Table {
        heading: "Admin API and portal",
        sources: &[
            "crates/tollgate-admin/src/",
            "crates/tollgate-server/src/",
            "crates/tollgate-store/src/admin/",
        ],
        calls: &[
            ("AdminError::new", 1),
            ("AdminError::forbidden", 0),
            ("AdminError::conflict", 0),
            ("AdminRejection::conflict", 0),
        ],
        values: &["crates/tollgate-server/src/http/admin_error.rs"],
    },
    Table {
        heading: "Failed tasks",
        sources: &[
            "crates/tollgate-server/src/tasks/",
            "crates/tollgate-store/src/tasks/finish.rs",
        ],
        calls: &[("failure", 0), ("finish", 0)],
        values: &["crates/tollgate-store/src/tasks/finish.rs"],
    },
];

pub(super) fn check(subject: &Subject<'_>) -> Vec<Violation> {
    let Some(page) = subject.tree.file(PAGE) else {
        return vec![Violation::new(PAGE, 1, "is missing")];
    };
    TABLES
        .iter()
        .flat_map(|table| table.check(subject, page))
        .collect()
}

impl Table {
    fn check(&self, subject: &Subject<'_>, page: &File) -> Vec<Violation> {
        let mut codes = Codes {
            table: self,
            path: "",
            found: BTreeMap::new(),
        };
        let is_source = |file: &&File| self.sources.iter().any(|s| file.path.starts_with(s));
        for file in subject.tree.rust().filter(is_source) {
            if let Ok(parsed) = file.syntax()
                && !subject.modules.is_test(&file.path)
            {
                codes.path = &file.path;
                codes.visit_file(parsed);
            }
        }
        let codes = codes.found;
        let rows = documented(&page.text, self.heading);
        let mut found = Vec::new();
        for (code, (path, line)) in &codes {
            if !rows.iter().any(|row| row.code == code) {
                let what = format!("error code `{code}` is not in {PAGE}, \"{}\"", self.heading);
                found.push(Violation::new(path, *line, what));
            }
        }
        for row in rows {
            if !codes.contains_key(row.code) {
                let what = format!("error code `{}` does not exist", row.code);
                found.push(Violation::new(PAGE, row.line, what));
            } else if !row.is_explained {
                let what = format!("error code `{}` needs a cause and what to do", row.code);
                found.push(Violation::new(PAGE, row.line, what));
            }
        }
        found
    }
}

/// A row of a table of the page.
struct Row<'a> {
    line: usize,
    code: &'a str,
    /// Whether the two cells after the code are not empty.
    is_explained: bool,
}

/// The rows of the table below `heading` whose first or second cell is a code.
fn documented<'a>(page: &'a str, heading: &str) -> Vec<Row<'a>> {
    let mut is_inside = false;
    let mut is_header = true;
    let mut rows = Vec::new();
    for (at, line) in page.lines().enumerate() {
        if let Some(title) = line.strip_prefix("## ") {
            is_inside = title == heading;
        }
        let is_row = line.starts_with('|');
        is_header = !is_row || (is_header && !line.starts_with("|---"));
        if !is_inside || !is_row || is_header {
            continue;
        }
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        let code_of = |cell: &'a str| cell.strip_prefix('`')?.strip_suffix('`');
        let code = cells.iter().take(2).enumerate();
        let mut code =
            code.filter_map(|(n, cell)| Some((n, code_of(cell).filter(|c| is_code(c))?)));
        if let Some((n, code)) = code.next_back() {
            let texts = cells[n + 1..].iter().filter(|cell| !cell.is_empty());
            rows.push(Row {
                line: at + 1,
                code,
                is_explained: texts.count() == 2,
            });
        }
    }
    rows
}

fn is_code(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')
}

/// The codes in the visited files, each with its last location.
struct Codes<'a> {
    table: &'a Table,
    path: &'a str,
    found: BTreeMap<String, (String, usize)>,
}

impl Codes<'_> {
    fn add(&mut self, value: Option<&Expr>) {
        if let Some(Expr::Lit(literal)) = value
            && let Lit::Str(text) = &literal.lit
            && is_code(&text.value())
        {
            let location = (self.path.to_owned(), text.span().start().line);
            self.found.insert(text.value(), location);
        }
    }

    fn has_values(&self) -> bool {
        self.table.values.contains(&self.path)
    }
}

impl<'ast> Visit<'ast> for Codes<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !marks_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_expr_call(&mut self, call: &'ast ExprCall) {
        if let Expr::Path(function) = &*call.func {
            let parts: Vec<String> = function
                .path
                .segments
                .iter()
                .map(|s| s.ident.to_string())
                .collect();
            let name = parts[parts.len().saturating_sub(2)..].join("::");
            // In the type's own file, functions are called as `Self::…`.
            let name = match self.has_values() {
                true => name.replace("Self::", "AdminError::"),
                false => name,
            };
            let known = self.table.calls.iter().find(|(known, _)| *known == name);
            if let Some((_, at)) = known {
                self.add(call.args.iter().nth(*at));
            }
        }
        visit::visit_expr_call(self, call);
    }

    fn visit_arm(&mut self, arm: &'ast Arm) {
        if self.has_values() {
            self.add(Some(&arm.body));
        }
        visit::visit_arm(self, arm);
    }

    fn visit_expr_tuple(&mut self, tuple: &'ast ExprTuple) {
        if self.has_values() && tuple.elems.len() == 3 {
            self.add(tuple.elems.first());
        }
        visit::visit_expr_tuple(self, tuple);
    }
}

#[cfg(test)]
mod tests {
    use crate::tidy::subject;

    const ADMIN: &str = "//! A.\nfn f() { AdminError::new(S, \"stale\", m); x::AdminError::conflict(\"busy\", m) }\n\
        #[cfg(test)] mod tests { fn t() { AdminError::conflict(\"test_only\", m) } }\n";
    const TASKS: &str = "//! T.\nfn g() { failure(\"timeout\", m) }\n";

    #[test]
    fn codes_and_their_descriptions_match() {
        let page = "# Errors\n## Failed tasks\n| `error.code` | cause | do |\n|---|---|---|\n| `timeout` | late | wait |\n\
            ## Admin API and portal\n| status | code | cause | do |\n|---|---|---|---|\n| 412 | `stale` | changed | |\n| 400 | `gone` | a | b |\n";
        let files = [
            ("Cargo.toml", ""),
            ("crates/tollgate-admin/src/a.rs", ADMIN),
            ("crates/tollgate-server/src/tasks/t.rs", TASKS),
            ("docs/errors.md", page),
        ];
        let expected = [
            "crates/tollgate-admin/src/a.rs:2: error code `busy` is not in docs/errors.md, \"Admin API and portal\"",
            "docs/errors.md:9: error code `stale` needs a cause and what to do",
            "docs/errors.md:10: error code `gone` does not exist",
        ];
        assert_eq!(subject::check(super::check, &files), expected);
    }
}
