//! Kling: speech, and films by its older and its newer APIs.

mod films;
mod jwt;
mod older;
mod speech;
mod task;
mod words;

use std::sync::Arc;
use std::time::SystemTime;

use serde_json::Value;

use crate::clock;
use crate::given;
use crate::incoming::Seen;
use crate::media;
use crate::place::{Place, Style};
use crate::provider::{Api, Wanted};
use crate::refusal::{Checked, Fault, Judged, Refusal};
use crate::shape::Shape;

/// The fake of Kling.
pub(crate) struct Kling;

impl Api for Kling {
    fn base_path(&self) -> &'static str {
        ""
    }

    fn key(&self, request: &Seen) -> Judged<String> {
        let key = request.bearer().map(str::to_owned);
        key.ok_or_else(|| Box::new(words::no_key()))
    }

    /// A key as it is; or a token, for the older APIs alone, signed with the secret of one of the
    /// keys that are written `access:secret`.
    fn admit(&self, key: &str, keys: &[String], request: &Seen) -> Checked {
        let Some(token) = jwt::Token::read(key) else {
            let known = keys.is_empty() || keys.iter().any(|known| known == key);
            let refuse = || Box::new(self.fault(Fault::KeyRefused, request));
            return known.then_some(()).ok_or_else(refuse);
        };
        if !request.path.starts_with("/v1/") {
            return Err(Box::new(words::no_token_here()));
        }
        token.check(keys, clock::seconds(SystemTime::now()))
    }

    fn judge(&self, request: &Arc<Seen>) -> Judged<Wanted> {
        let path = request.path_after("/");
        let media = match (request.method.as_str(), &path[..]) {
            ("POST", ["v1", "audio", "tts"]) => speech::read(request)?,
            ("GET", ["v1", "audio", "tts", id]) => task::older(id, task::Kind::Speech),
            ("POST", ["v1", "videos", "text2video"]) => older::text(request)?,
            ("POST", ["v1", "videos", "image2video"]) => older::image(request)?,
            ("GET", ["v1", "videos", "text2video", id]) => task::older(id, task::Kind::Text),
            ("GET", ["v1", "videos", "image2video", id]) => task::older(id, task::Kind::Image),
            ("POST", ["text-to-video", model]) => films::text(request, model)?,
            ("POST", ["image-to-video", model]) => films::image(request, model)?,
            ("GET", ["tasks"]) => task::several(request)?,
            _ => return Err(Box::new(words::address())),
        };
        Ok(Wanted::Media(media))
    }

    fn fault(&self, fault: Fault, request: &Seen) -> Refusal {
        words::fault(fault, request)
    }

    fn error(&self, refusal: &Refusal, id: &str) -> Value {
        words::error(refusal, id)
    }

    fn headers(&self, id: &str) -> Vec<(&'static str, String)> {
        vec![("x-request-id", id.to_owned())]
    }
}

/// Whether the body is JSON that fits the table of its fields.
fn check(request: &Seen, shape: &Shape) -> Checked {
    if !request.says_json() || !request.body.is_object() {
        return Err(Box::new(words::not_json(request.says_json())));
    }
    let fit = shape.check(&request.body, &Place::root(Style::Brackets));
    fit.map_err(|flaw| Box::new(words::invalid(flaw.rule(), flaw.says())))
}

/// A picture that Kling takes: a link, or base64 without anything before it.
fn picture(text: &str, field: &str) -> Checked {
    if media::is_web(text) {
        return Ok(());
    }
    let wrong = |(rule, what): given::Wrong| {
        Box::new(words::invalid(
            rule,
            format!("`{field}` is not valid: {what}"),
        ))
    };
    given::base64(text).map(|_| ()).map_err(wrong)
}

/// The client's own id and address for callbacks, checked alike everywhere.
fn callback(url: Option<&str>) -> Checked {
    match url {
        Some(url) if !media::is_web(url) => {
            let refusal = words::invalid("callback-url", "callback_url is not a URL");
            Err(Box::new(refusal))
        }
        _ => Ok(()),
    }
}
