//! Who is calling: keys are looked up by hash, remembered while nothing changes, and checked on every request.

use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use axum::extract::FromRequestParts;
use foldhash::fast::RandomState;
use http::request::Parts;
use http::{HeaderMap, HeaderName, Method};
use subtle::ConstantTimeEq as _;
use tollgate_core::{ApiError, ErrorKind, id};
use tollgate_store::{Key, Store, StoreError};

use crate::app::App;
use crate::http::reply::Failure;
use crate::http::trace::RequestNotes;
use crate::limits::Permit;

const API_KEY: HeaderName = HeaderName::from_static("x-api-key");
const GOOGLE_KEY: HeaderName = HeaderName::from_static("x-goog-api-key");

/// How often the store is asked whether users or keys changed. A revocation is seen within a second.
const FRESHNESS: Duration = Duration::from_millis(300);

/// What is remembered of keys.
#[derive(Default)]
pub struct Access {
    /// By the first 8 bytes of the key's hash; the rest is compared in constant time.
    known: RwLock<HashMap<[u8; 8], Known, RandomState>>,
    version: AtomicI64,
}

struct Known {
    digest: [u8; 32],
    key: Arc<Key>,
}

/// Why somebody is not let in.
#[derive(Debug)]
pub enum Denied {
    /// No key came with the request.
    Missing,
    /// The key is unknown, revoked or past its end; the text says which.
    Unknown(&'static str),
    /// The key's user is disabled.
    UserDisabled,
    /// The database did not answer.
    Store(StoreError),
}

impl From<Denied> for ApiError {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Missing => Self::new(
                ErrorKind::Authentication,
                "an API key is required: send it as `Authorization: Bearer sk-…`",
            ),
            Denied::Unknown(why) => Self::new(ErrorKind::Authentication, why),
            Denied::UserDisabled => Self::new(ErrorKind::Permission, "this account is disabled"),
            Denied::Store(e) => crate::errors::store(e),
        }
    }
}

impl Access {
    /// The key that `headers` bring, if it may be used now.
    pub async fn authenticate(&self, app: &App, headers: &HeaderMap) -> Result<Arc<Key>, Denied> {
        self.authenticate_any(app, &presented(headers, None)).await
    }

    /// The first of several presented keys that may be used now; else what is wrong with the first. Some clients send two.
    pub async fn authenticate_any(
        &self,
        app: &App,
        presented: &Presented<'_>,
    ) -> Result<Arc<Key>, Denied> {
        let mut first = None;
        for key in presented.iter().flatten() {
            match self.check(app, key).await {
                Ok(key) => return Ok(key),
                Err(denied) => first = first.or(Some(denied)),
            }
        }
        Err(first.unwrap_or(Denied::Missing))
    }

    async fn check(&self, app: &App, presented: &str) -> Result<Arc<Key>, Denied> {
        let digest = id::key_digest(presented);
        let key = match self.remembered(&digest) {
            Some(key) => key,
            None => Box::pin(self.look_up(&app.store, digest)).await?,
        };
        if key.revoked_at.is_some() {
            return Err(Denied::Unknown("this API key was revoked"));
        }
        if key
            .limits
            .expires_at
            .is_some_and(|end| end <= app.clock.now())
        {
            return Err(Denied::Unknown("this API key has expired"));
        }
        if key.user_disabled_at.is_some() {
            return Err(Denied::UserDisabled);
        }
        Ok(key)
    }

    fn remembered(&self, digest: &[u8; 32]) -> Option<Arc<Key>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let found = known.get(&short(digest))?;
        bool::from(found.digest.ct_eq(digest)).then(|| Arc::clone(&found.key))
    }

    async fn look_up(&self, store: &Store, digest: [u8; 32]) -> Result<Arc<Key>, Denied> {
        let version = self.version.load(Ordering::Acquire);
        let found = store
            .key_by_hash(&id::hex(&digest))
            .await
            .map_err(Denied::Store)?;
        let key = Arc::new(found.ok_or(Denied::Unknown("this API key is not known"))?);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        // Read before a change that has been noticed meanwhile: good for this request, not to be remembered.
        if self.version.load(Ordering::Acquire) == version {
            let key = Arc::clone(&key);
            known.insert(short(&digest), Known { digest, key });
        }
        Ok(key)
    }

    /// Forgets everything as soon as the store says that users or keys changed. Never returns.
    pub async fn follow(&self, store: &Store) {
        let mut ticks = tokio::time::interval(FRESHNESS);
        loop {
            ticks.tick().await;
            match store.access_version().await {
                Ok(version) if version != self.version.load(Ordering::Acquire) => {
                    let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
                    self.version.store(version, Ordering::Release);
                    known.clear();
                }
                Ok(_) => {}
                Err(e) => {
                    // What cannot be checked is not believed.
                    tracing::warn!(error = %e, "cannot see whether keys changed");
                    self.known
                        .write()
                        .unwrap_or_else(PoisonError::into_inner)
                        .clear();
                }
            }
        }
    }
}

fn short(digest: &[u8; 32]) -> [u8; 8] {
    std::array::from_fn(|i| digest[i])
}

/// The keys that a request brings, none of them empty.
pub type Presented<'a> = [Option<&'a str>; 4];

/// The keys of a request: `Authorization: Bearer`, `x-api-key`, `x-goog-api-key` (DECISIONS.md › Values) and one from elsewhere, in
/// that order.
pub fn presented<'a>(headers: &'a HeaderMap, elsewhere: Option<&'a str>) -> Presented<'a> {
    let bearer = headers.get(http::header::AUTHORIZATION).and_then(|v| {
        let (scheme, key) = v.to_str().ok()?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(key)
    });
    let plain = |name: &HeaderName| headers.get(name).and_then(|v| v.to_str().ok());
    let all = [bearer, plain(&API_KEY), plain(&GOOGLE_KEY), elsewhere];
    all.map(|key| key.map(str::trim).filter(|key| !key.is_empty()))
}

/// The caller of a request: its key, counted against the key's limits while the request lasts.
pub struct Caller {
    /// The key.
    pub key: Arc<Key>,
    permit: Option<Permit>,
}

impl Caller {
    /// Lets a request of `key` in, if its limits do.
    ///
    /// # Errors
    /// 429 that names the limit.
    pub fn admit(app: &App, key: Arc<Key>, method: &Method) -> Result<Self, ApiError> {
        let permit = app
            .limits
            .admit(&key, method == Method::POST, app.clock.now())?;
        Ok(Self { key, permit })
    }

    /// What counts the request as in flight, for who sends its answer after this caller is gone. None where nothing
    /// limits the key.
    pub fn take_permit(&mut self) -> Option<Permit> {
        self.permit.take()
    }

    /// Whether the key may use `model`.
    pub fn may_use(&self, model: &str) -> Result<(), ApiError> {
        match &self.key.limits.models {
            Some(models) if !models.iter().any(|m| m == model) => Err(ApiError::new(
                ErrorKind::Permission,
                format!(
                    "this API key may not use the model; it may use: {}",
                    models.join(", ")
                ),
            )),
            _ => Ok(()),
        }
    }
}

impl FromRequestParts<Arc<App>> for Caller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Failure> {
        let key = app
            .access
            .authenticate(app, &parts.headers)
            .await
            .map_err(|denied| Failure::from(ApiError::from(denied)))?;
        if let Some(notes) = parts.extensions.get::<RequestNotes>() {
            notes.set_key(&key);
        }
        Ok(Self::admit(app, key, &parts.method)?)
    }
}
