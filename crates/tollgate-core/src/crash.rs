//! Crash points: places where a test can abort the process, as a power failure would.
//!
//! With `TOLLGATE_CRASH_AT=NAME` in its environment, a debug build aborts when it reaches [`point`]`(NAME)`; with
//! `NAME:N`, when it reaches it for the N-th time; with `panic@NAME` it panics instead. In release builds [`point`] does nothing.

/// Aborts the process if the environment selects this crash point. `name` must be listed in [`POINTS`].
#[inline]
pub fn point(name: &'static str) {
    #[cfg(debug_assertions)]
    armed::abort_if_selected(name);
    #[cfg(not(debug_assertions))]
    let _ = name;
}

/// Every crash point: of the writer, of a task in the order in which it reaches them, of webhooks and of stored files. A test crashes at each.
pub const POINTS: &[&str] = &[
    "writer.before_batch",
    "writer.before_commit",
    "writer.after_commit",
    "submit.before_receipt",
    "run.after_claim",
    "run.after_attempt",
    "run.after_start",
    "run.after_provider_job_id",
    "run.before_poll",
    "run.result_stored",
    "run.before_finish",
    "run.after_finish",
    "webhook.after_post",
    "blob.before_rename",
    "blob.after_rename",
];

#[cfg(debug_assertions)]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    struct Armed {
        name: String,
        remaining: AtomicU64,
        /// Whether it panics, as a defect would, instead of aborting.
        panics: bool,
    }

    static ARMED: OnceLock<Option<Armed>> = OnceLock::new();

    fn read_environment() -> Option<Armed> {
        let text = std::env::var("TOLLGATE_CRASH_AT").ok()?;
        let (panics, text) = match text.strip_prefix("panic@") {
            Some(rest) => (true, rest),
            None => (false, text.as_str()),
        };
        let (name, nth) = text.split_once(':').unwrap_or((text, "1"));
        Some(Armed {
            name: name.to_owned(),
            remaining: AtomicU64::new(nth.parse().unwrap_or(1)),
            panics,
        })
    }

    pub(super) fn abort_if_selected(name: &'static str) {
        debug_assert!(
            super::POINTS.contains(&name),
            "crash point {name} is not listed"
        );
        if let Some(armed) = ARMED.get_or_init(read_environment)
            && armed.name == name
            && armed.remaining.fetch_sub(1, Ordering::SeqCst) == 1
        {
            assert!(!armed.panics, "crash point {name}");
            std::process::abort();
        }
    }
}
