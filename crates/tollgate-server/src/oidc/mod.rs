//! Sign-in to console and portal by an OpenID provider (docs/oidc.md): authorization code with PKCE, as OpenID Connect Core 1.0, RFC 7636 and
//! RFC 9207 have it. Accounts are known by issuer and `sub`; a token counts only with an asymmetric signature of one of the provider's keys.

mod claims;
pub mod cookie;
mod provider;
mod signature;

pub use claims::Account;
pub use provider::{OidcError, OidcProvider};
