//! Tests of files in a folder: they are complete or not visible, have their expiry in their names, and are deleted after it.

use super::*;

fn temporary_folder() -> PathBuf {
    std::env::temp_dir().join(id::short_id("tollgate-files-"))
}

#[test]
fn only_exact_links_of_this_storage_are_recognized() {
    let base = "https://gateway.example";
    let root = temporary_folder();
    let storage = FileStorage::open(&root, base).unwrap();
    let name = file_name::generate(1_700_000_000, "jpg");
    let url = storage.url(&name);
    assert_eq!(storage.own_name(&url).as_ref(), Some(&name));
    for other in [
        format!("{url}?x=1"),
        format!("{url}#x"),
        format!("https://gateway.example.evil/files/{name}"),
        format!("{base}/files/../{name}"),
        format!("{base}/{name}"),
    ] {
        assert_eq!(storage.own_name(&other), None, "{other}");
    }
    std::fs::remove_dir_all(&root).unwrap();
}

#[tokio::test]
async fn a_file_is_visible_only_when_complete() {
    let root = temporary_folder();
    let storage = FileStorage::open(&root, "https://gateway.example").unwrap();
    let mut file = storage
        .create(Visibility::Public, 4_000_000_000, "png")
        .await
        .unwrap();
    file.write(b"part").await.unwrap();
    drop(file);
    assert_eq!(
        std::fs::read_dir(root.join("tmp")).unwrap().count(),
        0,
        "an abandoned file is gone"
    );

    let mut file = storage
        .create(Visibility::Public, 4_000_000_000, "bin")
        .await
        .unwrap();
    file.write(b"complete").await.unwrap();
    file.set_extension("png");
    let name = file.finish().await.unwrap();
    let stored = storage.local_copy(Visibility::Public, &name, 0).await;
    let path = stored.unwrap().path().to_owned();
    assert_eq!(std::fs::read(&path).unwrap(), b"complete");
    let private = storage.local_copy(Visibility::Private, &name, 0).await;
    assert_eq!(private.unwrap_err().kind(), io::ErrorKind::NotFound);
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o077,
        0
    );
    assert_eq!(
        std::fs::metadata(&root).unwrap().permissions().mode() & 0o077,
        0
    );
    storage.delete(Visibility::Public, &name).await;
    assert!(!path.exists());
    std::fs::remove_dir_all(&root).unwrap();
}

#[tokio::test]
async fn a_file_without_a_name_lasts_as_long_as_its_copy() {
    let root = temporary_folder();
    let storage = FileStorage::open(&root, "https://gateway.example").unwrap();
    let created = storage.create(Visibility::Private, 4_000_000_000, "bin");
    let mut file = created.await.unwrap();
    file.write(b"fetched").await.unwrap();
    let copy = file.finish_locally().await.unwrap();
    let path = copy.path().to_owned();
    assert_eq!(std::fs::read(&path).unwrap(), b"fetched");
    drop(copy);
    assert!(!path.exists());
    std::fs::remove_dir_all(&root).unwrap();
}

#[tokio::test]
async fn expired_files_are_deleted_and_no_others() {
    let root = temporary_folder();
    let storage = FileStorage::open(&root, "https://gateway.example").unwrap();
    let mut kept = Vec::new();
    for expires_at in [7_300, 7_200, 7_199, 20_000] {
        let mut file = storage
            .create(Visibility::Private, expires_at, "png")
            .await
            .unwrap();
        let name = file.finish().await.unwrap();
        let stored = storage.local_copy(Visibility::Private, &name, 0).await;
        kept.push((expires_at, stored.unwrap().path().to_owned()));
    }
    storage.delete_expired(7_250_000, false).await;
    for (expires_at, path) in kept {
        assert_eq!(path.exists(), expires_at > 7_250, "{expires_at}");
    }
    std::fs::remove_dir_all(&root).unwrap();
}
