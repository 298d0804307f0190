//! API keys: looked up by their SHA-256, cached until they or their users change, checked on every request.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use foldhash::fast::RandomState;
use http::{HeaderMap, HeaderName};
use subtle::ConstantTimeEq as _;
use tollgate_core::{ApiError, Clock, ErrorKind, Millis, id};
use tollgate_store::{AccessChange, AccessChanges, Key, Store, StoreError};

use crate::http::errors;

const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const X_GOOG_API_KEY: HeaderName = HeaderName::from_static("x-goog-api-key");

/// How often the store is polled for changes of users or keys: a revocation takes effect within a second.
const REFRESH_INTERVAL: Duration = Duration::from_millis(300);

/// Authenticates requests by their API key.
pub struct Authenticator {
    store: Store,
    clock: Arc<dyn Clock>,
    /// The cached keys, by the first 8 bytes of the key's hash; the full hash is compared in constant time.
    cache: RwLock<HashMap<[u8; 8], CachedKey, RandomState>>,
    /// The store's version of users and keys at which the cache is valid.
    version: AtomicI64,
}

struct CachedKey {
    digest: [u8; 32],
    key: Arc<Key>,
    /// When this secret expires. `None` if it is the key's current one.
    secret_expires_at: Option<Millis>,
}

/// A key, and when the presented secret expires. `None` if it is the key's current one.
type FoundKey = (Arc<Key>, Option<Millis>);

/// Why a request is not authenticated.
#[derive(Debug)]
pub enum AuthError {
    /// The request has no key.
    MissingKey,
    /// The key is unknown, replaced, revoked or expired; the text says which.
    InvalidKey(&'static str),
    /// The key's user is disabled.
    UserDisabled,
    /// The database failed.
    Store(StoreError),
}

impl From<AuthError> for ApiError {
    fn from(error: AuthError) -> Self {
        match error {
            AuthError::MissingKey => Self::new(
                ErrorKind::Authentication,
                "an API key is required: send it as `Authorization: Bearer sk-…`",
            ),
            AuthError::InvalidKey(why) => Self::new(ErrorKind::Authentication, why),
            AuthError::UserDisabled => Self::new(ErrorKind::Permission, "this account is disabled"),
            AuthError::Store(e) => errors::from_store(e),
        }
    }
}

impl Authenticator {
    /// An authenticator for the keys in `store`, with an empty cache.
    pub fn new(store: Store, clock: Arc<dyn Clock>) -> Self {
        Self {
            store,
            clock,
            cache: RwLock::default(),
            version: AtomicI64::default(),
        }
    }

    /// Returns the key in `headers`, if it is valid now.
    pub async fn authenticate(&self, headers: &HeaderMap) -> Result<Arc<Key>, AuthError> {
        self.authenticate_any(&presented_keys(headers, None)).await
    }

    /// Returns the first of several presented keys that is valid now, else the error of the first one. Some clients send two keys.
    pub async fn authenticate_any(
        &self,
        presented: &PresentedKeys<'_>,
    ) -> Result<Arc<Key>, AuthError> {
        let mut first_error = None;
        for key in presented.iter().flatten() {
            match self.check_key(key).await {
                Ok(key) => return Ok(key),
                Err(error) => first_error = first_error.or(Some(error)),
            }
        }
        Err(first_error.unwrap_or(AuthError::MissingKey))
    }

    async fn check_key(&self, presented: &str) -> Result<Arc<Key>, AuthError> {
        let digest = id::key_digest(presented);
        let (key, secret_expires_at) = match self.cached(&digest) {
            Some(found) => found,
            None => Box::pin(self.look_up(digest)).await?,
        };
        if secret_expires_at.is_some_and(|at| at <= self.clock.now()) {
            return Err(AuthError::InvalidKey(
                "this API key was replaced by another",
            ));
        }
        check_is_valid(&key, self.clock.now())?;
        Ok(key)
    }

    fn cached(&self, digest: &[u8; 32]) -> Option<FoundKey> {
        let cache = self.cache.read().unwrap_or_else(PoisonError::into_inner);
        let found = cache.get(&digest_prefix(digest))?;
        let is_same = bool::from(found.digest.ct_eq(digest));
        is_same.then(|| (Arc::clone(&found.key), found.secret_expires_at))
    }

    async fn look_up(&self, digest: [u8; 32]) -> Result<FoundKey, AuthError> {
        let version = self.version.load(Ordering::Acquire);
        let hash = id::hex(&digest);
        let found = self.store.key_by_hash(&hash).await;
        let found = found.map_err(AuthError::Store)?;
        let key = Arc::new(found.ok_or(AuthError::InvalidKey("this API key is not known"))?);
        // A secret from before the last rotation; without a known expiry it is invalid at once.
        let secret_expires_at = (key.hash != hash).then(|| key.previous_valid_until.unwrap_or(0));
        let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
        // If the version has changed since, the key was read before that change: it is used for this request and not cached.
        if self.version.load(Ordering::Acquire) == version {
            let key = Arc::clone(&key);
            let cached = CachedKey {
                digest,
                key,
                secret_expires_at,
            };
            cache.insert(digest_prefix(&digest), cached);
        }
        Ok((key, secret_expires_at))
    }

    /// Calls [`Authenticator::forget_changed_keys`] three times a second. Never returns.
    pub async fn watch_for_changes(&self) {
        let mut ticks = tokio::time::interval(REFRESH_INTERVAL);
        loop {
            ticks.tick().await;
            self.forget_changed_keys().await;
        }
    }

    /// Removes from the cache the keys that changed or whose users changed according to the store, and all keys if the store cannot report that.
    pub async fn forget_changed_keys(&self) {
        let version = self.version.load(Ordering::Acquire);
        match self.store.access_changes_since(version).await {
            Ok(changed) if changed.version != version => self.forget(&changed),
            Ok(_) => {}
            Err(e) => {
                // A key that cannot be checked for revocation must not be accepted.
                tracing::warn!(error = %e, "cannot check whether API keys changed: the key cache is emptied");
                let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
                cache.clear();
            }
        }
    }

    /// Removes what has changed. The version is set first: from then on, no key is cached that was read before the change, so everything outdated is
    /// found below.
    fn forget(&self, changed: &AccessChanges) {
        {
            let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
            self.version.store(changed.version, Ordering::Release);
            if changed.changes.is_none() {
                cache.clear();
            }
        }
        let (mut users, mut keys) = (HashSet::new(), HashSet::new());
        for change in changed.changes.iter().flatten() {
            match change {
                AccessChange::User(id) => users.insert(id.as_str()),
                AccessChange::Key(id) => keys.insert(id.as_str()),
            };
        }
        let stale: Vec<[u8; 8]> = {
            // Requests can read the cache while this runs.
            let cache = self.cache.read().unwrap_or_else(PoisonError::into_inner);
            let is_stale =
                |key: &Key| keys.contains(key.id.as_str()) || users.contains(key.user_id.as_str());
            let found = cache.iter().filter(|(_, cached)| is_stale(&cached.key));
            found.map(|(prefix, _)| *prefix).collect()
        };
        let mut cache = self.cache.write().unwrap_or_else(PoisonError::into_inner);
        for prefix in stale {
            cache.remove(&prefix);
        }
    }
}

/// Checks that a key is neither revoked nor expired, and its user not disabled.
///
/// # Errors
/// The reason why the key is invalid.
pub fn check_is_valid(key: &Key, now: Millis) -> Result<(), AuthError> {
    if key.revoked_at.is_some() {
        return Err(AuthError::InvalidKey("this API key was revoked"));
    }
    if key.limits.expires_at.is_some_and(|at| at <= now) {
        return Err(AuthError::InvalidKey("this API key has expired"));
    }
    match key.user_disabled_at {
        Some(_) => Err(AuthError::UserDisabled),
        None => Ok(()),
    }
}

fn digest_prefix(digest: &[u8; 32]) -> [u8; 8] {
    std::array::from_fn(|i| digest[i])
}

/// The keys that a request presents, none of them empty.
pub type PresentedKeys<'a> = [Option<&'a str>; 4];

/// The keys of a request, in the order in which they are tried: `Authorization: Bearer`, `x-api-key`, `x-goog-api-key`, and
/// `query_key` from the URL.
pub fn presented_keys<'a>(headers: &'a HeaderMap, query_key: Option<&'a str>) -> PresentedKeys<'a> {
    let bearer = headers.get(http::header::AUTHORIZATION).and_then(|v| {
        let (scheme, key) = v.to_str().ok()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(key)
    });
    let header = |name: &HeaderName| headers.get(name).and_then(|v| v.to_str().ok());
    let all = [
        bearer,
        header(&X_API_KEY),
        header(&X_GOOG_API_KEY),
        query_key,
    ];
    all.map(|key| key.map(str::trim).filter(|key| !key.is_empty()))
}
