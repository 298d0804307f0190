//! `RequestSpec`: the declaration of a family's requests, shared by the parser, the JSON Schema and the docs page.

use serde_json::Value;
use tollgate_core::ApiError;

use super::draft::Draft;
use super::field::Field;
use crate::input::limits::InputLimits;

/// The declaration of a family's requests in one layout.
#[derive(Clone, Copy)]
pub(crate) struct RequestSpec {
    /// The family's display name.
    pub(crate) title: &'static str,
    /// A few sentences about the family.
    pub(crate) about: &'static str,
    /// The family's model ids.
    pub(crate) models: &'static [&'static str],
    /// The name of the field that contains the model id.
    pub(crate) model_field: &'static str,
    /// Every other field.
    pub(crate) fields: &'static [Field],
    /// Fields that are accepted without effect, each with the reason.
    pub(crate) ignored: &'static [(&'static str, &'static str)],
    /// The limits of the family's reference images.
    pub(crate) input_limits: InputLimits,
    /// Rules that involve more than one field.
    pub(crate) rules: &'static [Rule],
    /// The sizes that the family's size fields select from.
    pub(crate) sizes: &'static dyn SizeSpec,
}

impl RequestSpec {
    /// The declared fields and `callback_url`, which every family has; without the model field.
    pub(crate) fn every_field(&self) -> impl Iterator<Item = &'static Field> + use<> {
        self.fields.iter().chain([&Field::CALLBACK_URL])
    }
}

/// The values of the fields `size`, `resolution` and `aspect_ratio`.
pub(crate) trait SizeSpec: Sync {
    /// The tiers of `resolution`, and the index of the default one.
    fn tiers(&self) -> (&'static [&'static str], usize);
    /// The values of `aspect_ratio`.
    fn ratios(&self) -> Vec<&'static str>;
    /// The default of `size`. `None` if it depends on the request.
    fn default(&self) -> Option<String>;
    /// The JSON Schema of `size`.
    fn schema(&self) -> Value;
}

/// The [`SizeSpec`] of families without size fields.
pub(crate) struct NoSizes;

impl SizeSpec for NoSizes {
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

/// A rule of a family that involves more than one field.
pub struct Rule {
    /// The rule as a sentence for the docs page.
    pub text: &'static str,
    /// Checks or adjusts the draft. Runs after every field has been validated separately.
    pub(crate) apply: fn(&mut Draft<'_>) -> Result<(), ApiError>,
}
