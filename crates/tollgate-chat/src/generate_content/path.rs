//! Parses the last part of the path: `MODEL:METHOD`. The model may contain slashes and colons.

use std::borrow::Cow;
use std::fmt;

use percent_encoding::percent_decode_str;

/// The model and method that a path names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MethodCall {
    /// The model, without `models/`.
    pub model: String,
    /// The method.
    pub method: Method,
}

/// The supported methods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// `generateContent`: a complete response.
    Generate,
    /// `streamGenerateContent`: a stream.
    Stream,
    /// `countTokens`.
    Count,
}

const METHODS: [(&str, Method); 3] = [
    ("generateContent", Method::Generate),
    ("streamGenerateContent", Method::Stream),
    ("countTokens", Method::Count),
];

/// Why a path does not name a method. The response to each is 404.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathError {
    /// The path has no `:METHOD`.
    MissingMethod,
    /// The method is not supported.
    UnknownMethod(String),
    /// The path has nothing before the colon.
    MissingModel,
    /// A `%` without two hexadecimal digits, or bytes that are not UTF-8.
    InvalidEncoding,
}

impl fmt::Display for PathError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingMethod => f.write_str(
                "the path must end in `models/MODEL:METHOD`, METHOD being generateContent, streamGenerateContent or countTokens",
            ),
            Self::UnknownMethod(method) => write!(
                f,
                "method `{method}` is not supported; it must be generateContent, streamGenerateContent or countTokens"
            ),
            Self::MissingModel => f.write_str("the path names no model before the `:`"),
            Self::InvalidEncoding => f.write_str("the path contains a `%` escape that is not valid UTF-8"),
        }
    }
}

impl std::error::Error for PathError {}

/// Reads `models/MODEL:METHOD`, or what follows `models/`, still percent-encoded as in the request
/// line. The last colon separates the two; it may be written `:` or `%3A`.
pub fn parse_method_path(path: &str) -> Result<MethodCall, PathError> {
    let decoded = percent_decode(path).ok_or(PathError::InvalidEncoding)?;
    let text = decoded.trim_start_matches('/');
    let text = text.strip_prefix("models/").unwrap_or(text);
    let (model, method) = text.rsplit_once(':').ok_or(PathError::MissingMethod)?;
    let known = METHODS.iter().find(|(name, _)| *name == method);
    let (_, method) = known.ok_or_else(|| PathError::UnknownMethod(method.to_owned()))?;
    if model.trim().is_empty() {
        return Err(PathError::MissingModel);
    }
    Ok(MethodCall {
        model: model.to_owned(),
        method: *method,
    })
}

/// `None` if a `%` is not followed by two hexadecimal digits (the library would keep that `%`), or if the bytes are not UTF-8.
fn percent_decode(text: &str) -> Option<Cow<'_, str>> {
    let is_escape = |after: &str| {
        let digits = after.as_bytes().first_chunk::<2>();
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if !text.split('%').skip(1).all(is_escape) {
        return None;
    }
    percent_decode_str(text).decode_utf8().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_split_at_its_last_colon() {
        for (path, model, method) in [
            (
                "models/gemini-2.5-pro:generateContent",
                "gemini-2.5-pro",
                Method::Generate,
            ),
            (
                "gemini-2.5-pro%3AstreamGenerateContent",
                "gemini-2.5-pro",
                Method::Stream,
            ),
            ("models/a/b%3acountTokens", "a/b", Method::Count),
            (
                "models/publishers/google/models/x:y:generateContent",
                "publishers/google/models/x:y",
                Method::Generate,
            ),
            (
                "tunedModels/m:generateContent",
                "tunedModels/m",
                Method::Generate,
            ),
        ] {
            let call = MethodCall {
                model: model.to_owned(),
                method,
            };
            assert_eq!(parse_method_path(path), Ok(call), "{path}");
        }
    }

    #[test]
    fn invalid_paths_give_specific_errors() {
        for (path, error) in [
            ("models/x", PathError::MissingMethod),
            (
                "models/x:embedContent",
                PathError::UnknownMethod("embedContent".to_owned()),
            ),
            ("models/x:", PathError::UnknownMethod(String::new())),
            ("models/:generateContent", PathError::MissingModel),
            ("models/%zz:generateContent", PathError::InvalidEncoding),
            ("models/%ff:generateContent", PathError::InvalidEncoding),
            ("x:generateContent%", PathError::InvalidEncoding),
        ] {
            assert_eq!(parse_method_path(path), Err(error), "{path}");
        }
    }
}
