//! The valid inputs with which the targets start: the repository's own test cases and configurations.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

/// The golden cases of the chat formats whose path contains `part`.
pub(crate) fn golden_chats(part: &str) -> Result<Vec<Vec<u8>>, String> {
    let mut cases = Vec::new();
    gather(
        &root().join("crates/tollgate-chat/tests/golden"),
        &mut |path| {
            let shown = path.to_string_lossy();
            if shown.contains(part) && !shown.contains("snapshots") {
                cases.push(read_file(path)?);
            }
            Ok(())
        },
    )?;
    Ok(cases)
}

/// A request for each case of the media families.
pub(crate) fn media_requests() -> Result<Vec<Vec<u8>>, String> {
    let mut cases = Vec::new();
    gather(
        &root().join("crates/tollgate-media/tests/cases/requests"),
        &mut |path| {
            let text = read_file(path)?;
            for line in text.split(|byte| *byte == b'\n') {
                let Ok(case) = serde_json::from_slice::<Value>(line) else {
                    continue;
                };
                let Some(mut body) = case["body"].as_object().cloned() else {
                    continue;
                };
                body.insert("model".to_owned(), case["models"][0].clone());
                cases.push(Value::Object(body).to_string().into_bytes());
            }
            Ok(())
        },
    )?;
    Ok(cases)
}

/// The configurations in the documentation and for the package.
pub(crate) fn configurations() -> Result<Vec<Vec<u8>>, String> {
    let mut cases = vec![read_file(&root().join("packaging/debian/tollgate.toml"))?];
    gather(&root().join("docs"), &mut |path| {
        let page = String::from_utf8_lossy(&read_file(path)?).into_owned();
        let blocks = page.split("```toml\n").skip(1);
        let blocks = blocks.filter_map(|rest| rest.split("```").next());
        cases.extend(blocks.map(|block| block.as_bytes().to_vec()));
        Ok(())
    })?;
    Ok(cases)
}

fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// Calls `each` with every file under `folder`.
fn gather(folder: &Path, each: &mut dyn FnMut(&Path) -> Result<(), String>) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|e| e.to_string())?.path();
        if path.is_dir() {
            gather(&path, each)?;
        } else {
            each(&path)?;
        }
    }
    Ok(())
}
