//! Recognises the kind of a `fileUri`: an upload in Google's file store, a YouTube video, or any other link.

/// Whether `url` is a file uploaded to Google's file store.
pub(crate) fn is_google_upload(url: &str) -> bool {
    url.starts_with("files/")
        || url
            .strip_prefix("https://generativelanguage.googleapis.com/")
            .is_some_and(|path| path.contains("/files/"))
}

/// Whether `url` is a YouTube video: Google fetches those itself for every model.
pub(crate) fn is_youtube(url: &str) -> bool {
    const HOSTS: [&str; 4] = [
        "www.youtube.com",
        "youtube.com",
        "m.youtube.com",
        "youtu.be",
    ];
    let host = url.split_once("://").map_or("", |(_, rest)| rest);
    HOSTS.contains(&host.split('/').next().unwrap_or_default())
}

/// The media type of a link, guessed by its file extension; PDF if unknown.
pub(crate) fn guess_media_type(url: &str) -> &'static str {
    const BY_ENDING: &[(&str, &str)] = &[
        (".png", "image/png"),
        (".jpg", "image/jpeg"),
        (".jpeg", "image/jpeg"),
        (".webp", "image/webp"),
        (".gif", "image/gif"),
        (".heic", "image/heic"),
        (".heif", "image/heif"),
        (".mp3", "audio/mp3"),
        (".wav", "audio/wav"),
        (".mp4", "video/mp4"),
        (".mov", "video/quicktime"),
        (".webm", "video/webm"),
        (".txt", "text/plain"),
    ];
    if is_youtube(url) {
        return "video/mp4";
    }
    let plain = url
        .split(['?', '#'])
        .next()
        .unwrap_or_default()
        .to_ascii_lowercase();
    let known = BY_ENDING.iter().find(|(ending, _)| plain.ends_with(ending));
    known.map_or("application/pdf", |(_, media_type)| media_type)
}
