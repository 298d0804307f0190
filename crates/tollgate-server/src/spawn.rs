//! Tasks that nobody waits for.

use std::pin::Pin;

use tokio::runtime::Handle;

/// Runs `work` in the background; not at all outside a runtime, where the process is ending.
pub fn spawn_detached(work: impl Future<Output = ()> + Send + 'static) {
    // Behind a pointer: tokio's code for a task is compiled once for all of them.
    let work: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(work);
    if let Ok(runtime) = Handle::try_current() {
        runtime.spawn(work);
    }
}
