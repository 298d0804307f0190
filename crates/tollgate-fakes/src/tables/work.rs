//! A request to an endpoint while it is checked and its response is generated.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::endpoint::Endpoint;
use super::scope::{Bindings, Scope};
use super::spec::Spec;
use crate::request::ReceivedRequest;

/// A request to an endpoint, and the values derived from it.
#[derive(Clone)]
pub(crate) struct Work {
    pub(crate) spec: &'static Spec,
    pub(super) endpoint: &'static Endpoint,
    pub(super) request: Arc<ReceivedRequest>,
    /// The fields of the body, if it is a form.
    pub(super) form: Option<Value>,
    pub(crate) vars: Map<String, Value>,
    /// A number that is unique among the requests of the process; set when the response is generated.
    pub(crate) number: u64,
}

impl Work {
    pub(crate) fn scope(&self) -> Scope<'_> {
        let body = self.form.as_ref().unwrap_or(&self.request.body);
        let names = self.endpoint.names.as_ref();
        Scope {
            definitions: Some(&self.endpoint.define),
            shared: names.and_then(|names| self.spec.definitions.get(names)),
            request: Some(&self.request),
            number: self.number,
            ..Scope::new(&self.vars, body, &self.spec.tables)
        }
    }

    /// Adds values to the variables.
    pub(crate) fn bind(&mut self, bindings: &Bindings) {
        for (name, expr) in bindings.iter() {
            let value = expr.value(&self.scope());
            self.vars.insert(name.clone(), value);
        }
    }
}
