//! Checks the certificates of the listeners, and warns if keys are sent over a network unencrypted.

use std::net::IpAddr;
use std::path::Path;

use tollgate_config::Config;
use tollgate_config::TlsFiles;
use tollgate_core::clock::DAY;
use tollgate_core::{Clock as _, Millis, SystemClock};
use tollgate_server::http::tls::{ServerTls, certificate_expires_at, client_ca_expires_at};

use super::finding::Finding;

const CHECK: &str = "certificates";
/// Shortest remaining validity of a certificate without a warning: services that renew certificates do so a month before the end.
const MIN_VALIDITY: Millis = 14 * DAY;

/// Checks the gateway's listener, and the listener for operators if there is one.
pub(super) fn check_certificates(config: &Config) -> Vec<Finding> {
    let now = SystemClock.now();
    let mut found = check_listener(
        config.tls.as_ref(),
        &config.listen,
        config.public_url.as_deref(),
        "set tls.cert and tls.key, or put a TLS proxy in front and set public_url to its https:// address",
        now,
    );
    if let Some(admin) = &config.admin_listener {
        found.extend(check_listener(
            admin.tls.as_ref(),
            &admin.listen,
            admin.public_url.as_deref(),
            "set admin.tls.cert and admin.tls.key, or put a TLS proxy in front and set admin.public_url to its https:// address",
            now,
        ));
    }
    found
}

/// Checks one listener; `action` is the advice if keys are sent over a network unencrypted.
fn check_listener(
    tls: Option<&TlsFiles>,
    listen: &str,
    public_url: Option<&str>,
    action: &str,
    now: Millis,
) -> Vec<Finding> {
    if let Some(files) = tls {
        return match ServerTls::load(files) {
            Ok(_) => {
                let mut found = vec![certificate(files, now)];
                found.extend(client_ca(files, now));
                found
            }
            Err(e) => vec![Finding::fail(
                CHECK,
                e,
                "correct the file: PEM, the certificate first, readable by the gateway's user",
            )],
        };
    }
    let host = listen.rsplit_once(':').map_or("", |(host, _)| host);
    let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    let is_loopback = host == "localhost" || address.is_some_and(|a| a.is_loopback());
    let is_behind_tls = public_url.is_some_and(|url| url.starts_with("https://"));
    vec![if is_loopback {
        Finding::ok(CHECK, format!("{listen} is reached from this machine only"))
    } else if is_behind_tls {
        let why = format!("{listen} has an https:// address: a proxy in front has the certificate");
        Finding::ok(CHECK, why)
    } else {
        Finding::warn(CHECK, format!("{listen} takes keys unencrypted"), action)
    }]
}

/// Checks how long the certificate is still valid.
fn certificate(files: &TlsFiles, now: Millis) -> Finding {
    let action = "renew it: a new file is used within seconds";
    check_expiry(&files.cert, certificate_expires_at(files), action, now)
}

/// Checks how long the certificates of the authorities for clients are still valid. `None` if clients need no certificate.
fn client_ca(files: &TlsFiles, now: Millis) -> Option<Finding> {
    let path = files.client_ca.as_ref()?;
    let action = "add the authority's next certificate to the file before, and give clients new ones: a new file is used within seconds";
    let expires_at = client_ca_expires_at(files).transpose()?;
    Some(check_expiry(path, expires_at, action, now))
}

fn check_expiry(
    file: &Path,
    expires_at: Result<Millis, String>,
    action: &str,
    now: Millis,
) -> Finding {
    let shown = file.display();
    let expires_at = match expires_at {
        Ok(expires_at) => expires_at,
        Err(e) => return Finding::warn(CHECK, e, "look at it with `openssl x509 -in FILE -text`"),
    };
    let days = (expires_at - now) / DAY;
    match expires_at - now {
        ..=0 => Finding::fail(CHECK, format!("{shown} has expired"), action),
        left if left < MIN_VALIDITY => {
            Finding::warn(CHECK, format!("{shown} expires in {days} days"), action)
        }
        _ => Finding::ok(CHECK, format!("{shown} is valid for {days} days")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Level;
    use super::*;

    #[test]
    fn a_certificate_that_expires_soon_is_a_warning() {
        let folder = std::env::temp_dir().join(tollgate_core::id::short_id("tollgate-cert-"));
        std::fs::create_dir(&folder).unwrap();
        let mut params = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        // The certificate expires when the last day of 2026 begins.
        params.not_after = rcgen::date_time_ymd(2026, 12, 31);
        let end: Millis = 1_798_675_200_000;
        let key = rcgen::KeyPair::generate().unwrap();
        let files = TlsFiles {
            cert: folder.join("cert.pem"),
            key: folder.join("key.pem"),
            client_ca: Some(folder.join("ca.pem")),
            table: "tls",
        };
        let unreadable = certificate(&files, 0);
        assert_eq!(unreadable.level, Level::Warn, "{unreadable}");
        std::fs::write(&files.cert, params.self_signed(&key).unwrap().pem()).unwrap();
        for (days, level, expected) in [
            (90, Level::Ok, "valid for 90 days"),
            (14, Level::Ok, "valid for 14 days"),
            (13, Level::Warn, "expires in 13 days"),
            (0, Level::Fail, "has expired"),
        ] {
            let found = certificate(&files, end - days * DAY);
            assert_eq!(found.level, level, "{found}");
            assert!(found.to_string().contains(expected), "{found}");
        }
        // If there are several authorities, the earliest expiry counts.
        let mut authorities = params.self_signed(&key).unwrap().pem();
        params.not_after = rcgen::date_time_ymd(2030, 1, 1);
        authorities.push_str(&params.self_signed(&key).unwrap().pem());
        std::fs::write(files.client_ca.as_ref().unwrap(), authorities).unwrap();
        let found = client_ca(&files, end - 13 * DAY).unwrap();
        assert_eq!(found.level, Level::Warn, "{found}");
        assert!(
            found.to_string().contains("ca.pem expires in 13 days"),
            "{found}"
        );
        let none = TlsFiles {
            client_ca: None,
            ..files
        };
        assert!(client_ca(&none, 0).is_none());
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
