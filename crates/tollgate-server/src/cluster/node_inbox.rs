//! Handles messages that other nodes send through Redis. Without Redis this node learns the same by polling, or not at all (docs/redis.md).

use std::sync::Arc;

use crate::redis::{CooldownName, NodeInbox, NodeMessage, SharedCooldown};
use crate::reloadable::ReloadableHandle;
use crate::tasks::context::TaskContext;
use crate::tasks::pool::WorkerPool;

/// The parts of this process that messages of other nodes affect.
pub struct LocalInbox {
    /// The channels.
    pub reloadable: ReloadableHandle,
    /// Wakes the workers.
    pub tasks: Arc<TaskContext>,
    /// The workers.
    pub pool: Arc<WorkerPool>,
}

impl NodeInbox for LocalInbox {
    fn receive(&self, message: NodeMessage, is_own: bool) {
        match message {
            NodeMessage::Cooldown(name, cooldown) => {
                let reloadable = self.reloadable.current();
                if let Some(open) = reloadable.routing.by_name(&name.channel) {
                    open.apply_cooldown(&name, cooldown, is_own);
                }
            }
            // For all other kinds, this node has done the work before it sent the message.
            _ if is_own => {}
            NodeMessage::WakeWorkers => self.tasks.signals.wake_pool(),
            NodeMessage::StopTask(id) => {
                self.pool.stop_task_here(&id);
            }
            NodeMessage::WakeChannel(name) => {
                if let Some(open) = self.reloadable.current().routing.by_name(&name) {
                    open.lift_cooldowns_here();
                }
            }
        }
    }

    fn replace_cooldowns(&self, all: Vec<(CooldownName, SharedCooldown)>) {
        for open in self.reloadable.current().routing.channels() {
            open.replace_cooldowns(&all);
        }
    }
}
