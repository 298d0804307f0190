//! Settings of sign-in by an OpenID provider.

use std::collections::BTreeMap;

use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize, Serializer};
use tollgate_core::Secret;
use tollgate_store::OidcUsers;
use url::{Host, Url};

use super::fields;

/// Sign-in by an OpenID provider: the table `[oidc]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Oidc {
    /// The provider's issuer URL, exactly as its tokens have it.
    #[serde(deserialize_with = "deserialize_issuer")]
    pub issuer: String,
    /// The gateway's id at the provider.
    pub client_id: String,
    /// The gateway's secret at the provider; `None` for a public client, which PKCE protects instead.
    #[serde(default, deserialize_with = "fields::deserialize_secret")]
    pub client_secret: Option<Secret>,
    /// The text of the button on the sign-in page.
    #[serde(default = "default_label")]
    pub label: String,
    /// The requested scopes.
    #[serde(default = "default_scopes", deserialize_with = "deserialize_scopes")]
    pub scopes: String,
    /// The claim with the name of an admin or user.
    #[serde(default = "default_name_claim")]
    pub name_claim: String,
    /// The claim with roles or groups: a text or a list of texts; dots lead into objects.
    #[serde(default = "default_role_claim")]
    pub role_claim: String,
    /// The role for each value of that claim; `*` applies to every account.
    #[serde(default)]
    pub roles: BTreeMap<String, OidcRole>,
    /// How an account that signs in to the portal is mapped to a user.
    #[serde(default = "default_users", deserialize_with = "deserialize_users")]
    pub users: OidcUsers,
}

/// The role of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum OidcRole {
    /// An admin with the role `owner`.
    Owner,
    /// An admin with the role `operator`.
    Operator,
    /// An admin with the role `finance`.
    Finance,
    /// An admin with the role `support`.
    Support,
    /// An admin with the role `viewer`.
    Viewer,
    /// A user of the portal.
    User,
}

/// Every role, the highest first: it wins if an account has several.
const ROLES: [(OidcRole, &str); 6] = [
    (OidcRole::Owner, "owner"),
    (OidcRole::Operator, "operator"),
    (OidcRole::Finance, "finance"),
    (OidcRole::Support, "support"),
    (OidcRole::Viewer, "viewer"),
    (OidcRole::User, "user"),
];

impl OidcRole {
    /// The name in the configuration and the admin API.
    pub fn name(self) -> &'static str {
        let found = ROLES.iter().find(|(role, _)| *role == self);
        found.map_or("", |(_, name)| name)
    }
}

impl<'de> Deserialize<'de> for OidcRole {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let found = ROLES.iter().find(|(_, name)| *name == text);
        found.map(|(role, _)| *role).ok_or_else(|| {
            let names = ROLES.map(|(_, name)| name).join(", ");
            D::Error::custom(format!("is {text:?}, but it takes one of {names}"))
        })
    }
}

impl Serialize for OidcRole {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Oidc {
    /// The value of the setting `oidc.users`.
    pub(super) fn users_name(&self) -> &'static str {
        match self.users {
            OidcUsers::Create => "create",
            OidcUsers::Match => "match",
        }
    }
}

fn default_label() -> String {
    "Single sign-on".to_owned()
}

fn default_scopes() -> String {
    "openid profile email".to_owned()
}

fn default_name_claim() -> String {
    "preferred_username".to_owned()
}

fn default_role_claim() -> String {
    "roles".to_owned()
}

fn default_users() -> OidcUsers {
    OidcUsers::Create
}

/// Whether a URL's scheme is https, or http to this machine.
pub fn is_safe_url(url: &Url) -> bool {
    match url.scheme() {
        "https" => true,
        "http" => match url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        },
        _ => false,
    }
}

/// Parses a URL of https, or of http on this machine. It is compared with the issuer in tokens, so it is kept as it is written.
fn deserialize_issuer<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    let is_issuer = Url::parse(&text).is_ok_and(|url| {
        is_safe_url(&url)
            && url.username().is_empty()
            && url.password().is_none()
            && url.query().is_none()
            && url.fragment().is_none()
    });
    match is_issuer {
        true => Ok(text),
        false => Err(D::Error::custom(
            "takes an https:// URL without query (http:// only on this machine), as in the provider's `issuer`",
        )),
    }
}

fn deserialize_scopes<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let text = String::deserialize(deserializer)?;
    match text.split(' ').any(|scope| scope == "openid") {
        true => Ok(text),
        false => Err(D::Error::custom(format!(
            "is {text:?}, but it takes scopes separated by spaces, with openid among them"
        ))),
    }
}

fn deserialize_users<'de, D: Deserializer<'de>>(deserializer: D) -> Result<OidcUsers, D::Error> {
    let text = String::deserialize(deserializer)?;
    match text.as_str() {
        "create" => Ok(OidcUsers::Create),
        "match" => Ok(OidcUsers::Match),
        _ => Err(D::Error::custom(format!(
            "is {text:?}, but it takes create or match"
        ))),
    }
}
