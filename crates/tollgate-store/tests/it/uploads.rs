//! Uploads are counted against the limits of their user and of all users.

use futures_util::future::join_all;
use tollgate_store::{NewUpload, UploadLimits, UploadRejection};

use crate::databases::{Db, on_both};

on_both!(
    uploads_are_counted_until_they_expire,
    concurrent_uploads_stay_within_the_limit,
);

const HOUR: i64 = 3_600_000;
const NOW: i64 = 500_000 * HOUR;
const LIMITS: UploadLimits = UploadLimits {
    of_user: Some(100),
    of_all: Some(150),
};

fn upload(user: &str, bytes: u64, hours: i64) -> NewUpload {
    NewUpload {
        user_id: user.to_owned(),
        bytes,
        expires_at: NOW + hours * HOUR,
    }
}

async fn uploads_are_counted_until_they_expire(db: &Db) {
    let store = db.open().await;
    let of_user = Err(UploadRejection::OfUser(100));
    let of_all = Err(UploadRejection::OfAll(150));
    for (user, bytes, hours, later, expected) in [
        ("ann", 60, 1, 0, Ok(())),
        ("ann", 41, 3, 0, of_user),
        ("ann", 40, 3, 0, Ok(())),
        ("bob", 51, 3, 0, of_all),
        ("bob", 50, 3, 0, Ok(())),
        // Ann's first upload has expired.
        ("ann", 61, 9, 2, of_user),
        ("ann", 60, 9, 2, Ok(())),
    ] {
        let now = NOW + later * HOUR;
        let counted = store.count_upload(upload(user, bytes, hours), LIMITS, now);
        assert_eq!(counted.await.unwrap(), expected, "{user} {bytes}");
    }
    store.purge_expired(0, NOW + 5 * HOUR).await.unwrap();
    assert_eq!(db.number("SELECT COUNT(*) FROM upload_bytes").await, 2);
}

async fn concurrent_uploads_stay_within_the_limit(db: &Db) {
    let (first, second) = (db.open().await, db.open().await);
    let uploads = (0..40).map(|number| {
        let store = if number % 2 == 0 { &first } else { &second };
        store.count_upload(upload("ann", 9, 1), LIMITS, NOW)
    });
    let counted = join_all(uploads).await;
    let accepted = counted
        .into_iter()
        .filter(|one| *one.as_ref().unwrap() == Ok(()));
    // Each upload may count the bytes that another one adds for a moment before it is rejected.
    assert!((1..=11).contains(&accepted.count()));
    let sum = "SELECT SUM(bytes) FROM upload_bytes WHERE user_id = 'ann'";
    assert!(db.number(sum).await <= 100);
}
