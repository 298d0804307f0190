//! [`Blob`]: the bytes of a file, which need not be in memory.

use bytes::Bytes;

/// Bytes that need not be in memory: a beginning, a number of zeros, an end.
#[derive(Debug, Clone, Default)]
pub(crate) struct Blob {
    pub(crate) head: Bytes,
    pub(crate) zeros: u64,
    pub(crate) tail: Bytes,
}

impl Blob {
    pub(crate) fn new(head: impl Into<Bytes>) -> Self {
        Self {
            head: head.into(),
            ..Self::default()
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.head.len() as u64 + self.zeros + self.tail.len() as u64
    }

    /// The first `count` bytes.
    pub(crate) fn first(&self, count: u64) -> Self {
        let upto = |bytes: &Bytes, count: u64| {
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            bytes.slice(..count.min(bytes.len()))
        };
        let after_head = count.saturating_sub(self.head.len() as u64);
        let after_zeros = after_head.saturating_sub(self.zeros);
        Self {
            head: upto(&self.head, count),
            zeros: self.zeros.min(after_head),
            tail: upto(&self.tail, after_zeros),
        }
    }

    /// The complete content in memory.
    pub(crate) fn bytes(&self) -> Bytes {
        if self.zeros == 0 && self.tail.is_empty() {
            return self.head.clone();
        }
        let mut all = Vec::from(&self.head[..]);
        all.resize(all.len() + usize::try_from(self.zeros).unwrap_or(0), 0);
        all.extend_from_slice(&self.tail);
        Bytes::from(all)
    }

    /// The blob with zeros added at its end, up to `bytes` in total; never shorter than before.
    pub(super) fn padded(mut self, bytes: Option<u64>) -> Self {
        self.zeros += bytes.unwrap_or(0).saturating_sub(self.len());
        self
    }
}
