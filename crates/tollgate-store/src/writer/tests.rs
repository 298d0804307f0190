//! What one operation that goes wrong does to the others of its batch: nothing.

use super::*;
use crate::db::{Sql, args};

const NOTE: Sql = Sql::both("INSERT INTO meta (name, value) VALUES ($1, 1)");

/// Writes a row, and then goes wrong in its own way.
struct Odd {
    name: String,
    way: Way,
}

#[derive(Clone, Copy)]
enum Way {
    Well,
    Refused,
    Panic,
}

#[async_trait(?Send)]
impl Write for Odd {
    type Out = String;

    async fn apply(&self, batch: &mut Batch<'_, '_>) -> Result<String, DbError> {
        batch.run(&NOTE, args![&self.name])?;
        match self.way {
            Way::Well => Ok(self.name.clone()),
            Way::Refused => Err(DbError::Refused("odd".to_owned())),
            Way::Panic => panic!("odd"),
        }
    }
}

#[tokio::test]
async fn an_operation_that_panics_or_is_refused_fails_alone() {
    let folder = std::env::temp_dir().join(format!("tollgate-writer-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let target = Target::Sqlite(folder.join("tollgate.db"));
    let writer = Writer::start(target).await.expect("the writer starts");
    let writes = (0..200).map(|i| {
        let way = match i % 50 {
            17 => Way::Panic,
            33 => Way::Refused,
            _ => Way::Well,
        };
        let name = format!("row {i}");
        let write = writer.write(Odd {
            name: name.clone(),
            way,
        });
        async move { (way, name, write.await) }
    });
    for (way, name, result) in futures_util::future::join_all(writes).await {
        match way {
            Way::Well => assert_eq!(result, Ok(name)),
            Way::Refused => assert!(matches!(result, Err(StoreError::Broken(_))), "{result:?}"),
            Way::Panic => {
                let panicked = StoreError::Broken("an operation panicked".to_owned());
                assert_eq!(result, Err(panicked));
            }
        }
    }
    assert_eq!(writer.stats.operations(), 192);
    assert!(writer.stats.commits() < 100);
    let _ = std::fs::remove_dir_all(folder);
}
