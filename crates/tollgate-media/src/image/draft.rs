//! A request while it is being read: fields checked one by one, not yet a job.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use tollgate_core::Adjustment;

use super::family::Family;
use super::input::{Input, InputRole};
use super::job::{ImageFormat, ImageJob, Size};
use crate::catalogue::ImageModel;

/// A request whose fields are each legal by themselves.
pub(crate) struct Draft<'a> {
    /// Whom it asks.
    pub(crate) model: &'a ImageModel,
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
    /// A request for `model` of which nothing has been read.
    pub(crate) fn new(model: &'a ImageModel) -> Self {
        Self {
            model,
            inputs: Vec::new(),
            adjustments: Vec::new(),
            values: BTreeMap::new(),
        }
    }

    /// The family asked.
    pub(crate) fn family(&self) -> &'static Family {
        self.model.family
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

    /// The format of the results.
    pub(crate) fn output_format(&self) -> ImageFormat {
        self.text("output_format")
            .and_then(|name| ImageFormat::ALL.into_iter().find(|f| f.name() == name))
            .unwrap_or(self.family().output)
    }

    /// The job, its references still to come. Every field that is no word of all families goes into
    /// `extra`.
    pub(crate) fn into_job(mut self, size: Size) -> ImageJob {
        let output_format = self.output_format();
        for spent in ["output_format", "size", "resolution"] {
            self.values.remove(spent);
        }
        let n = self.take_number("n").unwrap_or(1);
        ImageJob {
            model: self.model.name.clone(),
            family: self.family().name.to_owned(),
            prompt: self.take_text("prompt").unwrap_or_default(),
            negative_prompt: self.take_text("negative_prompt"),
            n: u32::try_from(n).unwrap_or(1),
            size,
            quality: self.take_text("quality"),
            output_format,
            output_compression: self
                .take_number("output_compression")
                .and_then(|percent| u8::try_from(percent).ok()),
            background: self.take("background"),
            moderation: self.take("moderation"),
            seed: self.take_number("seed"),
            watermark: self.take("watermark"),
            references: Vec::new(),
            mask: None,
            extra: self.extra(),
        }
    }

    fn extra(self) -> Map<String, Value> {
        let left = self.values.into_iter();
        left.map(|(name, given)| (name.to_owned(), given.value))
            .collect()
    }

    /// Takes a field whose values are a type's serde names.
    fn take<T: serde::de::DeserializeOwned>(&mut self, field: &str) -> Option<T> {
        self.remove(field)
            .and_then(|value| serde_json::from_value(value).ok())
    }

    fn take_text(&mut self, field: &str) -> Option<String> {
        self.take(field)
    }

    fn take_number(&mut self, field: &str) -> Option<u64> {
        self.take(field)
    }
}
