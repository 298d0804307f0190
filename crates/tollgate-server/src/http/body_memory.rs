//! The memory budget of large request bodies: shared by the process, with a share for each user, so that the bodies of one user leave memory for
//! those of others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};
use tollgate_core::{ApiError, ErrorKind};

/// Largest JSON body, in bytes, of endpoints that accept data URIs: 64 MB.
pub const MAX_BODY_WITH_FILES: usize = 64 * 1_048_576;
/// Bytes that one permit stands for.
const BYTES_PER_PERMIT: usize = 64 * 1024;
/// The smallest share of a user: a body of the largest size, and the memory that parsing it needs.
const MIN_USER_SHARE: usize = 2 * MAX_BODY_WITH_FILES + 8 * 1_048_576;
/// How long a body waits for memory.
const MEMORY_TIMEOUT: Duration = Duration::from_secs(5);
/// Users whose shares are remembered; if there are more, users without a body in flight are removed.
const MAX_IDLE_USERS: usize = 1024;

/// The memory budget of large bodies in flight.
#[derive(Clone)]
pub struct BodyBudget(Arc<Shares>);

struct Shares {
    total: Arc<Semaphore>,
    user_permits: usize,
    users: Mutex<HashMap<String, Weak<Semaphore>>>,
}

impl BodyBudget {
    /// A budget of `megabytes` (of 1048576 bytes), at least what one body of [`MAX_BODY_WITH_FILES`] needs. A user's share is half of it, but enough
    /// for one such body.
    pub fn new(megabytes: usize) -> Self {
        let bytes = (megabytes * 1_048_576).max(MIN_USER_SHARE);
        let share = (bytes / 2).max(MIN_USER_SHARE);
        Self(Arc::new(Shares {
            total: Arc::new(Semaphore::new(bytes / BYTES_PER_PERMIT)),
            user_permits: share / BYTES_PER_PERMIT,
            users: Mutex::default(),
        }))
    }

    /// The budget of a user's requests.
    pub fn of_user<'a>(&'a self, user_id: &'a str) -> UserBudget<'a> {
        UserBudget {
            budget: self,
            user_id,
        }
    }
}

impl Shares {
    fn user_share(&self, user_id: &str) -> Arc<Semaphore> {
        let mut users = self.users.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = users.get(user_id).and_then(Weak::upgrade) {
            return share;
        }
        if users.len() >= MAX_IDLE_USERS {
            users.retain(|_, share| share.strong_count() > 0);
        }
        let share = Arc::new(Semaphore::new(self.user_permits));
        users.insert(user_id.to_owned(), Arc::downgrade(&share));
        share
    }
}

/// A user's share of the memory budget.
#[derive(Clone, Copy)]
pub struct UserBudget<'a> {
    budget: &'a BodyBudget,
    user_id: &'a str,
}

/// The memory that one body uses of its user's share and of the budget, until it is dropped.
#[derive(Default)]
pub struct BodyMemory {
    permits: Option<[OwnedSemaphorePermit; 2]>,
}

impl BodyMemory {
    /// Acquires the memory that is missing to hold `bytes`; waits up to 5 seconds.
    ///
    /// # Errors
    /// 503 if the user's share or the budget is still used up then.
    pub(super) async fn grow_to(
        &mut self,
        bytes: usize,
        budget: UserBudget<'_>,
    ) -> Result<(), ApiError> {
        let held = self.permits.as_ref().map_or(0, |[_, p]| p.num_permits());
        let missing = bytes.div_ceil(BYTES_PER_PERMIT).saturating_sub(held);
        let missing = u32::try_from(missing).unwrap_or(u32::MAX);
        if missing == 0 {
            return Ok(());
        }
        let Shares { total, .. } = &*budget.budget.0;
        let share = budget.budget.0.user_share(budget.user_id);
        let deadline = Instant::now() + MEMORY_TIMEOUT;
        let of_user = timeout_at(deadline, share.acquire_many_owned(missing));
        let Ok(Ok(of_user)) = of_user.await else {
            return Err(exhausted("you have too many large requests at once"));
        };
        let of_total = timeout_at(deadline, Arc::clone(total).acquire_many_owned(missing));
        let Ok(Ok(of_total)) = of_total.await else {
            return Err(exhausted("too many large requests at once"));
        };
        match &mut self.permits {
            Some([user, total]) => {
                user.merge(of_user);
                total.merge(of_total);
            }
            none => *none = Some([of_user, of_total]),
        }
        Ok(())
    }
}

fn exhausted(why: &str) -> ApiError {
    let message = format!("{why}: try again shortly");
    ApiError {
        retry_after: Some(5),
        ..ApiError::new(ErrorKind::Unavailable, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_user_who_requests_all_memory_leaves_some_for_others() {
        let budget = BodyBudget::new(3 * MIN_USER_SHARE / 2 / 1_048_576);
        let (ada, bob) = (budget.of_user("ada"), budget.of_user("bob"));
        let mut all = BodyMemory::default();
        all.grow_to(MIN_USER_SHARE / 2, ada).await.unwrap();
        all.grow_to(MIN_USER_SHARE, ada).await.unwrap();
        let rejected = BodyMemory::default().grow_to(1, ada).await;
        let rejected = rejected.unwrap_err();
        assert_eq!(rejected.kind, ErrorKind::Unavailable);
        assert!(
            rejected.message.contains("you have"),
            "{}",
            rejected.message
        );
        let mut of_bob = BodyMemory::default();
        of_bob.grow_to(MIN_USER_SHARE / 2, bob).await.unwrap();
        let rejected = of_bob.grow_to(MIN_USER_SHARE, bob).await.unwrap_err();
        assert!(rejected.message.starts_with("too many"), "{rejected:?}");
        drop(all);
        of_bob.grow_to(MIN_USER_SHARE, bob).await.unwrap();
    }
}
