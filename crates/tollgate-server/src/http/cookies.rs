//! The gateway's own cookies: the `Set-Cookie` header, and the value in a request.

use http::{HeaderMap, HeaderValue, header};

/// The beginning of the names of cookies that browsers accept only over TLS, with `Secure` and `Path=/`
/// (<https://datatracker.ietf.org/doc/html/draft-ietf-httpbis-rfc6265bis>).
const HOST_PREFIX: &str = "__Host-";

/// The requests with which browsers send a cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SameSite {
    /// Not those that a page of another site starts.
    Strict,
    /// Also those of links and redirects from another site.
    Lax,
}

impl SameSite {
    fn name(self) -> &'static str {
        match self {
            Self::Strict => "Strict",
            Self::Lax => "Lax",
        }
    }
}

/// The `Set-Cookie` header of a cookie that pages' scripts cannot read. The browser keeps it for `age_s` seconds; 0 deletes it.
pub fn format_set_cookie(name: &str, value: &str, age_s: u32, same_site: SameSite) -> HeaderValue {
    let same_site = same_site.name();
    let secure = if name.starts_with(HOST_PREFIX) {
        "; Secure"
    } else {
        ""
    };
    let text =
        format!("{name}={value}; Path=/; Max-Age={age_s}; HttpOnly; SameSite={same_site}{secure}");
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static(""))
}

/// The value of a request's cookie.
pub fn find_cookie<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let lines = headers.get_all(header::COOKIE).into_iter();
    let pairs = lines.filter_map(|line| line.to_str().ok());
    let mut pairs = pairs.flat_map(|line| line.split(';'));
    pairs.find_map(|pair| {
        let (known, value) = pair.trim().split_once('=')?;
        (known == name).then_some(value)
    })
}
