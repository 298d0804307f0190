//! `tollgate audit`: checks the invariants of money and tasks.

use serde_json::{Value, json};
use tollgate_core::Amount;
use tollgate_store::ChatChargeSums;

use super::common::{Common, Failed};

/// What to print.
#[derive(clap::Args)]
pub(super) struct Audit {
    /// Print the charges of chats instead: per user and model the charged amount, and its estimated, clamped and owed parts
    #[arg(long)]
    books: bool,
}

impl Audit {
    pub(super) async fn run(self, common: &Common) -> Result<(), Failed> {
        let store = common.store().await?;
        if self.books {
            let books = store.chat_charge_sums(0).await?;
            let records: Value = books.iter().map(record).collect();
            return common.print(&records, || {
                books.iter().map(line).collect::<Vec<_>>().join("\n")
            });
        }
        let violations = store.audit().await?;
        let records: Value = violations
            .iter()
            .map(tollgate_store::AuditViolation::to_json)
            .collect();
        let notes = notes(&store.chat_charge_sums(0).await?);
        common.print(&records, || match violations.as_slice() {
            [] => format!("every invariant holds{notes}"),
            found => found
                .iter()
                .map(|v| format!("{}: {}: {}", v.check, v.subject, v.detail))
                .collect::<Vec<_>>()
                .join("\n"),
        })?;
        if violations.is_empty() {
            Ok(())
        } else {
            Err(Failed::silently())
        }
    }
}

/// Returns lines about amounts that are no violation but must be reported: amounts written off, owed and estimated.
fn notes(books: &[ChatChargeSums]) -> String {
    let sum =
        |of: fn(&ChatChargeSums) -> Amount| books.iter().map(of).fold(Amount::ZERO, |a, b| a + b);
    let count = |of: fn(&ChatChargeSums) -> i64| books.iter().map(of).sum::<i64>();
    let (debt, written_off) = (sum(|b| b.debt), sum(|b| b.written_off));
    let (estimated, clamped) = (count(|b| b.estimated), count(|b| b.clamped));
    let mut notes = String::new();
    let mut note = |is_there: bool, text: String| {
        if is_there {
            notes.push_str("\n  ");
            notes.push_str(&text);
        }
    };
    note(
        debt > Amount::ZERO,
        format!("chats were charged {debt} beyond balance or quota"),
    );
    note(
        written_off > Amount::ZERO,
        format!("{written_off} was written off"),
    );
    note(
        estimated > 0,
        format!("{estimated} chats are charged by estimate"),
    );
    note(
        clamped > 0,
        format!("{clamped} chats had a usage above what they can have used"),
    );
    if !notes.is_empty() {
        notes.push_str("\n  per user and model: tollgate audit --books");
    }
    notes
}

fn record(books: &ChatChargeSums) -> Value {
    json!({
        "user": books.user,
        "model": books.model,
        "chats": books.chats,
        "estimated": books.estimated,
        "clamped": books.clamped,
        "charged": books.charged,
        "debt": books.debt,
        "written_off": books.written_off,
    })
}

fn line(books: &ChatChargeSums) -> String {
    let ChatChargeSums {
        user,
        model,
        chats,
        estimated,
        clamped,
        charged,
        debt,
        written_off,
    } = books;
    format!(
        "{user}  {model}  chats {chats}, estimated {estimated}, clamped {clamped}, charged {charged}, debt {debt}, written off {written_off}"
    )
}
