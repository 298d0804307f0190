//! [`AnyFamily`]: one interface to the image, video and speech families.

use std::fmt;

use serde_json::Value;
use tollgate_core::{ApiError, TaskKind};

use crate::endpoint::{Endpoint, RequestLayout};
use crate::fields::field::Field;
use crate::fields::schema::body_schema;
use crate::fields::spec::RequestSpec;
use crate::image::metadata::ImageMetadata;
use crate::input::input_image::InputRole;
use crate::input::limits::InputLimits;
use crate::job::Job;
use crate::link_ttl::LinkTtl;
use crate::response::data::{ReceiptData, RecordData};
use crate::response::format::ResponseFormat;
use crate::response::{speech::SPEECH, video::VIDEO};
use crate::{image, speech, video};

/// A family of any kind. Two families are equal if their names are equal.
#[derive(Clone, Copy)]
pub enum AnyFamily {
    /// Generates or edits images.
    Image(&'static image::Family),
    /// Generates videos.
    Video(&'static video::Family),
    /// Converts text to speech.
    Speech(&'static speech::Family),
}

impl AnyFamily {
    /// Every family: image, then video, then speech.
    pub fn all() -> impl Iterator<Item = Self> {
        let images = image::FAMILIES.iter().map(|family| Self::Image(family));
        let videos = video::FAMILIES.iter().map(|family| Self::Video(family));
        let speech = speech::FAMILIES.iter().map(|family| Self::Speech(family));
        images.chain(videos).chain(speech)
    }

    /// The family with that name, such as the `family` of a stored job.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::all().find(|family| family.name() == name)
    }

    /// The family's identifier: `like = …` in the configuration, the name of its docs page, `family` of stored jobs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Image(family) => family.name,
            Self::Video(family) => family.name,
            Self::Speech(family) => family.name,
        }
    }

    /// The family's display name.
    pub fn title(self) -> &'static str {
        self.request_spec().title
    }

    /// The family's model ids, the primary one first.
    pub fn models(self) -> &'static [&'static str] {
        self.request_spec().models
    }

    /// The id under which prices, channels and keys list the model of this family with that id.
    pub(crate) fn first_name(self, id: &'static str) -> &'static str {
        let one_model = match self {
            Self::Image(family) => family.one_model,
            Self::Video(_) => false,
            Self::Speech(family) => family.one_model,
        };
        if one_model { self.models()[0] } else { id }
    }

    /// The family's own request fields in that layout: without the model field and the fields that every family has.
    pub fn fields(self, layout: RequestLayout) -> &'static [Field] {
        self.request_spec_for(layout).fields
    }

    /// The kind of the family's results.
    pub fn kind(self) -> TaskKind {
        match self {
            Self::Image(_) => TaskKind::Image,
            Self::Video(_) => TaskKind::Video,
            Self::Speech(_) => TaskKind::Speech,
        }
    }

    /// The endpoint that serves the family; [`Endpoint::aliases`] lists the alternatives.
    pub fn endpoint(self) -> Endpoint {
        match self {
            Self::Image(family) => family.endpoint,
            Self::Video(_) => Endpoint::VideoGenerations,
            Self::Speech(_) => Endpoint::AudioSpeech,
        }
    }

    /// How long links to the results stay valid.
    pub fn link_ttl(self) -> LinkTtl {
        match self {
            Self::Image(family) => family.link_ttl,
            Self::Video(family) => family.link_ttl,
            Self::Speech(family) => family.link_ttl,
        }
    }

    /// Whether prompts pass the safety review by default.
    pub fn safety_review(self) -> bool {
        match self {
            Self::Image(family) => family.safety_review,
            Self::Video(family) => family.safety_review,
            Self::Speech(family) => family.safety_review,
        }
    }

    /// The limits of the family's reference images.
    pub fn input_limits(self) -> InputLimits {
        self.request_spec().input_limits
    }

    /// Checks an image file against the family's limits. `field` names it in errors; `first_reference`, if known, has
    /// the size that a mask must have.
    ///
    /// # Errors
    /// 400 that names the field and the limit.
    pub fn check_input_image(
        self,
        role: InputRole,
        field: &str,
        metadata: &ImageMetadata,
        first_reference: Option<&ImageMetadata>,
    ) -> Result<(), ApiError> {
        match self {
            Self::Image(family) => family.check_input_image(role, field, metadata, first_reference),
            Self::Video(_) | Self::Speech(_) => self.input_limits().check(field, metadata),
        }
    }

    /// Fills in a size that follows a reference image, and checks the job against its references' sizes.
    ///
    /// `references` are in the job's order, `None` for those whose metadata is not known yet. May be called again when more metadata is known.
    ///
    /// # Errors
    /// 400 if the references do not fit the job; 500 if the job is of another kind.
    pub fn apply_reference_metadata(
        self,
        job: &mut Job,
        references: &[Option<ImageMetadata>],
    ) -> Result<(), ApiError> {
        match (self, job) {
            (Self::Image(family), Job::Image(job)) => {
                family.apply_reference_metadata(job, references)
            }
            (Self::Video(family), Job::Video(job)) => {
                family.apply_reference_metadata(job, references);
                Ok(())
            }
            (Self::Speech(_), Job::Speech(_)) => Ok(()),
            _ => Err(ApiError::internal()),
        }
    }

    /// The JSON Schema of the family's request bodies in that layout.
    pub fn schema(self, layout: RequestLayout) -> Value {
        body_schema(&self.request_spec_for(layout))
    }

    /// The family's page in docs/models/, in Markdown.
    pub fn page(self) -> String {
        match self {
            Self::Image(family) => image::page(family),
            Self::Video(family) => video::page(family),
            Self::Speech(family) => speech::page(family),
        }
    }

    /// The JSON format of the family's receipts and records.
    pub fn response_format(self) -> &'static ResponseFormat {
        match self {
            Self::Image(family) => family.response,
            Self::Video(_) => &VIDEO,
            Self::Speech(_) => &SPEECH,
        }
    }

    /// The response to a submission.
    pub fn receipt(self, data: &ReceiptData<'_>) -> Value {
        self.response_format().receipt(data)
    }

    /// The response to `GET /v1/tasks/<id>`.
    pub fn record(self, data: &RecordData<'_>) -> Value {
        self.response_format().record(data)
    }

    /// The record in the form in which batches and lists contain it: without the `{code, data}` envelope.
    pub fn bare_record(self, data: &RecordData<'_>) -> Value {
        self.response_format().bare_record(data)
    }

    /// The response to `GET /v1/images/generations/<id>`: the same flat object for every kind of task.
    pub fn generation_record(self, data: &RecordData<'_>) -> Value {
        self.response_format().generation_record(data)
    }

    fn request_spec(self) -> RequestSpec {
        self.request_spec_for(RequestLayout::Standard)
    }

    fn request_spec_for(self, layout: RequestLayout) -> RequestSpec {
        match self {
            Self::Image(family) => family.request_spec(),
            Self::Video(family) => family.request_spec(),
            Self::Speech(family) => family.request_spec(layout),
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
    /// Writes only the name: the declaration is too long for a log line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AnyFamily({})", self.name())
    }
}
