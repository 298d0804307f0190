//! Commands of the audit: change the database by SQL, see which violations are found, and undo the change.

use tollgate_store::AuditViolation;

use super::{Fixture, ok};

impl Fixture<'_> {
    /// - `violations` shows the checks that find any.
    /// - `corrupt SQL` runs a statement, shows the checks that find it, and undoes it.
    /// - `shift TABLE KEY COLUMN…`: each number of these columns, if it is one more or one less, is a violation.
    /// - `delete-each TABLE KEY [WHERE …]`, `double-each TABLE KEY [WHERE …]`: so is each row, if it is missing or there twice.
    pub(super) async fn audit_step(&mut self, command: &str, rest: &str) -> String {
        let mut words = rest.splitn(3, ' ');
        let mut word = || words.next().unwrap_or_default();
        match command {
            "violations" => self.violations().await,
            "corrupt" => {
                let sql = self.with_ids(rest);
                let table =
                    sql.split_whitespace()
                        .nth(if sql.starts_with("UPDATE") { 1 } else { 2 });
                self.corrupt(table.unwrap(), &sql).await
            }
            "shift" => {
                let (table, key) = (word(), word());
                for column in word().split(' ') {
                    self.shift(table, key, column).await;
                }
                ok(())
            }
            _ => {
                let (table, key, filter) = (word(), word(), word());
                let keys = self
                    .db
                    .raw(&format!("SELECT {key} FROM {table} {filter}"))
                    .await;
                assert!(!keys.is_empty(), "{rest}");
                for id in keys.concat().iter().flatten() {
                    let row = format!("{key} = '{id}'");
                    let column = key.split('|').next().unwrap();
                    let delete = format!("DELETE FROM {table} WHERE {row}");
                    let double = format!(
                        "CREATE TABLE twice AS SELECT * FROM {table} WHERE {row};
                         UPDATE twice SET {column} = {column} || 'x';
                         INSERT INTO {table} SELECT * FROM twice; DROP TABLE twice"
                    );
                    let is_delete = command == "delete-each";
                    let change = if is_delete { delete } else { double };
                    let found = self.corrupt(table, &change).await;
                    assert_ne!(found, "", "{command} {table}: {id}");
                }
                ok(())
            }
        }
    }

    /// Each number of a column, one more and one less.
    async fn shift(&mut self, table: &str, key: &str, column: &str) {
        let rows = format!("SELECT {key} FROM {table} WHERE {column} IS NOT NULL");
        for id in self.db.raw(&rows).await.concat().iter().flatten() {
            let db = self.db;
            let set = async |by| {
                let set = format!("UPDATE {table} SET {column} = {column} {by}");
                db.batch(&format!("{set} WHERE {key} = '{id}'")).await;
            };
            set("+ 1").await;
            assert_ne!(self.violations().await, "", "{table}.{column} + 1: {id}");
            set("- 2").await;
            assert_ne!(self.violations().await, "", "{table}.{column} - 1: {id}");
            set("+ 1").await;
        }
        self.assert_clean().await;
    }

    /// Runs statements that change one table, and undoes the change. Returns the checks that find it.
    async fn corrupt(&mut self, table: &str, change: &str) -> String {
        let keep = format!("CREATE TABLE kept AS SELECT * FROM {table}; {change}");
        self.db.batch(&keep).await;
        let found = self.violations().await;
        let restore = format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM kept");
        self.db.batch(&format!("{restore}; DROP TABLE kept")).await;
        self.assert_clean().await;
        found
    }

    async fn violations(&mut self) -> String {
        let found = self.audit().await;
        assert!(
            found.iter().all(|violation| !violation.subject.is_empty()),
            "{found:?}"
        );
        let mut checks: Vec<_> = found.iter().map(|violation| violation.check).collect();
        checks.sort_unstable();
        checks.dedup();
        checks.join(" ")
    }

    pub(super) async fn assert_clean(&mut self) {
        assert_eq!(self.audit().await, []);
    }

    async fn audit(&mut self) -> Vec<AuditViolation> {
        if self.auditor.is_none() {
            self.auditor = Some(self.store.auditor().await.unwrap());
        }
        self.auditor.as_mut().unwrap().audit().await.unwrap()
    }
}
