//! Passwords of admins: hashed with argon2id, a few at a time, outside the async threads.

use std::sync::Arc;

use argon2::Argon2;
use argon2::password_hash::{PasswordHash, PasswordHasher as _, PasswordVerifier as _, SaltString};
use tokio::sync::Semaphore;
use tollgate_core::id;

use crate::http::admin_error::AdminError;

/// Hashes that are computed at the same time; each needs 19 MiB.
const CONCURRENT: usize = 2;

/// Hashes and verifies passwords.
#[derive(Clone)]
pub struct PasswordHasher {
    permits: Arc<Semaphore>,
    /// The hash to verify if there is no such admin, so that the response takes equally long.
    unknown: Arc<str>,
}

impl Default for PasswordHasher {
    fn default() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(CONCURRENT)),
            // This hash belongs to no password: its hash part has the right length and is not the output of any known one.
            unknown: "$argon2id$v=19$m=19456,t=2,p=1$MDEyMzQ1Njc4OWFiY2RlZg$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA".into(),
        }
    }
}

impl PasswordHasher {
    /// The argon2id hash of a password.
    ///
    /// # Errors
    /// 500 if it cannot be hashed.
    pub async fn hash(&self, password: String) -> Result<String, AdminError> {
        self.run(move || {
            let salt = SaltString::encode_b64(id::random_secret("").as_bytes().get(..16)?).ok()?;
            let hash = Argon2::default().hash_password(password.as_bytes(), &salt);
            hash.ok().map(|hash| hash.to_string())
        })
        .await?
        .ok_or_else(internal)
    }

    /// Whether `hash` is the hash of the password; takes equally long if it is `None`.
    ///
    /// # Errors
    /// 500 if the check cannot run.
    pub async fn verify(&self, password: String, hash: Option<String>) -> Result<bool, AdminError> {
        let is_known = hash.is_some();
        let hash = hash.unwrap_or_else(|| self.unknown.to_string());
        self.run(move || {
            let hash = PasswordHash::new(&hash);
            let verified =
                hash.and_then(|hash| Argon2::default().verify_password(password.as_bytes(), &hash));
            is_known && verified.is_ok()
        })
        .await
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, AdminError> {
        let permit = Arc::clone(&self.permits).acquire_owned().await;
        let permit = permit.map_err(|_| internal())?;
        let run = tokio::task::spawn_blocking(move || {
            let result = work();
            drop(permit);
            result
        });
        run.await.map_err(|_| internal())
    }
}

fn internal() -> AdminError {
    let status = http::StatusCode::INTERNAL_SERVER_ERROR;
    AdminError::new(status, "internal", "an internal error: see the log")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_password_of_a_hash_is_verified() {
        let hasher = PasswordHasher::default();
        let hash = hasher.hash("correct horse".to_owned()).await.unwrap();
        assert!(hash.starts_with("$argon2id$"), "{hash}");
        let verify = async |password: &str, hash: Option<&String>| {
            let hash = hash.cloned();
            hasher.verify(password.to_owned(), hash).await.unwrap()
        };
        assert!(verify("correct horse", Some(&hash)).await);
        assert!(!verify("correct horsE", Some(&hash)).await);
        assert!(!verify("correct horse", None).await);
        assert!(PasswordHash::new(&hasher.unknown).is_ok());
    }
}
