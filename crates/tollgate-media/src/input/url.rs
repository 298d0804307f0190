//! Checks the syntax of URLs from clients. The egress guard decides whether the gateway may connect to one.

use tollgate_core::ApiError;

use crate::text;

/// The longest image URL accepted, in bytes.
pub(crate) const MAX_URL: usize = 8192;

/// Checks that `url` is an absolute http or https URL of at most `max` bytes.
///
/// # Errors
/// 400 that names `field`.
pub(crate) fn check_url(field: &str, url: &str, max: usize) -> Result<(), ApiError> {
    if url.len() > max {
        return Err(ApiError::invalid(format!(
            "`{field}` must be a URL of at most {max} bytes, got {} bytes",
            url.len()
        )));
    }
    if is_http_url(url) {
        return Ok(());
    }
    Err(ApiError::invalid(format!(
        "`{field}` must be an absolute http or https URL, got {}",
        text::show_text(url)
    )))
}

fn is_http_url(url: &str) -> bool {
    let Some((scheme, rest)) = url.split_once("://") else {
        return false;
    };
    let clean = |c: char| !c.is_control() && !c.is_whitespace() && c != '\\';
    let known = ["http", "https"]
        .iter()
        .any(|s| scheme.eq_ignore_ascii_case(s));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host_and_port = authority.rsplit('@').next().unwrap_or_default();
    known && url.chars().all(clean) && is_host_and_port(host_and_port)
}

fn is_host_and_port(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((host, "")) => (host, None),
            Some((host, port)) if port.starts_with(':') => (host, port.get(1..)),
            _ => return false,
        },
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let host_ok = if text.starts_with('[') {
        host.parse::<std::net::Ipv6Addr>().is_ok()
    } else {
        let plain = |c: char| c.is_alphanumeric() || matches!(c, '-' | '.' | '_' | '%');
        !host.is_empty() && host.chars().all(plain)
    };
    let digits = |port: &str| port.bytes().all(|b| b.is_ascii_digit());
    let port_ok = port.is_none_or(|p| p.is_empty() || (digits(p) && p.parse::<u16>().is_ok()));
    host_ok && port_ok
}

#[cfg(test)]
mod tests {
    use super::*;

    const INVALID: &str = "\
        a.png //example.com/a https:/example.com https:// https:///a https://:80/ https://a:b/ \
        https://a:99999/ https://a\\b/ ftp://a/ file:///etc/passwd javascript://a/ http://[::1 \
        http://[::1]80/ http://[zz]/ http://a:1:2/";

    #[test]
    fn only_absolute_http_urls_are_accepted() {
        for valid in [
            "https://example.com/a.png?x=1#f",
            "HTTP://127.0.0.1:8080/files/x",
            "https://user:pw@example.com",
            "http://[::1]:80/a",
            "http://[::1]",
            "https://bücher.example/ü",
            "http://host:/",
        ] {
            assert!(check_url("u", valid, MAX_URL).is_ok(), "{valid}");
        }
        for invalid in INVALID
            .split(' ')
            .chain(["", "https://a b/", "https://a/\n"])
        {
            assert!(check_url("u", invalid, MAX_URL).is_err(), "{invalid}");
        }
        let long = |n: usize| format!("https://a/{}", "x".repeat(n - 10));
        assert!(check_url("u", &long(MAX_URL), MAX_URL).is_ok());
        let error = check_url("u", &long(MAX_URL + 1), MAX_URL).unwrap_err();
        assert!(error.message.len() < 300, "{error}");
    }
}
