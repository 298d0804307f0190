//! Parses the members of a JSON body: each member is taken by name and type, and members that are left are rejected as unknown.

use serde_json::{Map, Value};
use tollgate_core::{Amount, Millis, money};
use tollgate_server::http::admin_error::AdminError;

/// The longest reason, reference or other short text, in characters.
const MAX_TEXT: usize = 1000;
/// The longest name, in characters.
const MAX_NAME: usize = 128;
/// Actors in the trail that are neither admins nor tokens: the command line, sign-in by an OpenID provider, the admin key.
const RESERVED_ACTORS: [&str; 3] = ["cli", "oidc", "owner"];
/// The beginning of the actors in the trail that are users of the portal.
const USER_ACTOR: &str = "user:";

/// The members of a body. Taking a member removes it; [`Fields::finish`] rejects the rest.
#[derive(Debug)]
pub struct Fields {
    members: Map<String, Value>,
    body: Value,
}

type Taken<T> = Result<Option<T>, AdminError>;

impl Fields {
    /// The members of a body.
    ///
    /// # Errors
    /// 400 if it is no object.
    pub fn new(body: Value) -> Result<Self, AdminError> {
        match body {
            Value::Object(ref members) => Ok(Self {
                members: members.clone(),
                body,
            }),
            _ => Err(AdminError::new(
                http::StatusCode::BAD_REQUEST,
                "invalid",
                "the body must be a JSON object",
            )),
        }
    }

    /// Returns the complete body. Rejects members that were not taken; `read_only` are known members that cannot be written.
    ///
    /// # Errors
    /// 400 that names the member.
    pub fn finish(self, read_only: &[&str]) -> Result<Value, AdminError> {
        match self.members.keys().next() {
            None => Ok(self.body),
            Some(name) if read_only.contains(&name.as_str()) => {
                Err(AdminError::invalid(name, "is read-only"))
            }
            Some(name) => Err(AdminError::invalid(name, "is not known here")),
        }
    }

    /// Takes all members except those in `leave`.
    pub fn take_all_but(&mut self, leave: &[&str]) -> Map<String, Value> {
        let all = std::mem::take(&mut self.members).into_iter();
        let (left, taken) = all.partition(|(name, _)| leave.contains(&name.as_str()));
        self.members = left;
        taken
    }

    /// Takes a member that may be absent or null.
    pub fn optional<T>(
        &mut self,
        name: &str,
        parse: impl Fn(&str, &Value) -> Result<T, AdminError>,
    ) -> Taken<T> {
        Ok(self.nullable(name, parse)?.flatten())
    }

    /// Takes a member that may be absent (`None`) or null (`Some(None)`), as in a patch.
    pub fn nullable<T>(
        &mut self,
        name: &str,
        parse: impl Fn(&str, &Value) -> Result<T, AdminError>,
    ) -> Taken<Option<T>> {
        match self.members.remove(name) {
            None => Ok(None),
            Some(Value::Null) => Ok(Some(None)),
            Some(value) => parse(name, &value).map(|value| Some(Some(value))),
        }
    }

    /// Takes a member that may be absent but not null, as in a patch.
    pub fn patched<T>(
        &mut self,
        name: &str,
        parse: impl Fn(&str, &Value) -> Result<T, AdminError>,
    ) -> Taken<T> {
        let value = self.members.remove(name);
        value.map(|value| parse(name, &value)).transpose()
    }

    /// Takes a member that must be present.
    pub fn required<T>(
        &mut self,
        name: &str,
        parse: impl Fn(&str, &Value) -> Result<T, AdminError>,
    ) -> Result<T, AdminError> {
        let value = self.members.remove(name).unwrap_or(Value::Null);
        if value.is_null() {
            return Err(AdminError::invalid(name, "is required"));
        }
        parse(name, &value)
    }
}

/// Parses `true` or `false`.
pub fn parse_flag(name: &str, value: &Value) -> Result<bool, AdminError> {
    let flag = value.as_bool();
    flag.ok_or_else(|| AdminError::invalid(name, "must be true or false"))
}

/// Parses a text of 1 to 1000 characters.
pub fn parse_text(name: &str, value: &Value) -> Result<String, AdminError> {
    let text = value
        .as_str()
        .filter(|text| (1..=MAX_TEXT).contains(&text.chars().count()) && !text.contains('\0'));
    let message = || format!("must be a text of 1 to {MAX_TEXT} characters");
    text.map(str::to_owned)
        .ok_or_else(|| AdminError::invalid(name, message()))
}

/// Parses a name: 1 to 128 printable characters, not all of them spaces.
pub fn parse_object_name(name: &str, value: &Value) -> Result<String, AdminError> {
    let text = value.as_str().filter(|text| {
        (1..=MAX_NAME).contains(&text.chars().count())
            && !text.chars().any(char::is_control)
            && !text.trim().is_empty()
    });
    let message = || format!("must be a text of 1 to {MAX_NAME} printable characters");
    text.map(str::to_owned)
        .ok_or_else(|| AdminError::invalid(name, message()))
}

/// Parses the name of an admin or a token, as [`parse_object_name`] does, and rejects names that the trail uses for other actors.
pub fn parse_actor_name(name: &str, value: &Value) -> Result<String, AdminError> {
    let text = parse_object_name(name, value)?;
    check_actor_name(&text).map_err(|message| AdminError::invalid(name, message))?;
    Ok(text)
}

/// Checks that the trail uses the name for no actor other than admins and tokens.
///
/// # Errors
/// The end of a sentence that begins with the member.
pub fn check_actor_name(name: &str) -> Result<(), String> {
    if RESERVED_ACTORS.contains(&name) || name.starts_with(USER_ACTOR) {
        return Err(format!(
            "must not be {} or begin with {USER_ACTOR}: the trail uses these for other actors",
            RESERVED_ACTORS.join(", ")
        ));
    }
    Ok(())
}

/// Parses a label: a text of up to 128 printable characters.
pub fn parse_label(name: &str, value: &Value) -> Result<String, AdminError> {
    if value == "" {
        return Ok(String::new());
    }
    parse_object_name(name, value)
}

/// Parses a limit: a whole number from 1 on.
pub fn parse_limit(name: &str, value: &Value) -> Result<u32, AdminError> {
    let limit = value.as_u64().and_then(|n| u32::try_from(n).ok());
    limit.filter(|n| *n > 0).ok_or_else(|| {
        AdminError::invalid(
            name,
            format!("must be a whole number from 1 to {}", u32::MAX),
        )
    })
}

/// Parses an amount: a decimal string with up to nine digits before and after the point.
pub fn parse_amount(name: &str, value: &Value) -> Result<Amount, AdminError> {
    let amount = value.as_str().filter(|text| is_decimal(text));
    let amount = amount.and_then(|text| text.parse::<Amount>().ok());
    amount
        .filter(|amount| *amount <= money::MAX && *amount >= -money::MAX)
        .ok_or_else(|| {
            let message = "must be a decimal string such as \"12.5\", with up to nine digits before and after the point";
            AdminError::invalid(name, message)
        })
}

/// Parses an amount of 0 or more.
pub fn parse_non_negative_amount(name: &str, value: &Value) -> Result<Amount, AdminError> {
    let amount = parse_amount(name, value)?;
    if amount.is_negative() {
        return Err(AdminError::invalid(name, "must be \"0\" or more"));
    }
    Ok(amount)
}

/// `-?\d{1,9}(\.\d{1,9})?`
fn is_decimal(text: &str) -> bool {
    let text = text.strip_prefix('-').unwrap_or(text);
    let (integer, decimals) = text.split_once('.').unwrap_or((text, "0"));
    [integer, decimals].iter().all(|digits| {
        (1..=9).contains(&digits.len()) && digits.bytes().all(|digit| digit.is_ascii_digit())
    })
}

/// Parses a time of RFC 3339.
pub fn parse_time(name: &str, value: &Value) -> Result<Millis, AdminError> {
    parse_time_text(name, value.as_str().unwrap_or_default())
}

/// Parses the text of a time of RFC 3339.
pub fn parse_time_text(name: &str, text: &str) -> Result<Millis, AdminError> {
    // The parser also accepts forms without a `T` between date and time; only a date, a time and an offset are allowed here.
    let has_form = text.get(10..11).is_some_and(|t| "Tt ".contains(t));
    let time = text.parse::<jiff::Timestamp>().ok().filter(|_| has_form);
    time.map(jiff::Timestamp::as_millisecond).ok_or_else(|| {
        AdminError::invalid(
            name,
            "must be a time of RFC 3339 such as 2026-11-23T00:00:00Z",
        )
    })
}

/// Returns a function that parses a list; `one` parses each item.
pub fn parse_list<T>(
    one: impl Fn(&str, &Value) -> Result<T, AdminError>,
) -> impl Fn(&str, &Value) -> Result<Vec<T>, AdminError> {
    move |name, value| {
        let items = value.as_array();
        let items = items.ok_or_else(|| AdminError::invalid(name, "must be a list"))?;
        let items = items.iter().enumerate();
        items
            .map(|(at, item)| one(&format!("{name}[{at}]"), item))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn amounts_are_decimal_strings() {
        for good in ["0", "12.5", "-3", "999999999.999999999", "0.000000001"] {
            assert!(parse_amount("amount", &json!(good)).is_ok(), "{good}");
        }
        for invalid in [
            json!(1),
            json!("1e3"),
            json!("+1"),
            json!(""),
            json!("1."),
            json!(".5"),
            json!("1000000000"),
            json!("0.0000000001"),
            json!("1 "),
            json!(null),
        ] {
            assert!(parse_amount("amount", &invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn times_are_rfc_3339() {
        assert_eq!(parse_time_text("at", "1970-01-01T00:00:01Z"), Ok(1000));
        assert_eq!(
            parse_time_text("at", "1970-01-01T01:00:00.5+01:00"),
            Ok(500)
        );
        for invalid in ["", "1970-01-01", "yesterday", "1970-01-01T00:00:00", "0"] {
            assert!(parse_time_text("at", invalid).is_err(), "{invalid}");
        }
    }

    #[test]
    fn admins_and_tokens_are_not_named_like_other_actors_of_the_trail() {
        for name in ["owner", "cli", "oidc", "user:user_1", "user:"] {
            assert!(parse_actor_name("name", &json!(name)).is_err(), "{name}");
        }
        for name in ["owner-ann", "Owner", "user", "ci"] {
            assert_eq!(parse_actor_name("name", &json!(name)), Ok(name.to_owned()));
        }
    }

    #[test]
    fn unknown_and_read_only_members_are_named() {
        let mut fields = Fields::new(json!({ "name": "a", "id": 1, "rpm": null })).unwrap();
        assert_eq!(
            fields.required("name", parse_object_name),
            Ok("a".to_owned())
        );
        assert_eq!(fields.nullable("rpm", parse_limit), Ok(Some(None)));
        assert_eq!(fields.nullable("tpm", parse_limit), Ok(None));
        let error = fields.finish(&["id"]).unwrap_err();
        assert_eq!(error, AdminError::invalid("id", "is read-only"));
    }
}
