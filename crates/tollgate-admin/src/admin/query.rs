//! The query parameters of a request.

use tollgate_core::Millis;
use tollgate_core::clock::DAY;
use tollgate_server::http::admin_error::AdminError;

use super::fields::parse_time_text;

/// The window of time that a list shows if the request has neither `from` nor `to`.
const DEFAULT_WINDOW: Millis = 7 * DAY;
/// The latest time that is accepted: 9999-12-31.
const LATEST: Millis = 253_402_300_799_999;

/// Query parameters of every list.
pub(super) const PAGE_PARAMETERS: [&str; 2] = ["limit", "cursor"];

/// The query parameters of a request.
#[derive(Debug, Clone, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Parses the query of a URL (the part after `?`).
    pub fn parse(text: Option<&str>) -> Self {
        let text = text.unwrap_or_default().as_bytes();
        Self(url::form_urlencoded::parse(text).into_owned().collect())
    }

    /// Checks that there are no parameters other than these, each at most once.
    ///
    /// # Errors
    /// 400 that names the parameter.
    pub fn allow(&self, names: &[&str]) -> Result<(), AdminError> {
        for (at, (name, _)) in self.0.iter().enumerate() {
            if !names.contains(&name.as_str()) {
                let message = match names {
                    [] => "this endpoint has no query parameters".to_owned(),
                    names => format!("unknown query parameter; there are: {}", names.join(", ")),
                };
                return Err(AdminError::invalid(name, message));
            }
            if self.0[..at].iter().any(|(earlier, _)| earlier == name) {
                let message = "the parameter occurs twice: separate several values by commas";
                return Err(AdminError::invalid(name, message));
            }
        }
        Ok(())
    }

    /// The value of a parameter.
    pub fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The values of a filter parameter, which are separated by commas.
    pub fn list(&self, name: &str) -> Option<Vec<String>> {
        let value = self.get(name)?;
        Some(value.split(',').map(str::to_owned).collect())
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// 400 for anything else.
    pub fn flag(&self, name: &str) -> Result<Option<bool>, AdminError> {
        match self.get(name) {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(_) => Err(AdminError::invalid(name, "must be true or false")),
        }
    }

    /// The time from `from` (included) to `to` (excluded); the last seven days if neither is given.
    ///
    /// # Errors
    /// 400 for a time that is not RFC 3339.
    pub fn window(&self, now: Millis) -> Result<(Millis, Millis), AdminError> {
        let time = |name: &str| {
            let text = self.get(name);
            text.map(|text| parse_time_text(name, text)).transpose()
        };
        let to = time("to")?;
        let from = time("from")?.unwrap_or(to.unwrap_or(now) - DEFAULT_WINDOW);
        Ok((from, to.unwrap_or(LATEST)))
    }

    /// The filter parameters as one text, which is the same for every page of a list.
    pub(super) fn filters(&self) -> String {
        let is_filter = |name: &str| name != "cursor" && name != "limit";
        let mut filters: Vec<_> = self.0.iter().filter(|(name, _)| is_filter(name)).collect();
        filters.sort_unstable();
        serde_json::json!(filters).to_string()
    }
}
