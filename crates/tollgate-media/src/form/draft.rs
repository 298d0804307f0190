//! A request while it is being read: fields checked one by one, not yet a job.

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tollgate_core::Adjustment;

use super::Form;
use crate::input::{Input, InputRole};

/// A request whose fields are each legal by themselves.
pub(crate) struct Draft<'a> {
    /// The model id as the client wrote it.
    pub(crate) model: &'a str,
    /// The built-in id whose rules it follows.
    pub(crate) like: &'static str,
    /// What the model takes.
    pub(crate) form: Form,
    /// Reference images in order, then the mask.
    pub(crate) inputs: Vec<Input>,
    /// What the rules changed so far.
    pub(crate) adjustments: Vec<Adjustment>,
    values: BTreeMap<&'static str, Given>,
}

/// A field's value.
struct Given {
    value: Value,
    /// Whether the client sent it; else it is a default or a rule's.
    asked: bool,
}

impl<'a> Draft<'a> {
    /// A request for `model`, whose rules are those of `like`, of which nothing has been read.
    pub(crate) fn new(model: &'a str, like: &'static str, form: Form) -> Self {
        Self {
            model,
            like,
            form,
            inputs: Vec::new(),
            adjustments: Vec::new(),
            values: BTreeMap::new(),
        }
    }

    /// Takes what the client sent for `field`.
    pub(crate) fn give(&mut self, field: &'static str, value: Value) {
        self.values.insert(field, Given { value, asked: true });
    }

    /// Sets `field` without a word, keeping whether it was asked for.
    pub(crate) fn set(&mut self, field: &'static str, value: impl Into<Value>) {
        let asked = self.asked(field);
        let value = value.into();
        self.values.insert(field, Given { value, asked });
    }

    /// Forgets `field`.
    pub(crate) fn remove(&mut self, field: &str) -> Option<Value> {
        self.values.remove(field).map(|given| given.value)
    }

    /// Uses `used` in place of what was asked for `field`, and says why.
    pub(crate) fn adjust(
        &mut self,
        field: &'static str,
        used: impl Into<Value>,
        why: impl Into<String>,
    ) {
        let used = used.into();
        let asked = self.value(field).cloned().unwrap_or_default();
        self.set(field, used.clone());
        self.adjustments
            .push(Adjustment::new(field, asked, used, why));
    }

    /// Drops `field`, and says why.
    pub(crate) fn drop_field(&mut self, field: &'static str, why: impl Into<String>) {
        if let Some(asked) = self.remove(field) {
            self.adjustments
                .push(Adjustment::new(field, asked, Value::Null, why));
        }
    }

    /// Whether the client sent `field` (and not null).
    pub(crate) fn asked(&self, field: &str) -> bool {
        self.values.get(field).is_some_and(|given| given.asked)
    }

    /// The field's value, asked or default.
    pub(crate) fn value(&self, field: &str) -> Option<&Value> {
        self.values.get(field).map(|given| &given.value)
    }

    /// A string field's value.
    pub(crate) fn text(&self, field: &str) -> Option<&str> {
        self.value(field).and_then(Value::as_str)
    }

    /// A member of an object field, as it was asked.
    pub(crate) fn member(&self, object: &str, name: &str) -> Option<&Value> {
        self.value(object).and_then(|object| object.get(name))
    }

    /// Drops a member of an object field, and says why.
    pub(crate) fn drop_member(&mut self, object: &str, name: &str, why: &str) {
        let members = self.values.get_mut(object);
        let members = members.and_then(|given| given.value.as_object_mut());
        if let Some(asked) = members.and_then(|members| members.remove(name)) {
            let field = format!("{object}.{name}");
            self.adjustments
                .push(Adjustment::new(field, asked, Value::Null, why));
        }
    }

    /// A number field's value.
    pub(crate) fn int(&self, field: &str) -> Option<i64> {
        self.value(field).and_then(Value::as_i64)
    }

    /// Whether a flag is set.
    pub(crate) fn flag(&self, field: &str) -> bool {
        self.value(field).and_then(Value::as_bool).unwrap_or(false)
    }

    /// How many reference images there are.
    pub(crate) fn references(&self) -> usize {
        let is_reference = |input: &&Input| matches!(input.role, InputRole::Reference(_));
        self.inputs.iter().filter(is_reference).count()
    }

    /// Takes an object field apart: its members as they were read.
    pub(crate) fn take_object(&mut self, field: &str) -> Map<String, Value> {
        match self.remove(field) {
            Some(Value::Object(members)) => members,
            _ => Map::new(),
        }
    }

    /// Takes a field's value as what `T` reads from JSON.
    pub(crate) fn take<T: DeserializeOwned>(&mut self, field: &str) -> Option<T> {
        self.remove(field)
            .and_then(|value| serde_json::from_value(value).ok())
    }

    /// Every value that was not taken.
    pub(crate) fn rest(self) -> Map<String, Value> {
        let left = self.values.into_iter();
        left.map(|(name, given)| (name.to_owned(), given.value))
            .collect()
    }
}
