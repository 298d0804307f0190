//! Spawns futures as tasks of the runtime, boxed, so that tokio's code for a task is compiled once for all of them.

use futures_util::future::BoxFuture;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// Runs `work` in the background; does nothing outside a runtime, where the process is ending.
pub fn spawn_detached(work: impl Future<Output = ()> + Send + 'static) {
    let work: BoxFuture<'static, ()> = Box::pin(work);
    if let Ok(runtime) = Handle::try_current() {
        runtime.spawn(work);
    }
}

/// Runs `work` in the background. Must be called within a runtime.
pub fn spawn(work: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    let work: BoxFuture<'static, ()> = Box::pin(work);
    tokio::spawn(work)
}
