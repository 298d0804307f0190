//! Sign-in to console and portal by an OpenID provider (docs/oidc.md): the authorization code flow with PKCE, as OpenID Connect Core 1.0, RFC 7636
//! and RFC 9207 specify it. Accounts are identified by issuer and `sub`; a token is accepted only with an asymmetric signature by one of the
//! provider's keys.

mod claims;
pub mod cookie;
mod provider;
mod signature;

pub use claims::Account;
pub use provider::{OidcError, OidcProvider};
