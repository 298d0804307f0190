//! [`Draft`]: the validated field values of a request before they become a job.

use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tollgate_core::Adjustment;

use crate::input::input_image::{Input, InputRole};
use crate::input::limits::InputLimits;

/// The values of a request, each validated separately, for the rules to check and adjust.
pub(crate) struct Draft<'a> {
    /// The model id as the client wrote it.
    pub(crate) model: &'a str,
    /// The built-in id whose rules the model follows.
    pub(crate) base_model: &'static str,
    /// The limits of the model's reference images.
    pub(crate) input_limits: InputLimits,
    /// Reference images in order, then the mask.
    pub(crate) inputs: Vec<Input>,
    /// The values that were changed or ignored so far.
    pub(crate) adjustments: Vec<Adjustment>,
    values: BTreeMap<&'static str, FieldValue>,
    /// The members of object fields that the client sent with a value other than null: the field's name and the member's.
    requested_members: BTreeSet<(&'static str, &'static str)>,
}

/// A field's value and its origin.
struct FieldValue {
    value: Value,
    /// The name under which the client sent it. `None` if it is a default or set by a rule.
    requested_as: Option<String>,
}

impl<'a> Draft<'a> {
    /// An empty draft of a request for `model`.
    pub(crate) fn new(model: &'a str, base_model: &'static str, input_limits: InputLimits) -> Self {
        Self {
            model,
            base_model,
            input_limits,
            inputs: Vec::new(),
            adjustments: Vec::new(),
            values: BTreeMap::new(),
            requested_members: BTreeSet::new(),
        }
    }

    /// Stores the value that the client sent for `field` under the name `path`.
    pub(crate) fn set_requested(&mut self, field: &'static str, path: &str, value: Value) {
        let requested_as = Some(path.to_owned());
        let field_value = FieldValue {
            value,
            requested_as,
        };
        self.values.insert(field, field_value);
    }

    /// Records that the client sent a member of an object field with a value other than null.
    pub(crate) fn set_member_requested(&mut self, object: &'static str, name: &'static str) {
        self.requested_members.insert((object, name));
    }

    /// Sets `field` without an adjustment, keeping whether the client sent it.
    pub(crate) fn set(&mut self, field: &'static str, value: impl Into<Value>) {
        let earlier = self.values.remove(field);
        let field_value = FieldValue {
            value: value.into(),
            requested_as: earlier.and_then(|earlier| earlier.requested_as),
        };
        self.values.insert(field, field_value);
    }

    /// Removes `field` without an adjustment.
    pub(crate) fn remove(&mut self, field: &str) -> Option<Value> {
        self.values
            .remove(field)
            .map(|field_value| field_value.value)
    }

    /// Replaces the value of `field` by `used`, with an adjustment that states the reason.
    pub(crate) fn adjust(
        &mut self,
        field: &'static str,
        used: impl Into<Value>,
        why: impl Into<String>,
    ) {
        let used = used.into();
        let requested = self.value(field).cloned().unwrap_or_default();
        let name = self.name_of(field).to_owned();
        self.set(field, used.clone());
        self.adjustments
            .push(Adjustment::new(name, requested, used, why));
    }

    /// Removes `field`, with an adjustment that states the reason.
    pub(crate) fn drop_field(&mut self, field: &'static str, why: impl Into<String>) {
        let name = self.name_of(field).to_owned();
        if let Some(requested) = self.remove(field) {
            self.adjustments
                .push(Adjustment::new(name, requested, Value::Null, why));
        }
    }

    /// Whether the client sent `field` with a value other than null.
    pub(crate) fn is_requested(&self, field: &str) -> bool {
        self.requested_as(field).is_some()
    }

    /// Whether the client sent a member of an object field with a value other than null.
    pub(crate) fn is_member_requested(&self, object: &'static str, name: &'static str) -> bool {
        self.requested_members.contains(&(object, name))
    }

    /// The name under which the client sent `field`, which may be an alias; `field` itself if the client did not send it.
    pub(crate) fn name_of<'f>(&'f self, field: &'f str) -> &'f str {
        self.requested_as(field).unwrap_or(field)
    }

    fn requested_as(&self, field: &str) -> Option<&str> {
        self.values.get(field)?.requested_as.as_deref()
    }

    /// The field's value, requested or default.
    pub(crate) fn value(&self, field: &str) -> Option<&Value> {
        self.values.get(field).map(|field_value| &field_value.value)
    }

    /// A string field's value.
    pub(crate) fn text(&self, field: &str) -> Option<&str> {
        self.value(field).and_then(Value::as_str)
    }

    /// A member of an object field.
    pub(crate) fn member(&self, object: &str, name: &str) -> Option<&Value> {
        self.value(object).and_then(|object| object.get(name))
    }

    /// Removes a member of an object field, with an adjustment that states the reason.
    pub(crate) fn drop_member(&mut self, object: &str, name: &str, why: &str) {
        let members = self.values.get_mut(object);
        let members = members.and_then(|field_value| field_value.value.as_object_mut());
        if let Some(requested) = members.and_then(|members| members.remove(name)) {
            let field = format!("{object}.{name}");
            self.adjustments
                .push(Adjustment::new(field, requested, Value::Null, why));
        }
    }

    /// A number field's value.
    pub(crate) fn int(&self, field: &str) -> Option<i64> {
        self.value(field).and_then(Value::as_i64)
    }

    /// A boolean field's value; false if absent.
    pub(crate) fn flag(&self, field: &str) -> bool {
        self.value(field).and_then(Value::as_bool).unwrap_or(false)
    }

    /// Number of reference images.
    pub(crate) fn references(&self) -> usize {
        let is_reference = |input: &&Input| matches!(input.role, InputRole::Reference(_));
        self.inputs.iter().filter(is_reference).count()
    }

    /// Moves the members of an object field out of the draft.
    pub(crate) fn take_object(&mut self, field: &str) -> Map<String, Value> {
        match self.remove(field) {
            Some(Value::Object(members)) => members,
            _ => Map::new(),
        }
    }

    /// Moves a field's value out of the draft, deserialised. `None` if it is absent or not a `T`.
    pub(crate) fn take<T: DeserializeOwned>(&mut self, field: &str) -> Option<T> {
        self.remove(field)
            .and_then(|value| serde_json::from_value(value).ok())
    }

    /// The values that were not moved out.
    pub(crate) fn into_remaining(self) -> Map<String, Value> {
        let left = self.values.into_iter();
        left.map(|(name, field_value)| (name.to_owned(), field_value.value))
            .collect()
    }
}
