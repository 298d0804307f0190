//! Request forms: what the declarations of every kind of model have in common, and the one reader of them.

pub(crate) mod draft;
pub mod field;
pub mod length;
mod page;
mod pictures;
mod read;
mod schema;
pub(crate) mod values;

use serde_json::Value;
use tollgate_core::ApiError;

pub(crate) use draft::Draft;
pub(crate) use page::{curl, field_table, front, inputs, rule_list};
pub(crate) use read::{apply_rules, read_fields};
pub(crate) use schema::body_schema;

use crate::input::InputRules;
use field::Field;

/// What a reader, a schema and a docs page need to know of a family, whatever it makes.
#[derive(Clone, Copy)]
pub(crate) struct Form {
    /// The family's name for people.
    pub(crate) title: &'static str,
    /// A few sentences about it.
    pub(crate) about: &'static str,
    /// Its model ids.
    pub(crate) models: &'static [&'static str],
    /// The field that names the model.
    pub(crate) model_field: &'static str,
    /// Every other field.
    pub(crate) fields: &'static [Field],
    /// Fields that it takes without effect, each with the reason.
    pub(crate) ignored: &'static [(&'static str, &'static str)],
    /// What its reference images must be.
    pub(crate) inputs: InputRules,
    /// What no table says.
    pub(crate) rules: &'static [Rule],
    /// The sizes that its size fields choose from.
    pub(crate) sizes: &'static dyn FormSizes,
}

impl Form {
    /// Its fields and those that every form has.
    pub(crate) fn every_field(&self) -> impl Iterator<Item = &'static Field> + use<> {
        self.fields.iter().chain([&Field::CALLBACK])
    }
}

/// What the fields for sizes may hold.
pub(crate) trait FormSizes: Sync {
    /// The tiers of `resolution`, and the default one's index.
    fn tiers(&self) -> (&'static [&'static str], usize);
    /// The values of `aspect_ratio`.
    fn ratios(&self) -> Vec<&'static str>;
    /// What a request without `size` gets, where that is one value.
    fn default(&self) -> Option<String>;
    /// The JSON Schema of `size`.
    fn schema(&self) -> Value;
}

/// Sizes of what has none.
pub(crate) struct NoSizes;

impl FormSizes for NoSizes {
    fn tiers(&self) -> (&'static [&'static str], usize) {
        (&[], 0)
    }
    fn ratios(&self) -> Vec<&'static str> {
        Vec::new()
    }
    fn default(&self) -> Option<String> {
        None
    }
    fn schema(&self) -> Value {
        Value::Bool(false)
    }
}

/// One odd rule of a family.
pub struct Rule {
    /// What it says, for the docs page.
    pub text: &'static str,
    pub(crate) apply: fn(&mut Draft<'_>) -> Result<(), ApiError>,
}
