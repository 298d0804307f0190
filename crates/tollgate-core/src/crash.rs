//! Crash points: places where a test ends the process as a power cut would.
//!
//! `TOLLGATE_CRASH_AT=NAME` (or `NAME:N` for the N-th passage) in the environment of a debug build aborts it at
//! [`point`]`(NAME)`. In release builds there is nothing.

/// Ends the process here if the environment says so. Every name is listed in [`POINTS`].
#[inline]
pub fn point(name: &'static str) {
    #[cfg(debug_assertions)]
    armed::pass(name);
    #[cfg(not(debug_assertions))]
    let _ = name;
}

/// Every crash point, in the order in which a task passes them; tests go through all of them.
pub const POINTS: &[&str] = &[
    "writer.before_batch",
    "writer.before_commit",
    "writer.after_commit",
    "submit.before_receipt",
    "run.after_claim",
    "run.after_attempt",
    "run.after_start",
    "run.after_ticket",
    "run.before_poll",
    "run.result_stored",
    "run.before_finish",
    "run.after_finish",
    "callback.after_post",
    "blob.before_rename",
    "blob.after_rename",
];

#[cfg(debug_assertions)]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    struct Armed {
        name: String,
        passages: AtomicU64,
    }

    static ARMED: OnceLock<Option<Armed>> = OnceLock::new();

    fn read() -> Option<Armed> {
        let text = std::env::var("TOLLGATE_CRASH_AT").ok()?;
        let (name, nth) = text.split_once(':').unwrap_or((&text, "1"));
        Some(Armed {
            name: name.to_owned(),
            passages: AtomicU64::new(nth.parse().unwrap_or(1)),
        })
    }

    pub(super) fn pass(name: &'static str) {
        debug_assert!(
            super::POINTS.contains(&name),
            "crash point {name} is not listed"
        );
        if let Some(armed) = ARMED.get_or_init(read)
            && armed.name == name
            && armed.passages.fetch_sub(1, Ordering::SeqCst) == 1
        {
            std::process::abort();
        }
    }
}
