//! A connection that can be reset instead of closed.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Decides how its connection ends.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reset(Arc<AtomicBool>);

impl Reset {
    /// Makes the end of the connection a reset.
    pub(crate) fn arm(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A connection from a client.
pub(crate) struct Socket {
    stream: TcpStream,
    reset: Reset,
}

impl Socket {
    pub(crate) fn new(stream: TcpStream, reset: Reset) -> Self {
        Self { stream, reset }
    }

    fn is_armed(&self) -> bool {
        self.reset.0.load(Ordering::SeqCst)
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.is_armed() {
            // If the connection has ended already, no reset is needed.
            self.stream.set_zero_linger().unwrap_or_default();
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_armed() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
