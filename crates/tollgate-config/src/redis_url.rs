//! Checks the URL of a Redis server, for the configuration and for the gateway's connection to Redis.

use ::redis::IntoConnectionInfo as _;

/// Checks a URL of the configuration: `redis://`, `rediss://` (TLS), `unix://`.
///
/// # Errors
/// Why the URL is rejected. The text does not repeat the URL, which can contain a password.
pub fn check_url(url: &str) -> Result<(), &'static str> {
    let scheme = url.split_once(':').map(|(scheme, _)| scheme);
    match scheme {
        Some("redis" | "rediss" | "unix") => url
            .into_connection_info()
            .map(drop)
            .map_err(|_| "is no URL that a Redis server can have"),
        _ => Err("takes redis://HOST:PORT/DATABASE, rediss://… for TLS, or unix:///PATH"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_checked_without_being_repeated() {
        for url in [
            "redis://127.0.0.1",
            "redis://user:pw@host:6380/2",
            "rediss://host",
            "unix:///run/redis.sock",
        ] {
            assert_eq!(check_url(url), Ok(()), "{url}");
        }
        for url in [
            "http://h",
            "h:6379",
            "redis:///x y",
            "redis://h/database",
            "",
        ] {
            assert!(check_url(url).is_err(), "{url}");
        }
    }
}
