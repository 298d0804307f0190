//! A family of any kind, and what all of them have.

use std::fmt;

use serde_json::Value;
use tollgate_core::{ApiError, TaskKind};

use crate::form::field::Field;
use crate::form::{self, Form};
use crate::image::ImageFacts;
use crate::input::{InputRole, InputRules};
use crate::job::Job;
use crate::shape::Shape;
use crate::{Endpoint, RequestShape, image, speech, video};

/// How long links to results work (CONTRACT.md › `expiry.images_s`, `expiry.long_s`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkLife {
    /// 24 hours unless configured otherwise.
    Usual,
    /// 72 hours unless configured otherwise.
    Long,
}

impl LinkLife {
    /// The hours that SPEC.md promises.
    pub fn hours(self) -> u32 {
        match self {
            Self::Usual => 24,
            Self::Long => 72,
        }
    }
}

/// A family of any kind. Families are the same when their names are.
#[derive(Clone, Copy)]
pub enum AnyFamily {
    /// Its models make pictures.
    Image(&'static image::Family),
    /// Its models make films.
    Video(&'static video::Family),
    /// Its models speak.
    Speech(&'static speech::Family),
}

impl AnyFamily {
    /// Every family: pictures, then films, then speech.
    pub fn all() -> impl Iterator<Item = Self> {
        let images = image::FAMILIES.iter().map(|family| Self::Image(family));
        let videos = video::FAMILIES.iter().map(|family| Self::Video(family));
        let speech = speech::FAMILIES.iter().map(|family| Self::Speech(family));
        images.chain(videos).chain(speech)
    }

    /// The family of that name, such as a stored job's.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::all().find(|family| family.name() == name)
    }

    /// Its short name: `like = …` in the configuration, the name of its docs page, the stored job's `family`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Image(family) => family.name,
            Self::Video(family) => family.name,
            Self::Speech(family) => family.name,
        }
    }

    /// Its name for people.
    pub fn title(self) -> &'static str {
        self.form().title
    }

    /// Its model ids. The first is the usual one.
    pub fn models(self) -> &'static [&'static str] {
        self.form().models
    }

    /// Its request fields in that shape, those that every family has and the one that names the model aside.
    pub fn fields(self, shape: RequestShape) -> &'static [Field] {
        self.form_in(shape).fields
    }

    /// What its models make.
    pub fn kind(self) -> TaskKind {
        match self {
            Self::Image(_) => TaskKind::Image,
            Self::Video(_) => TaskKind::Video,
            Self::Speech(_) => TaskKind::Speech,
        }
    }

    /// Where it is asked; [`Endpoint::also`] names further ways in.
    pub fn endpoint(self) -> Endpoint {
        match self {
            Self::Image(family) => family.endpoint,
            Self::Video(_) => Endpoint::VideoGenerations,
            Self::Speech(_) => Endpoint::AudioSpeech,
        }
    }

    /// How long its results are kept.
    pub fn links(self) -> LinkLife {
        match self {
            Self::Image(family) => family.links,
            Self::Video(family) => family.links,
            Self::Speech(family) => family.links,
        }
    }

    /// Whether prompts pass the safety review unless the configuration says otherwise.
    pub fn safety_review(self) -> bool {
        match self {
            Self::Image(family) => family.safety_review,
            Self::Video(family) => family.safety_review,
            Self::Speech(family) => family.safety_review,
        }
    }

    /// What its reference images must be.
    pub fn inputs(self) -> InputRules {
        self.form().inputs
    }

    /// Checks a picture's file against the family's limits. `field` names it in errors;
    /// `first_reference`, where known, is what a mask's size must equal.
    ///
    /// # Errors
    /// 400 that names the limit.
    pub fn check_input(
        self,
        role: InputRole,
        field: &str,
        facts: &ImageFacts,
        first_reference: Option<&ImageFacts>,
    ) -> Result<(), ApiError> {
        match self {
            Self::Image(family) => family.check_input(role, field, facts, first_reference),
            Self::Video(_) | Self::Speech(_) => self.inputs().check(field, facts),
        }
    }

    /// Settles what depends on the references: a size that follows one of them is filled in as soon as that one's
    /// facts are known, and whatever the family checks against the references' sizes is checked. `references` are in
    /// the job's order, none where not known yet; may be called again when more is known.
    ///
    /// # Errors
    /// 400 where the references do not fit the job; 500 where the job is of another kind.
    pub fn settle(self, job: &mut Job, references: &[Option<ImageFacts>]) -> Result<(), ApiError> {
        match (self, job) {
            (Self::Image(family), Job::Image(job)) => family.settle(job, references),
            (Self::Video(family), Job::Video(job)) => {
                family.settle(job, references);
                Ok(())
            }
            (Self::Speech(_), Job::Speech(_)) => Ok(()),
            _ => Err(ApiError::internal()),
        }
    }

    /// The JSON Schema of its requests in that shape.
    pub fn schema(self, shape: RequestShape) -> Value {
        form::body_schema(&self.form_in(shape))
    }

    /// Its docs page, in Markdown.
    pub fn page(self) -> String {
        match self {
            Self::Image(family) => image::page(family),
            Self::Video(family) => video::page(family),
            Self::Speech(family) => speech::page(family),
        }
    }

    /// How its receipts and records look.
    pub fn shape(self) -> &'static Shape {
        match self {
            Self::Image(family) => family.shape,
            Self::Video(_) => &crate::shape::VIDEO,
            Self::Speech(_) => &crate::shape::SPEECH,
        }
    }

    /// What its requests in the usual shape hold.
    pub(crate) fn form(self) -> Form {
        self.form_in(RequestShape::Usual)
    }

    fn form_in(self, shape: RequestShape) -> Form {
        match self {
            Self::Image(family) => family.form(),
            Self::Video(family) => family.form(),
            Self::Speech(family) => family.form(shape),
        }
    }
}

impl PartialEq for AnyFamily {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

impl Eq for AnyFamily {}

impl fmt::Debug for AnyFamily {
    /// Its name: the declaration is too long for a log line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnyFamily({})", self.name())
    }
}
