//! A request to an endpoint while it is checked and answered.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::endpoint::Endpoint;
use super::scope::{Bindings, Scope};
use super::spec::Spec;
use crate::request::ReceivedRequest;

/// A request to an endpoint, and what is known of it.
#[derive(Clone)]
pub(crate) struct Work {
    pub(crate) spec: &'static Spec,
    pub(super) endpoint: &'static Endpoint,
    pub(super) request: Arc<ReceivedRequest>,
    /// The fields of a form.
    pub(super) form: Option<Value>,
    pub(crate) vars: Map<String, Value>,
    /// Different for every request of the process, once it is answered.
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
