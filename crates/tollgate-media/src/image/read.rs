//! From a request body to a submission: every field read by its family's declaration.

use serde_json::{Map, Value};
use tollgate_core::{Adjustment, ApiError};

use super::draft::Draft;
use super::family::Family;
use super::field::{Field, Kind};
use super::input::{Input, InputRole};
use super::job::{ImageJob, InputImage, Source};
use super::values::read_field;
use crate::catalogue::ImageModel;
use crate::text;

/// How many ignored fields are listed one by one.
const LISTED: usize = 20;

/// A request that was found good.
#[derive(Debug, Clone)]
pub struct Submission {
    /// Its pictures: references in order, then the mask. Their files' limits are not checked yet
    /// ([`Family::check_input`]).
    pub inputs: Vec<Input>,
    /// What the rules changed silently.
    pub adjustments: Vec<Adjustment>,
    /// What a price may depend on.
    pub price: PriceFacts,
    job: ImageJob,
}

/// What a price may depend on, beside the model and the number of pictures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PriceFacts {
    /// `size` as asked or by default, such as `16:9`, `auto`, `2K` or `1024x1024`.
    pub size: String,
    /// Such as `2048x1152`; none while the size follows a reference that is not known yet.
    pub pixels: Option<String>,
    /// The tier, such as `2K`, where there are tiers.
    pub resolution: Option<String>,
    /// The quality, where there are qualities.
    pub quality: Option<String>,
}

impl Submission {
    /// The job as far as it is known: without references and mask.
    pub fn job(&self) -> &ImageJob {
        &self.job
    }

    /// The whole job. `sources` says where each of `inputs` is, in their order.
    ///
    /// # Panics
    /// When there are not as many sources as inputs.
    pub fn into_job(self, sources: Vec<Source>) -> ImageJob {
        assert_eq!(
            sources.len(),
            self.inputs.len(),
            "one source for each input"
        );
        let mut job = self.job;
        for (input, source) in self.inputs.into_iter().zip(sources) {
            let image = InputImage {
                field: input.field,
                source,
            };
            match input.role {
                InputRole::Reference(_) => job.references.push(image),
                InputRole::Mask => job.mask = Some(image),
            }
        }
        job
    }
}

impl PriceFacts {
    /// Takes over what [`Family::settle`] has settled in `job`.
    pub fn settled(&mut self, job: &ImageJob) {
        self.pixels = job.size.pixels.map(|pixels| pixels.to_string());
        self.resolution.clone_from(&job.size.tier);
    }
}

/// Reads a request for `model`. With `strict`, fields that would be ignored are an error.
///
/// `null` counts as absent everywhere. Errors are 400 and name the field, what came and what is allowed.
pub fn read(
    model: &ImageModel,
    body: &Map<String, Value>,
    strict: bool,
) -> Result<Submission, ApiError> {
    let family = model.family;
    let mut draft = Draft::new(model);
    for field in family.fields {
        match sent(body, field)? {
            Some(value) => read_field(&mut draft, field, value)?,
            None => {
                if let Some(default) = field.default {
                    draft.set(field.name, default.value());
                }
            }
        }
        require(&draft, field)?;
    }
    ignore_the_rest(&mut draft, body, strict)?;
    for rule in family.rules {
        (rule.apply)(&mut draft)?;
    }
    let (size, asked) = family.sizes.choose(&mut draft)?;
    let inputs = std::mem::take(&mut draft.inputs);
    let adjustments = std::mem::take(&mut draft.adjustments);
    let job = draft.into_job(size);
    let mut price = PriceFacts {
        size: asked,
        pixels: None,
        resolution: None,
        quality: job.quality.clone(),
    };
    price.settled(&job);
    Ok(Submission {
        inputs,
        adjustments,
        price,
        job,
    })
}

/// What the client sent for `field`, under whichever of its names.
fn sent<'b>(body: &'b Map<String, Value>, field: &Field) -> Result<Option<&'b Value>, ApiError> {
    let mut found: Option<(&str, &Value)> = None;
    for name in std::iter::once(&field.name).chain(field.aliases) {
        let Some(value) = body.get(*name).filter(|value| !value.is_null()) else {
            continue;
        };
        match found {
            Some((first, other)) if other != value => {
                return Err(ApiError::invalid(format!(
                    "`{first}` and `{name}` are one field but differ: {} and {}; send one of them",
                    text::show(other),
                    text::show(value)
                )));
            }
            Some(_) => {}
            None => found = Some((name, value)),
        }
    }
    Ok(found.map(|(_, value)| value))
}

/// 400 when a required field is absent, blank or empty.
fn require(draft: &Draft<'_>, field: &Field) -> Result<(), ApiError> {
    let missing = match field.kind {
        _ if !field.required => false,
        Kind::References => draft.references() == 0,
        _ => draft
            .text(field.name)
            .is_none_or(|text| text.trim().is_empty()),
    };
    if missing {
        let came = match draft.value(field.name) {
            Some(value) => text::show(value),
            None => "none".to_owned(),
        };
        return Err(ApiError::invalid(format!(
            "`{}` is required and must not be empty, got {came}",
            field.name
        )));
    }
    Ok(())
}

/// Lists the fields that have no effect as adjustments; with `strict` they are an error.
fn ignore_the_rest(
    draft: &mut Draft<'_>,
    body: &Map<String, Value>,
    strict: bool,
) -> Result<(), ApiError> {
    let family = draft.family();
    let idle = idle_fields(family, body);
    if strict && !idle.is_empty() {
        let mut names: Vec<String> = idle
            .iter()
            .take(3)
            .map(|(name, _)| format!("`{name}`"))
            .collect();
        if idle.len() > names.len() {
            names.push(format!("{} more", idle.len() - names.len()));
        }
        return Err(ApiError::invalid(format!(
            "{} would have no effect on {} (x-tollgate-strict is set)",
            names.join(", "),
            family.title
        )));
    }
    for (name, value) in idle.iter().take(LISTED) {
        let why = family
            .ignored
            .iter()
            .find(|(ignored, _)| ignored == name)
            .map_or("not a field of this model", |(_, why)| why);
        let asked = text::clip(value);
        draft
            .adjustments
            .push(Adjustment::new(name, asked, Value::Null, why));
    }
    if idle.len() > LISTED {
        let more = format!("{} more fields", idle.len() - LISTED);
        let why = "not fields of this model";
        draft
            .adjustments
            .push(Adjustment::new("…", more, Value::Null, why));
    }
    Ok(())
}

/// The fields of a body, and the members of its objects, that the family does not have; their names
/// fit to be shown.
fn idle_fields<'b>(family: &Family, body: &'b Map<String, Value>) -> Vec<(String, &'b Value)> {
    let mut idle = Vec::new();
    for (name, value) in body.iter().filter(|(_, value)| !value.is_null()) {
        match field_of(family.fields, name).map(|field| field.kind) {
            None if name != "model" => idle.push((text::name(name), value)),
            Some(Kind::Object(members)) => {
                let given = value.as_object().into_iter().flatten();
                let unknown = given.filter(|(member, _)| field_of(members, member).is_none());
                idle.extend(
                    unknown
                        .map(|(member, value)| (format!("{name}.{}", text::name(member)), value)),
                );
            }
            _ => {}
        }
    }
    idle
}

/// The field that goes by that name.
fn field_of<'f>(fields: &'f [Field], name: &str) -> Option<&'f Field> {
    fields
        .iter()
        .find(|field| field.name == name || field.aliases.contains(&name))
}
