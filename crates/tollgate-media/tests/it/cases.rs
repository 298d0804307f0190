//! Tables of cases and golden files in `tests/cases`. `TOLLGATE_BLESS=1 cargo test -p tollgate-media` rewrites the expected values; read the diff
//! before committing it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Checks each line of a file: `run` returns the case with its actual outcome. Lines with `behaviour` are headings.
pub(crate) fn check_cases(name: &str, mut run: impl FnMut(&Value) -> Value) {
    let mut real = String::new();
    let mut behaviour = Value::Null;
    let mut mismatches = Vec::new();
    for line in read_file(name).lines() {
        let row: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"));
        let found = match row.get("behaviour") {
            Some(heading) => {
                behaviour = heading.clone();
                row.clone()
            }
            None => run(&row),
        };
        if found != row {
            mismatches.push(format!("{behaviour}\n  expected {row}\n  got      {found}"));
        }
        real += &format!("{found}\n");
    }
    let first = mismatches.iter().take(5).cloned().collect::<Vec<_>>();
    let message = format!("{name}: {} differ:\n{}", mismatches.len(), first.join("\n"));
    assert!(mismatches.is_empty() || bless(name, &real), "{message}");
}

/// Compares `real` with a golden file.
pub(crate) fn check_golden(name: &str, real: &Value) {
    let text = fs::read_to_string(path(name)).unwrap_or_default();
    let golden: Value = serde_json::from_str(&text).unwrap_or_default();
    let pretty = serde_json::to_string_pretty(real).unwrap() + "\n";
    assert!(golden == *real || bless(name, &pretty), "{name}:\n{pretty}");
}

/// The text of a file.
pub(crate) fn read_file(name: &str) -> String {
    let path = path(name);
    fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cases")
        .join(name)
}

/// Writes the file if `TOLLGATE_BLESS` is set; returns whether it did.
fn bless(name: &str, text: &str) -> bool {
    let is_blessing = std::env::var_os("TOLLGATE_BLESS").is_some();
    if is_blessing {
        fs::write(path(name), text).unwrap();
    }
    is_blessing
}
