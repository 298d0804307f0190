//! The access keys of the bucket: from the environment, or from the credentials file that other tools use too.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusty_s3::Credentials;

/// How long keys of the file are used before it is read again: other programs replace keys that expire.
const FILE_TTL: Duration = Duration::from_secs(60);

/// The source of the access keys.
#[derive(Debug)]
pub(super) enum CredentialSource {
    /// `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN`.
    Environment(Arc<Credentials>),
    /// A section of the credentials file.
    File {
        path: PathBuf,
        profile: String,
        last_read: Mutex<Option<(Instant, Arc<Credentials>)>>,
    },
}

impl CredentialSource {
    /// Uses the environment if it has keys, else the credentials file if it exists and has keys.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub(super) fn find(variable: impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let keys = (
            variable("AWS_ACCESS_KEY_ID"),
            variable("AWS_SECRET_ACCESS_KEY"),
        );
        if let (Some(key), Some(secret)) = keys {
            let credentials = match variable("AWS_SESSION_TOKEN") {
                Some(token) => Credentials::new_with_token(key, secret, token),
                None => Credentials::new(key, secret),
            };
            return Ok(Self::Environment(Arc::new(credentials)));
        }
        let path = variable("AWS_SHARED_CREDENTIALS_FILE").map(PathBuf::from);
        let home = || variable("HOME").map(|home| Path::new(&home).join(".aws/credentials"));
        let path = path.or_else(home).unwrap_or_default();
        let source = Self::File {
            path,
            profile: variable("AWS_PROFILE").unwrap_or_else(|| "default".to_owned()),
            last_read: Mutex::default(),
        };
        source.current().map(|_| source)
    }

    /// The access keys with which requests are signed now.
    ///
    /// # Errors
    /// A sentence for the operator.
    pub(super) fn current(&self) -> Result<Arc<Credentials>, String> {
        let (path, profile, last_read) = match self {
            Self::Environment(credentials) => return Ok(Arc::clone(credentials)),
            Self::File {
                path,
                profile,
                last_read,
            } => (path, profile, last_read),
        };
        let mut last_read = last_read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, credentials)) = &*last_read
            && at.elapsed() < FILE_TTL
        {
            return Ok(Arc::clone(credentials));
        }
        let text = std::fs::read_to_string(path).unwrap_or_default();
        let credentials = parse_profile(&text, profile).ok_or_else(|| {
            format!(
                "there are no keys: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or the profile {profile:?} of {}",
                path.display()
            )
        })?;
        let credentials = Arc::new(credentials);
        *last_read = Some((Instant::now(), Arc::clone(&credentials)));
        Ok(credentials)
    }
}

/// The access keys in the section `[profile]`. `None` if it has none.
fn parse_profile(text: &str, profile: &str) -> Option<Credentials> {
    let is_head = |line: &&str| line.trim().starts_with('[');
    let is_ours = |line: &str| {
        let name = line
            .trim()
            .strip_prefix('[')
            .and_then(|l| l.strip_suffix(']'));
        name.is_some_and(|name| name.trim() == profile)
    };
    let mut lines = text.lines().skip_while(|line| !is_ours(line)).skip(1);
    let section: Vec<&str> = lines.by_ref().take_while(|line| !is_head(line)).collect();
    let value = |name: &str| {
        let mut pairs = section.iter().filter_map(|line| line.split_once('='));
        let found = pairs.find(|(key, _)| key.trim() == name);
        found.map(|(_, value)| value.trim().to_owned())
    };
    let (key, secret) = (value("aws_access_key_id")?, value("aws_secret_access_key")?);
    Some(match value("aws_session_token") {
        Some(token) => Credentials::new_with_token(key, secret, token),
        None => Credentials::new(key, secret),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_from_the_environment_then_from_the_profile_of_the_file() {
        let file = std::env::temp_dir().join(tollgate_core::id::short_id("tollgate-aws-"));
        let text = "[default]\naws_access_key_id = A\naws_secret_access_key = B\n\n\
                    [ other ]\naws_access_key_id=C\naws_secret_access_key=D=\naws_session_token = T\n";
        std::fs::write(&file, text).unwrap();
        let path = file.display().to_string();
        let find = |variables: &[(&str, &str)]| {
            let lookup = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| (*value).to_owned())
            };
            CredentialSource::find(lookup)?.current()
        };
        let file_variable = ("AWS_SHARED_CREDENTIALS_FILE", path.as_str());
        let environment = [
            ("AWS_ACCESS_KEY_ID", "E"),
            ("AWS_SECRET_ACCESS_KEY", "F"),
            file_variable,
        ];
        assert_eq!(find(&environment).unwrap().key(), "E");
        assert_eq!(find(&[file_variable]).unwrap().secret(), "B");
        let other = find(&[file_variable, ("AWS_PROFILE", "other")]).unwrap();
        assert_eq!(
            (other.key(), other.secret(), other.token()),
            ("C", "D=", Some("T"))
        );
        let none = find(&[file_variable, ("AWS_PROFILE", "none")]).unwrap_err();
        assert!(
            none.contains("AWS_ACCESS_KEY_ID") && none.contains("\"none\""),
            "{none}"
        );
        std::fs::remove_file(&file).unwrap();
    }
}
