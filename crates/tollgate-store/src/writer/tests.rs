//! Tests that operations that fail, panic or are slow do not make the others of their batch fail.

use std::path::PathBuf;

use async_trait::async_trait;

use super::batch::Batch;
use super::connection::APPLY_LIMIT;
use super::*;
use crate::db::{Sql, args};

const INSERT_ROW: Sql = Sql::both("INSERT INTO meta (name, value) VALUES ($1, 1)");

/// Writes a row, and then succeeds or fails.
struct TestWrite {
    name: String,
    behavior: Behavior,
}

#[derive(Clone, Copy)]
enum Behavior {
    Succeed,
    Fail,
    Panic,
    /// Takes as long as a transaction may take.
    SucceedSlowly,
}

#[async_trait(?Send)]
impl Write for TestWrite {
    type Out = String;

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<String, DbError> {
        batch.queue(&INSERT_ROW, args![&self.name])?;
        match self.behavior {
            Behavior::Succeed => Ok(self.name.clone()),
            Behavior::Fail => Err(DbError::Failed("test".to_owned())),
            Behavior::Panic => panic!("test"),
            Behavior::SucceedSlowly => {
                std::thread::sleep(APPLY_LIMIT);
                Ok(self.name.clone())
            }
        }
    }
}

/// A writer on a new SQLite database, and its folder, which the test deletes.
async fn start_writer(test: &str) -> (Writer, PathBuf) {
    let folder = std::env::temp_dir().join(format!("tollgate-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let target = Target::Sqlite(folder.join("tollgate.db"));
    let writer = Writer::start(target).await.expect("the writer starts");
    (writer, folder)
}

#[tokio::test]
async fn an_operation_that_panics_or_fails_does_not_fail_its_batch() {
    let (writer, folder) = start_writer("failing-writes").await;
    let writes = (0..200).map(|i| {
        let behavior = match i % 50 {
            17 => Behavior::Panic,
            33 => Behavior::Fail,
            _ => Behavior::Succeed,
        };
        let name = format!("row {i}");
        let write = writer.write(TestWrite {
            name: name.clone(),
            behavior,
        });
        async move { (behavior, name, write.await) }
    });
    for (behavior, name, result) in futures_util::future::join_all(writes).await {
        match behavior {
            Behavior::Succeed | Behavior::SucceedSlowly => assert_eq!(result, Ok(name)),
            Behavior::Fail => assert!(matches!(result, Err(StoreError::Broken(_))), "{result:?}"),
            Behavior::Panic => {
                let panicked = StoreError::Broken("an operation panicked".to_owned());
                assert_eq!(result, Err(panicked));
            }
        }
    }
    assert_eq!(writer.stats.operations(), 192);
    assert!(writer.stats.commits() < 100);
    let _ = std::fs::remove_dir_all(folder);
}

#[tokio::test]
async fn slow_operations_of_a_batch_get_several_transactions() {
    let (writer, folder) = start_writer("slow-writes").await;
    let writes = (0..3).map(|i| {
        let name = format!("row {i}");
        writer.write(TestWrite {
            name,
            behavior: Behavior::SucceedSlowly,
        })
    });
    let results = futures_util::future::join_all(writes).await;
    let expected = ["row 0", "row 1", "row 2"].map(|name| Ok(name.to_owned()));
    assert_eq!(results, expected);
    assert_eq!(writer.stats.commits(), 3);
    assert_eq!(writer.stats.operations(), 3);
    let _ = std::fs::remove_dir_all(folder);
}
