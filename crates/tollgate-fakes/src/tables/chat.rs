//! Chat in the tables: the prompt that a request contains, and the model's output in the endpoint's format, complete or as a stream.

use std::sync::Arc;

use serde_json::{Value, json};

use super::endpoint::ChatSpec;
use super::scope::Scope;
use super::work::Work;
use crate::chat_output::{ChatOutput, ChatPrompt};
use crate::event_stream::{ChatResponse, Event, EventStream, Form};
use crate::rejection::OrRejected;

/// An accepted chat request.
pub(crate) struct ChatRequest {
    pub(crate) prompt: ChatPrompt,
    chat: &'static ChatSpec,
    work: Work,
}

impl ChatRequest {
    /// # Panics
    ///
    /// If the template of the tables does not yield a prompt.
    pub(crate) fn new(chat: &'static ChatSpec, work: Work) -> Self {
        let prompt = serde_json::from_value(chat.prompt.render(&work.scope()));
        let prompt = prompt.unwrap_or_else(|error| panic!("a prompt of the tables: {error}"));
        Self { prompt, chat, work }
    }

    /// The model's output in the format of the request.
    pub(crate) fn write_response(&self, output: &ChatOutput) -> OrRejected<ChatResponse> {
        let (chat, mut work) = (self.chat, self.work.clone());
        work.number = output.number;
        work.vars.insert("output".to_owned(), output.json());
        work.spec.check_rules(&chat.rules, &work.scope())?;
        work.bind(&chat.bindings);
        let form = chat.stream.value(&work.scope());
        if form.is_null() {
            return Ok(ChatResponse::Json(chat.response.render(&work.scope())));
        }
        let form = serde_json::from_value(form);
        let form = form.unwrap_or_else(|error| panic!("a stream of the tables: {error}"));
        Ok(ChatResponse::Events(chat.stream(form, work)))
    }
}

impl ChatSpec {
    fn stream(&'static self, form: Form, work: Work) -> EventStream {
        let mut written = Written::default();
        let scope = work.scope();
        written.add(self.events.render(&scope), &|at, event| {
            self.frame(&scope, at, &event)
        });
        let end = written.end.unwrap_or(written.events.len());
        let filler_at = written.filler_at.unwrap_or(end.min(2)).max(1);
        let error = |first: bool| {
            let error = scope.with_element("first", filler_at, &json!(first), |inner| {
                self.error.render(inner)
            });
            Event::Json(error)
        };
        let (error_first, error_mid) = (error(true), error(false));
        let filler = move |n: u64| {
            let scope = work.scope();
            let event = self.filler.render(&scope);
            Event::Json(self.frame(&scope, filler_at + n as usize, &event))
        };
        EventStream {
            form,
            tail: written.events.len() - end,
            events: written.events,
            filler_at,
            filler: Arc::new(filler),
            error_first,
            error_mid,
        }
    }

    fn frame(&self, scope: &Scope<'_>, at: usize, event: &Value) -> Value {
        self.frame.as_ref().map_or_else(
            || event.clone(),
            |frame| scope.with_element("event", at, event, |inner| frame.render(inner)),
        )
    }
}

/// The events of a stream, and the number of events before its markers.
#[derive(Default)]
struct Written {
    events: Vec<Event>,
    filler_at: Option<usize>,
    end: Option<usize>,
}

impl Written {
    fn add(&mut self, event: Value, frame: &dyn Fn(usize, Value) -> Value) {
        let at = self.events.len();
        match event {
            Value::Null => {}
            Value::Array(list) => list.into_iter().for_each(|one| self.add(one, frame)),
            Value::String(text) if text == "$filler" => {
                self.filler_at.get_or_insert(at);
            }
            Value::String(text) if text == "$end" => self.end = Some(at),
            Value::String(text) => self.events.push(Event::Raw(text)),
            event => self.events.push(Event::Json(frame(at, event))),
        }
    }
}
