//! Reads complete responses of providers into memory that all chats share, so that large ones cannot use up all memory.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tollgate_upstream::{ChatBody, ProviderError, UpstreamErrorKind};

const MIB: usize = 1_048_576;
/// The largest response, in bytes: it may contain images as base64.
const MAX_RESPONSE_BYTES: usize = 64 * MIB;
/// Memory for all responses that are larger than [`UNCOUNTED`]; one of the largest needs twice its size while it is assembled.
const MAX_MEMORY_BYTES: usize = 160 * MIB;
/// Responses of up to this many bytes are not counted.
const UNCOUNTED: usize = MIB;
/// Bytes that one permit stands for.
const BYTES_PER_PERMIT: usize = 64 * 1024;
/// How long a response waits for memory.
const MEMORY_TIMEOUT: Duration = Duration::from_secs(30);

/// The memory budget of large responses.
#[derive(Debug, Clone)]
pub struct ResponseBudget(Arc<Semaphore>);

/// A complete response, and the memory that it holds.
pub struct BufferedResponse {
    /// The complete body.
    pub bytes: Bytes,
    _memory: Option<OwnedSemaphorePermit>,
}

impl Default for ResponseBudget {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(
            MAX_MEMORY_BYTES / BYTES_PER_PERMIT,
        )))
    }
}

impl ResponseBudget {
    /// Reads `body` to its end. A response that is received in one chunk does not count.
    ///
    /// # Errors
    /// The connection's errors; too large; interrupted, if other responses use the memory for 30 s.
    pub async fn collect(&self, mut body: ChatBody) -> Result<BufferedResponse, ProviderError> {
        let from_egress = |e| ProviderError::from(&e);
        let first = body.chunk().await.map_err(from_egress)?.unwrap_or_default();
        // Most bodies are one chunk: no copy.
        let Some(second) = body.chunk().await.map_err(from_egress)? else {
            return Ok(BufferedResponse {
                bytes: first,
                _memory: None,
            });
        };
        let mut all = BytesMut::from(first);
        let mut memory = None;
        let mut next = Some(second);
        while let Some(chunk) = next {
            let length = all.len() + chunk.len();
            if length > MAX_RESPONSE_BYTES {
                let message = format!(
                    "the upstream's response is larger than {} MB",
                    MAX_RESPONSE_BYTES / MIB
                );
                return Err(ProviderError::new(UpstreamErrorKind::TooLarge, message));
            }
            if length > all.capacity() {
                // At least doubled, so that few bytes are copied more than once; during the copy, old and new buffer exist.
                let capacity = length.max(2 * all.capacity()).min(MAX_RESPONSE_BYTES);
                self.grow(&mut memory, all.capacity() + capacity).await?;
                all.reserve(capacity - all.len());
                // The old buffer is gone.
                if let Some(memory) = &mut memory {
                    let needed = all.capacity().div_ceil(BYTES_PER_PERMIT);
                    drop(memory.split(memory.num_permits().saturating_sub(needed)));
                }
            }
            all.extend_from_slice(&chunk);
            next = body.chunk().await.map_err(from_egress)?;
        }
        Ok(BufferedResponse {
            bytes: all.freeze(),
            _memory: memory,
        })
    }

    /// Acquires the memory that is missing to hold `bytes`.
    async fn grow(
        &self,
        memory: &mut Option<OwnedSemaphorePermit>,
        bytes: usize,
    ) -> Result<(), ProviderError> {
        if bytes <= UNCOUNTED {
            return Ok(());
        }
        let held = memory.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let missing = bytes.div_ceil(BYTES_PER_PERMIT).saturating_sub(held);
        let missing = u32::try_from(missing).unwrap_or(u32::MAX);
        let acquired = timeout(
            MEMORY_TIMEOUT,
            Arc::clone(&self.0).acquire_many_owned(missing),
        );
        let Ok(Ok(acquired)) = acquired.await else {
            let message = "too many large responses at once: try again shortly";
            return Err(ProviderError::new(UpstreamErrorKind::Interrupted, message));
        };
        match memory {
            Some(memory) => memory.merge(acquired),
            none => *none = Some(acquired),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use futures_util::StreamExt as _;
    use futures_util::future::join_all;
    use futures_util::stream;

    use super::*;

    /// A body of that many chunks of 64 KiB.
    fn body(chunks: usize) -> ChatBody {
        let chunk = Bytes::from(vec![b'a'; BYTES_PER_PERMIT]);
        ChatBody::Local(stream::repeat(chunk).take(chunks).map(Ok).boxed())
    }

    #[tokio::test(start_paused = true)]
    async fn large_responses_wait_for_memory_and_too_large_ones_are_rejected() {
        let budget = ResponseBudget::default();
        let largest = MAX_RESPONSE_BYTES / BYTES_PER_PERMIT;
        let response = budget.collect(body(largest)).await.unwrap();
        assert_eq!(response.bytes.len(), MAX_RESPONSE_BYTES);
        // It holds no more than its own bytes, so there is memory for a second one, and while both are held, for small responses only.
        let second = budget.collect(body(largest)).await.unwrap();
        for (chunks, expected) in [
            (0, None),
            (1, None),
            (16, None),
            (largest, Some(UpstreamErrorKind::Interrupted)),
        ] {
            let read = budget.collect(body(chunks)).await;
            assert_eq!(read.err().map(|e| e.kind), expected, "{chunks}");
        }
        drop((response, second));
        let error = budget.collect(body(largest + 1)).await.err().unwrap();
        assert_eq!(error.kind, UpstreamErrorKind::TooLarge);
        let read = join_all((0..4).map(|_| budget.collect(body(160)))).await;
        assert!(read.iter().all(Result::is_ok));
        drop(read);
        assert_eq!(
            budget.0.available_permits(),
            MAX_MEMORY_BYTES / BYTES_PER_PERMIT
        );
    }
}
