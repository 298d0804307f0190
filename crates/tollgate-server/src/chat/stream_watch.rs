//! Ends a provider's stream that continues without output, or with far more of it than the request allows.

use std::time::Duration;

use tokio::time::Instant;
use tollgate_upstream::{ProviderError, UpstreamErrorKind};

use crate::chat::billing::Delivered;

/// Bytes of output for each token that the request allows: four times the bytes per token of text.
const MAX_BYTES_PER_TOKEN: u64 = 16;
/// Bytes of output that any stream may have, because low token limits do not count images.
const MIN_MAX_BYTES: u64 = 64 * 1024;

/// Watches the output of one stream.
#[derive(Debug)]
pub struct StreamWatch {
    /// How long a stream may contain nothing but keep-alives.
    max_silence: Duration,
    max_bytes: u64,
    /// Bytes and counted tokens of output when they last changed.
    progress: (u64, u64),
    progress_at: Instant,
}

impl StreamWatch {
    /// Begins to watch a stream: at most `max_silence` without output, and not far more output than `max_tokens`.
    pub fn start(max_silence: Duration, max_tokens: u64) -> Self {
        let max_bytes = max_tokens.saturating_mul(MAX_BYTES_PER_TOKEN);
        Self {
            max_silence,
            max_bytes: max_bytes.max(MIN_MAX_BYTES),
            progress: (0, 0),
            progress_at: Instant::now(),
        }
    }

    /// Checks a stream of which `delivered` has been received by `now`.
    ///
    /// # Errors
    /// Timed out, or too large.
    pub fn check(&mut self, delivered: &Delivered, now: Instant) -> Result<(), ProviderError> {
        let counted = delivered.usage.map_or(0, |usage| usage.output);
        let progress = (delivered.text_bytes, counted);
        if progress != self.progress {
            (self.progress, self.progress_at) = (progress, now);
        }
        if delivered.text_bytes > self.max_bytes {
            let message = "the upstream's response is far longer than the request allows";
            return Err(ProviderError::new(UpstreamErrorKind::TooLarge, message));
        }
        let silence = now.saturating_duration_since(self.progress_at);
        if silence > self.max_silence {
            let message = format!(
                "the upstream sent nothing but keep-alives for {} s",
                silence.as_secs()
            );
            return Err(ProviderError::new(UpstreamErrorKind::TimedOut, message));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_ends_without_progress_or_beyond_its_limit() {
        let mut watch = StreamWatch::start(Duration::from_secs(10), 10_000);
        let start = watch.progress_at;
        for (seconds, text_bytes, expected) in [
            (9, 0, None),
            (10, 0, None),
            (11, 1, None),
            (21, 1, None),
            (22, 1, Some(UpstreamErrorKind::TimedOut)),
            (23, 160_000, None),
            (24, 160_001, Some(UpstreamErrorKind::TooLarge)),
        ] {
            let delivered = Delivered {
                text_bytes,
                ..Delivered::default()
            };
            let checked = watch.check(&delivered, start + Duration::from_secs(seconds));
            assert_eq!(checked.err().map(|e| e.kind), expected, "{seconds}");
        }
    }
}
