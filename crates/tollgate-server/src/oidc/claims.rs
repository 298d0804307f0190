//! The claims of an account: checks the claims of an ID token as section 3.1.3.7 of OpenID Connect Core 1.0 requires, and converts them to an account
//! of the gateway.

use serde_json::{Map, Value};
use subtle::ConstantTimeEq as _;
use tollgate_config::{Oidc, OidcRole};
use tollgate_core::Millis;
use tollgate_core::clock::MINUTE;
use tollgate_store::OidcIdentity;

/// How far the provider's clock may be off.
const CLOCK_SKEW: Millis = MINUTE;
/// The longest `sub`, in bytes (section 2).
const MAX_SUBJECT: usize = 255;
/// The longest name of an admin or user, in characters.
const MAX_NAME: usize = 128;
/// Names with a special meaning in the trail.
const RESERVED_NAMES: [&str; 3] = ["cli", "oidc", "owner"];
/// The value of `oidc.roles` that applies to every account.
const EVERYBODY: &str = "*";

/// The claims of a token, by name.
pub(super) type Claims = Map<String, Value>;

/// An account of the provider that has just signed in.
#[derive(Debug, Clone)]
pub struct Account {
    /// Which account it is.
    pub identity: OidcIdentity,
    /// Its name.
    pub name: String,
    /// The role of the account's admin. `None` if the account is not an admin.
    pub admin_role: Option<OidcRole>,
    /// Whether it may use the portal.
    pub is_user: bool,
    /// When the user last entered the password at the provider. `None` if the provider does not report it.
    pub authenticated_at: Option<Millis>,
}

/// Checks the claims of a token whose signature is valid.
///
/// # Errors
/// The reason, for the log.
pub(super) fn check(
    claims: &Claims,
    settings: &Oidc,
    nonce: &str,
    now: Millis,
) -> Result<(), String> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    if text("iss") != Some(settings.issuer.as_str()) {
        return Err(format!("`iss` is {:?}", claims.get("iss")));
    }
    let audiences: Vec<&str> = match claims.get("aud") {
        Some(Value::String(audience)) => vec![audience],
        Some(Value::Array(list)) => list.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !audiences.contains(&settings.client_id.as_str()) {
        return Err(format!("`aud` is {audiences:?}, not this gateway"));
    }
    let party = text("azp");
    if party.is_some_and(|party| party != settings.client_id)
        || (audiences.len() > 1 && party.is_none())
    {
        return Err(format!("`azp` is {party:?}, not this gateway"));
    }
    let expires_at = time(claims, "exp").ok_or("`exp` is missing or no number")?;
    if expires_at + CLOCK_SKEW <= now {
        return Err("the token has expired".to_owned());
    }
    let issued_at = time(claims, "iat").ok_or("`iat` is missing or no number")?;
    if issued_at - CLOCK_SKEW > now {
        return Err("the token is of the future: compare the clocks".to_owned());
    }
    if claims.contains_key("nbf")
        && time(claims, "nbf").is_none_or(|not_before| not_before - CLOCK_SKEW > now)
    {
        return Err("the token is not valid yet: `nbf`".to_owned());
    }
    let is_ours =
        text("nonce").is_some_and(|claimed| bool::from(claimed.as_bytes().ct_eq(nonce.as_bytes())));
    if !is_ours {
        return Err("`nonce` is not that of this sign-in".to_owned());
    }
    let subject = text("sub").unwrap_or_default();
    if subject.is_empty() || subject.len() > MAX_SUBJECT {
        return Err("`sub` is missing or too long".to_owned());
    }
    Ok(())
}

/// A time in seconds since 1970 as milliseconds. Providers may send fractions.
fn time(claims: &Claims, name: &str) -> Option<Millis> {
    let seconds = claims.get(name)?.as_f64()?;
    // Times about a hundred thousand years from now are rejected, so that sums of times cannot overflow.
    (seconds.abs() < 3e12).then_some((seconds * 1000.0) as Millis)
}

/// The value at a path: the claim with the complete path as its name, else dots separate the names of nested objects.
fn claim<'a>(claims: &'a Claims, path: &str) -> Option<&'a Value> {
    if let Some(value) = claims.get(path) {
        return Some(value);
    }
    let mut names = path.split('.');
    let first = claims.get(names.next()?)?;
    names.try_fold(first, |value, name| value.get(name))
}

/// Whether claims that the gateway needs are missing, so that it must request the provider's userinfo.
pub(super) fn are_incomplete(claims: &Claims, settings: &Oidc) -> bool {
    let reads_roles = settings.roles.keys().any(|value| value != EVERYBODY);
    claim(claims, &settings.name_claim).is_none()
        || (settings.name_claim == "email" && !claims.contains_key("email_verified"))
        || (reads_roles && claim(claims, &settings.role_claim).is_none())
}

/// Adds the claims that are missing, also within nested objects. Those that exist stay as they are.
pub(super) fn add_missing(claims: &mut Claims, more: Claims) {
    for (name, value) in more {
        match (claims.get_mut(&name), value) {
            (None, value) => {
                claims.insert(name, value);
            }
            (Some(Value::Object(inner)), Value::Object(more)) => add_missing(inner, more),
            (Some(_), _) => {}
        }
    }
}

/// Converts checked claims to an account.
///
/// # Errors
/// The reason, for the log.
pub(super) fn account(claims: &Claims, settings: &Oidc) -> Result<Account, String> {
    let text = |name: &str| claim(claims, name).and_then(Value::as_str);
    let subject = text("sub").unwrap_or_default();
    let is_verified = email_is_verified(claims);
    let name = text(&settings.name_claim)
        .filter(|_| settings.name_claim != "email" || is_verified != Some(false))
        .or_else(|| text("email").filter(|_| is_verified == Some(true)))
        .unwrap_or(subject);
    let is_name = (1..=MAX_NAME).contains(&name.chars().count())
        && !name.chars().any(char::is_control)
        && !name.trim().is_empty();
    if !is_name || RESERVED_NAMES.contains(&name) || name.starts_with("user:") {
        return Err(format!(
            "{name:?} cannot be a name: set oidc.name_claim to a claim of 1 to {MAX_NAME} printable characters"
        ));
    }
    let mut roles: Vec<OidcRole> = role_values(claims, settings)
        .chain([EVERYBODY])
        .filter_map(|value| settings.roles.get(value).copied())
        .collect();
    roles.sort_unstable();
    Ok(Account {
        identity: OidcIdentity {
            issuer: settings.issuer.clone(),
            subject: subject.to_owned(),
        },
        name: name.to_owned(),
        admin_role: roles.iter().copied().find(|role| *role != OidcRole::User),
        is_user: roles.contains(&OidcRole::User),
        authenticated_at: time(claims, "auth_time"),
    })
}

/// Whether the provider has verified that the e-mail address is that of the account; `None` if it does not say. Some providers send it as text.
fn email_is_verified(claims: &Claims) -> Option<bool> {
    match claims.get("email_verified")? {
        Value::Null => None,
        Value::Bool(is_verified) => Some(*is_verified),
        Value::String(text) => Some(text.eq_ignore_ascii_case("true")),
        _ => Some(false),
    }
}

fn role_values<'a>(claims: &'a Claims, settings: &Oidc) -> impl Iterator<Item = &'a str> {
    let (one, many) = match claim(claims, &settings.role_claim) {
        Some(Value::String(value)) => (Some(value.as_str()), [].as_slice()),
        Some(Value::Array(values)) => (None, values.as_slice()),
        _ => (None, [].as_slice()),
    };
    one.into_iter().chain(many.iter().filter_map(Value::as_str))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn settings() -> Oidc {
        let text = json!({
            "issuer": "https://id.example",
            "client_id": "gateway",
            "role_claim": "realm.roles",
            "roles": { "admins": "owner", "money": "finance", "*": "user" },
        });
        serde_json::from_value(text).unwrap()
    }

    /// Valid claims with these changes; null removes a claim.
    fn changed(changes: &Value) -> Claims {
        let mut claims = json!({
            "iss": "https://id.example", "aud": "gateway", "sub": "248", "nonce": "n", "iat": 1_000, "exp": 1_300,
            "preferred_username": "ann", "realm": { "roles": ["money", "other", "admins"] }, "auth_time": 990.5,
        });
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        let Value::Object(mut claims) = claims else {
            unreachable!()
        };
        claims.retain(|_, value| !value.is_null());
        claims
    }

    #[test]
    fn claims_must_be_of_this_sign_in() {
        let now = 1_100_000;
        for valid in [
            json!({}),
            json!({ "aud": ["gateway"] }),
            json!({ "aud": ["other", "gateway"], "azp": "gateway" }),
            json!({ "exp": 1_050.5 }),
            json!({ "iat": 1_150 }),
        ] {
            assert_eq!(
                check(&changed(&valid), &settings(), "n", now),
                Ok(()),
                "{valid}"
            );
        }
        for invalid in [
            json!({ "iss": "https://id.example/" }),
            json!({ "iss": null }),
            json!({ "aud": "other" }),
            json!({ "aud": null }),
            json!({ "aud": ["other", "gateway"] }),
            json!({ "aud": ["other", "gateway"], "azp": "other" }),
            json!({ "azp": "other" }),
            json!({ "exp": 1_040 }),
            json!({ "exp": "9999999999" }),
            json!({ "exp": null }),
            json!({ "exp": 1e300 }),
            json!({ "iat": 1_200 }),
            json!({ "iat": null }),
            json!({ "nbf": 1_200 }),
            json!({ "nbf": "0" }),
            json!({ "nonce": "m" }),
            json!({ "nonce": null }),
            json!({ "nonce": ["n"] }),
            json!({ "sub": null }),
            json!({ "sub": "" }),
            json!({ "sub": "x".repeat(256) }),
        ] {
            let result = check(&changed(&invalid), &settings(), "n", now);
            assert!(result.is_err(), "{invalid}");
        }
    }

    #[test]
    fn the_highest_role_of_an_account_applies() {
        let account_of = |changes: Value| account(&changed(&changes), &settings());
        let ann = account_of(json!({})).unwrap();
        assert_eq!(
            (ann.name.as_str(), ann.admin_role),
            ("ann", Some(OidcRole::Owner))
        );
        assert!(ann.is_user);
        assert_eq!(ann.authenticated_at, Some(990_500));
        let bob = account_of(
            json!({ "realm": { "roles": "money" }, "preferred_username": null, "email": "bob@x", "email_verified": true }),
        );
        let bob = bob.unwrap();
        assert_eq!(
            (bob.name.as_str(), bob.admin_role),
            ("bob@x", Some(OidcRole::Finance))
        );
        let none = account_of(json!({ "realm": null, "preferred_username": null })).unwrap();
        assert_eq!((none.name.as_str(), none.admin_role), ("248", None));
        // A claim whose own name has dots.
        let dotted = account_of(json!({ "realm": null, "realm.roles": ["admins"] })).unwrap();
        assert_eq!(dotted.admin_role, Some(OidcRole::Owner));
        for name in ["owner", "cli", "user:1", " ", "a\nb", &"x".repeat(129)] {
            let result = account_of(json!({ "preferred_username": name }));
            assert!(result.is_err(), "{name:?}");
        }
    }

    #[test]
    fn an_email_address_is_a_name_only_if_it_is_verified() {
        let mut by_email = settings();
        by_email.name_claim = "email".to_owned();
        for (verified, as_fallback, as_claim) in [
            (json!(true), "ann@x", "ann@x"),
            (json!("true"), "ann@x", "ann@x"),
            (json!(null), "248", "ann@x"),
            (json!(false), "248", "248"),
            (json!("False"), "248", "248"),
        ] {
            let claims = changed(
                &json!({ "preferred_username": null, "email": "ann@x", "email_verified": verified }),
            );
            let name = |settings: &Oidc| account(&claims, settings).unwrap().name;
            assert_eq!(name(&settings()), as_fallback, "{verified}");
            assert_eq!(name(&by_email), as_claim, "{verified}");
        }
    }

    #[test]
    fn userinfo_adds_only_claims_that_are_missing() {
        let mut claims = changed(&json!({ "realm": { "name": "main" }, "email": "ann@x" }));
        let more = json!({
            "sub": "249", "email": { "address": "eve@x" }, "phone": "1",
            "realm": { "name": "other", "roles": ["money"] },
        });
        let Value::Object(more) = more else {
            unreachable!()
        };
        add_missing(&mut claims, more);
        let mut expected = changed(&json!({ "email": "ann@x", "phone": "1" }));
        expected["realm"] = json!({ "name": "main", "roles": ["money"] });
        assert_eq!(claims, expected);
        let ann = account(&claims, &settings()).unwrap();
        assert_eq!(ann.admin_role, Some(OidcRole::Finance));
    }

    #[test]
    fn userinfo_is_needed_for_claims_that_are_missing() {
        assert!(!are_incomplete(&changed(&json!({})), &settings()));
        assert!(are_incomplete(
            &changed(&json!({ "realm": {} })),
            &settings()
        ));
        assert!(are_incomplete(
            &changed(&json!({ "preferred_username": null })),
            &settings()
        ));
    }
}
