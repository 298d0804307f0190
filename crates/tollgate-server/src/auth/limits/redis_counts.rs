//! Access to the counts of all nodes, and how limits are enforced while Redis is unreachable.

use std::sync::Arc;

use tollgate_config::OnRedisLoss;
use tollgate_core::{ApiError, ErrorKind};

use crate::cluster::live_nodes::LiveNodes;
use crate::redis::SharedLimits;

/// The state for counting together with other nodes.
#[derive(Clone)]
pub(super) struct RedisCounting {
    pub(super) limits: Arc<SharedLimits>,
    pub(super) on_loss: OnRedisLoss,
    pub(super) live_nodes: Arc<LiveNodes>,
}

impl RedisCounting {
    /// The number of nodes that limits are divided by while Redis is unreachable.
    ///
    /// # Errors
    /// 503 if no request is admitted while Redis is unreachable.
    pub(super) fn nodes_to_divide_by(&self) -> Result<u32, ApiError> {
        match self.on_loss {
            OnRedisLoss::Share => Ok(self.live_nodes.count()),
            OnRedisLoss::Open => Ok(1),
            OnRedisLoss::Closed => Err(ApiError {
                retry_after: Some(1),
                ..ApiError::new(
                    ErrorKind::Unavailable,
                    "rate limits cannot be counted at the moment: try again",
                )
            }),
        }
    }
}
