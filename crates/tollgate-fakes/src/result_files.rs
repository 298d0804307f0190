//! Result files that a fake serves itself, under URLs that cannot be guessed and may expire.

use std::collections::HashMap;
use std::time::Instant;

use crate::directive::Directive;
use crate::media_files::FileRecipe;
use crate::media_response::MediaResponse;

/// The prefix of the paths of results.
pub(crate) const PREFIX: &str = "/_files/";

/// A result.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) recipe: FileRecipe,
    /// The minimum size of the file, in bytes.
    pub(crate) bytes: Option<u64>,
    pub(crate) expires: Option<Instant>,
    /// The directives, for later steps, of the request that generated the result.
    pub(crate) later: Vec<Directive>,
    fetched: u32,
}

impl Link {
    pub(crate) fn new(recipe: FileRecipe) -> Self {
        Self {
            recipe,
            bytes: None,
            expires: None,
            later: Vec::new(),
            fetched: 0,
        }
    }

    /// The file; status 403 once the link has expired.
    pub(crate) fn response(&self, now: Instant) -> MediaResponse {
        if self.expires.is_some_and(|at| at <= now) {
            return MediaResponse::text(403, "application/xml", EXPIRED);
        }
        let blob = self.recipe.make(self.bytes);
        MediaResponse::file(self.recipe.media_type(), blob)
    }
}

const EXPIRED: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>AccessDenied</Code>\
    <Message>Request has expired</Message></Error>";

const MISSING: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>NoSuchKey</Code>\
    <Message>The specified key does not exist.</Message></Error>";

/// The response for a file that does not exist.
pub(crate) fn missing() -> MediaResponse {
    MediaResponse::text(404, "application/xml", MISSING)
}

/// All results.
#[derive(Debug, Default)]
pub(crate) struct Files(HashMap<String, Link>);

impl Files {
    pub(crate) fn add(&mut self, name: String, link: Link) {
        self.0.insert(name, link);
    }

    /// The result at a path.
    pub(crate) fn get(&self, path: &str) -> Option<&Link> {
        self.0.get(path.strip_prefix(PREFIX)?)
    }

    /// Counts a request for the result at a path; returns the result's directives, and the number of requests so far.
    pub(crate) fn count_fetch(&mut self, path: &str) -> Option<(Vec<Directive>, u32)> {
        let link = self.0.get_mut(path.strip_prefix(PREFIX)?)?;
        link.fetched += 1;
        Some((link.later.clone(), link.fetched))
    }
}
