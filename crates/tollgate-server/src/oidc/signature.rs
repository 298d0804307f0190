//! Verifies the signatures of ID tokens: JSON Web Signatures (RFC 7515) by RSA, ECDSA and Ed25519 keys in a JSON Web Key Set (RFC 7517). `none` and
//! symmetric algorithms are not supported.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::{self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey};
use ring::signature::{EcdsaVerificationAlgorithm, EdDSAParameters};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Longest token, in bytes.
const MAX_TOKEN: usize = 64 * 1024;

/// A key of the provider.
#[derive(Debug, Clone, Deserialize)]
pub(super) struct Jwk {
    kty: String,
    kid: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    alg: Option<String>,
    crv: Option<String>,
    n: Option<String>,
    e: Option<String>,
    x: Option<String>,
    y: Option<String>,
}

/// Why a token is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SignatureError {
    /// It names an unknown key; the provider may have a new one.
    UnknownKey,
    /// It is malformed, has an algorithm that is not allowed, or has an invalid signature.
    Invalid(&'static str),
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    kid: Option<String>,
    /// Extensions that must be understood: the gateway supports none.
    crit: Option<Value>,
}

/// How a signature is verified.
enum Algorithm {
    Rsa(&'static RsaParameters),
    Ecdsa(&'static EcdsaVerificationAlgorithm, &'static str),
    Ed25519(&'static EdDSAParameters),
}

impl Algorithm {
    /// The algorithm with that name. `None` for `none`, for algorithms whose key is the client's secret, and for unknown ones.
    fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "RS256" => Self::Rsa(&signature::RSA_PKCS1_2048_8192_SHA256),
            "RS384" => Self::Rsa(&signature::RSA_PKCS1_2048_8192_SHA384),
            "RS512" => Self::Rsa(&signature::RSA_PKCS1_2048_8192_SHA512),
            "PS256" => Self::Rsa(&signature::RSA_PSS_2048_8192_SHA256),
            "PS384" => Self::Rsa(&signature::RSA_PSS_2048_8192_SHA384),
            "PS512" => Self::Rsa(&signature::RSA_PSS_2048_8192_SHA512),
            "ES256" => Self::Ecdsa(&signature::ECDSA_P256_SHA256_FIXED, "P-256"),
            "ES384" => Self::Ecdsa(&signature::ECDSA_P384_SHA384_FIXED, "P-384"),
            "EdDSA" | "Ed25519" => Self::Ed25519(&signature::ED25519),
            _ => return None,
        })
    }

    /// Whether the key is of the kind that the algorithm needs and may be used with it.
    fn fits(&self, key: &Jwk, name: &str) -> bool {
        let kind = match self {
            Self::Rsa(_) => key.kty == "RSA",
            Self::Ecdsa(_, curve) => key.kty == "EC" && key.crv.as_deref() == Some(*curve),
            Self::Ed25519(_) => key.kty == "OKP" && key.crv.as_deref() == Some("Ed25519"),
        };
        let is_for_signatures = key.usage.as_deref().is_none_or(|usage| usage == "sig");
        kind && is_for_signatures && key.alg.as_deref().is_none_or(|alg| alg == name)
    }

    fn is_signed_by(&self, key: &Jwk, message: &[u8], signature: &[u8]) -> bool {
        let bytes = |part: &Option<String>| decode(part.as_deref()?);
        match self {
            Self::Rsa(parameters) => bytes(&key.n).zip(bytes(&key.e)).is_some_and(|(n, e)| {
                let key = RsaPublicKeyComponents { n, e };
                key.verify(parameters, message, signature).is_ok()
            }),
            Self::Ecdsa(algorithm, _) => {
                bytes(&key.x).zip(bytes(&key.y)).is_some_and(|(x, y)| {
                    // The point in its uncompressed form.
                    let point = [&[4][..], &x, &y].concat();
                    let key = UnparsedPublicKey::new(*algorithm, point);
                    key.verify(message, signature).is_ok()
                })
            }
            Self::Ed25519(algorithm) => bytes(&key.x).is_some_and(|x| {
                let key = UnparsedPublicKey::new(*algorithm, x);
                key.verify(message, signature).is_ok()
            }),
        }
    }
}

fn decode(part: &str) -> Option<Vec<u8>> {
    URL_SAFE_NO_PAD.decode(part.trim_end_matches('=')).ok()
}

/// Verifies that one of `keys` has signed a token; returns the token's claims.
///
/// # Errors
/// [`SignatureError`].
pub(super) fn verify(token: &str, keys: &[Jwk]) -> Result<Map<String, Value>, SignatureError> {
    let malformed = || SignatureError::Invalid("the token is no signed JWT");
    if token.len() > MAX_TOKEN {
        return Err(SignatureError::Invalid("the token is too long"));
    }
    let (message, signature) = token.rsplit_once('.').ok_or_else(malformed)?;
    let (header, claims) = message.split_once('.').ok_or_else(malformed)?;
    let header = decode(header).ok_or_else(malformed)?;
    let header: Header = serde_json::from_slice(&header).map_err(|_| malformed())?;
    let not_allowed = SignatureError::Invalid("the token's `alg` is not allowed");
    let algorithm = Algorithm::by_name(&header.alg).ok_or(not_allowed)?;
    if header.crit.is_some() {
        return Err(SignatureError::Invalid("the token has `crit`"));
    }
    let is_named = |key: &&Jwk| match &header.kid {
        Some(kid) => key.kid.as_ref() == Some(kid),
        None => true,
    };
    let mut candidates = keys
        .iter()
        .filter(is_named)
        .filter(|key| algorithm.fits(key, &header.alg))
        .peekable();
    if candidates.peek().is_none() {
        return Err(SignatureError::UnknownKey);
    }
    let signature = decode(signature).ok_or_else(malformed)?;
    let is_signed =
        candidates.any(|key| algorithm.is_signed_by(key, message.as_bytes(), &signature));
    if !is_signed {
        return Err(SignatureError::Invalid("the token's signature is wrong"));
    }
    let claims = decode(claims).ok_or_else(malformed)?;
    serde_json::from_slice(&claims).map_err(|_| malformed())
}

#[cfg(test)]
mod tests {
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
    use serde_json::json;

    use super::*;

    fn part(value: &Value) -> String {
        URL_SAFE_NO_PAD.encode(value.to_string())
    }

    /// A key, and a function that signs a header and claims with it.
    fn key() -> (Jwk, impl Fn(&Value, &Value) -> String) {
        let rng = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &rng).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &rng).unwrap();
        let point = pair.public_key().as_ref().to_vec();
        let jwk = json!({
            "kty": "EC", "crv": "P-256", "kid": "a", "use": "sig",
            "x": URL_SAFE_NO_PAD.encode(&point[1..33]), "y": URL_SAFE_NO_PAD.encode(&point[33..]),
        });
        let sign = move |header: &Value, claims: &Value| {
            let message = format!("{}.{}", part(header), part(claims));
            let signature = pair.sign(&rng, message.as_bytes()).unwrap();
            format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature))
        };
        (serde_json::from_value(jwk).unwrap(), sign)
    }

    #[test]
    fn only_tokens_with_a_signature_of_a_known_key_count() {
        let (jwk, sign) = key();
        let keys = [jwk.clone()];
        let claims = json!({ "sub": "ann" });
        let good = sign(&json!({ "alg": "ES256", "kid": "a" }), &claims);
        assert_eq!(verify(&good, &keys).unwrap()["sub"], "ann");
        let unnamed = sign(&json!({ "alg": "ES256" }), &claims);
        assert_eq!(verify(&unnamed, &keys).unwrap()["sub"], "ann");

        let other = sign(&json!({ "alg": "ES256", "kid": "b" }), &claims);
        assert_eq!(verify(&other, &keys), Err(SignatureError::UnknownKey));
        let (foreign, _) = key();
        for (token, keys) in [
            (good.clone(), vec![foreign]),
            (sign(&json!({ "alg": "none" }), &claims), keys.to_vec()),
            (
                sign(&json!({ "alg": "HS256", "kid": "a" }), &claims),
                keys.to_vec(),
            ),
            (
                sign(
                    &json!({ "alg": "ES256", "kid": "a", "crit": ["x"] }),
                    &claims,
                ),
                keys.to_vec(),
            ),
            (
                format!("{}.", good.rsplit_once('.').unwrap().0),
                keys.to_vec(),
            ),
            (
                format!("{}.{}.", part(&json!({ "alg": "none" })), part(&claims)),
                keys.to_vec(),
            ),
            (good.replacen('.', ".e30", 1), keys.to_vec()),
            ("a.b".to_owned(), keys.to_vec()),
            (String::new(), keys.to_vec()),
        ] {
            let result = verify(&token, &keys);
            assert!(
                matches!(result, Err(SignatureError::Invalid(_))),
                "{token}: {result:?}"
            );
        }
        // A key that is for encryption, for another algorithm or of another kind must not be accepted.
        for change in [
            json!({ "use": "enc" }),
            json!({ "alg": "ES384" }),
            json!({ "crv": "P-384" }),
            json!({ "kty": "oct", "k": "c2VjcmV0" }),
        ] {
            let mut other =
                json!({ "kty": "EC", "crv": "P-256", "kid": "a", "x": jwk.x, "y": jwk.y });
            for (name, value) in change.as_object().unwrap() {
                other[name] = value.clone();
            }
            let keys = [serde_json::from_value(other).unwrap()];
            assert_eq!(
                verify(&good, &keys),
                Err(SignatureError::UnknownKey),
                "{change}"
            );
        }
    }
}
