//! Parses the last part of the path: `MODEL:METHOD`. The model may contain slashes and colons.

use std::fmt;

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
    let text = percent_decode(path).ok_or(PathError::InvalidEncoding)?;
    let text = text.trim_start_matches('/');
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

fn percent_decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        rest = tail;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (escape, tail) = rest.split_at_checked(2)?;
        let digit = |b: u8| {
            char::from(b)
                .to_digit(16)
                .and_then(|d| u8::try_from(d).ok())
        };
        bytes.push(digit(escape[0])? << 4 | digit(escape[1])?);
        rest = tail;
    }
    String::from_utf8(bytes).ok()
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
