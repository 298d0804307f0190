//! The path's last part: `MODEL:METHOD`, where the model may hold slashes and colons.

use std::fmt;

/// What the path asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// The model, without `models/`.
    pub model: String,
    /// What to do with it.
    pub method: Method,
}

/// The methods that are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// A whole reply.
    Generate,
    /// A stream.
    Stream,
    /// The tokens of a request.
    Count,
}

const METHODS: [(&str, Method); 3] = [
    ("generateContent", Method::Generate),
    ("streamGenerateContent", Method::Stream),
    ("countTokens", Method::Count),
];

/// Why a path is none of ours. All of them are 404.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoCall {
    /// There is no `:METHOD`.
    NoMethod,
    /// The method is not served.
    UnknownMethod(String),
    /// There is nothing before the colon.
    NoModel,
    /// A `%` that is no escape, or bytes that are no text.
    NotText,
}

impl fmt::Display for NoCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMethod => f.write_str(
                "the path must end in `models/MODEL:METHOD`, METHOD being generateContent, streamGenerateContent or countTokens",
            ),
            Self::UnknownMethod(method) => write!(
                f,
                "method `{method}` is not served; it must be generateContent, streamGenerateContent or countTokens"
            ),
            Self::NoModel => f.write_str("the path names no model before the `:`"),
            Self::NotText => f.write_str("the path holds a `%` that is no escape of UTF-8 text"),
        }
    }
}

impl std::error::Error for NoCall {}

/// Reads `models/MODEL:METHOD`, or what follows `models/`, as it stands in the request line: still percent-encoded.
/// The last colon divides, spelled `:` or `%3A`.
pub fn parse(path: &str) -> Result<Call, NoCall> {
    let text = decode(path).ok_or(NoCall::NotText)?;
    let text = text.trim_start_matches('/');
    let text = text.strip_prefix("models/").unwrap_or(text);
    let (model, method) = text.rsplit_once(':').ok_or(NoCall::NoMethod)?;
    let known = METHODS.iter().find(|(name, _)| *name == method);
    let (_, method) = known.ok_or_else(|| NoCall::UnknownMethod(method.to_owned()))?;
    if model.trim().is_empty() {
        return Err(NoCall::NoModel);
    }
    Ok(Call {
        model: model.to_owned(),
        method: *method,
    })
}

fn decode(text: &str) -> Option<String> {
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
    fn paths_are_divided_at_the_last_colon() {
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
            let call = Call {
                model: model.to_owned(),
                method,
            };
            assert_eq!(parse(path), Ok(call), "{path}");
        }
    }

    #[test]
    fn other_paths_say_what_is_wrong() {
        for (path, error) in [
            ("models/x", NoCall::NoMethod),
            (
                "models/x:embedContent",
                NoCall::UnknownMethod("embedContent".to_owned()),
            ),
            ("models/x:", NoCall::UnknownMethod(String::new())),
            ("models/:generateContent", NoCall::NoModel),
            ("models/%zz:generateContent", NoCall::NotText),
            ("models/%ff:generateContent", NoCall::NotText),
            ("x:generateContent%", NoCall::NotText),
        ] {
            assert_eq!(parse(path), Err(error), "{path}");
        }
    }
}
