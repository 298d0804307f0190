//! The catalogue: every model id, the family or endpoint it belongs to, and ids that an operator adds.

use std::collections::HashMap;

use serde_json::{Map, Value};
use tollgate_core::ApiError;

use crate::image::Family;
use crate::text;
use crate::{AnyFamily, Endpoint, RequestShape};

/// Models that make no tasks, by the endpoint that an error sends their callers to.
const OTHERS: &[(Endpoint, &[&str])] = &[
    (
        Endpoint::ChatCompletions,
        &[
            "gpt-5",
            "gpt-5-chat-latest",
            "gpt-5-mini",
            "gpt-5-nano",
            "gpt-5-pro",
            "gpt-4o",
            "claude-sonnet-4-5-20250929",
            "claude-opus-4-1-20250805",
            "claude-haiku-4-5-20251001",
            "claude-opus-4-1-20250805-thinking",
            "claude-sonnet-4-5-20250929-thinking",
            "gemini-2.5-pro",
            "gemini-2.5-flash",
            "gemini-2.5-pro-thinking",
            "gemini-2.5-flash-lite",
            "deepseek-v3.1-250821",
            "deepseek-v3.1-think-250821",
            "deepseek-v3-0324",
            "doubao-seed-1-6-251015",
            "doubao-seed-1-6-flash-250828",
            "doubao-seed-1-6-thinking-250715",
        ],
    ),
    (Endpoint::Responses, &["GPT-4o-image", "gpt-4-vision"]),
];

/// The longest model id that configuration may add, in bytes.
const NAME_MAX: usize = 128;

/// A model id that configuration adds (`[[model]] name, like`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtraModel {
    /// The new id, 1 to 128 printable characters without spaces.
    pub name: String,
    /// A model id of the built-in catalogue, or a family's name (then its first model).
    pub like: String,
}

/// An image model of the catalogue.
#[derive(Debug, Clone)]
pub struct ImageModel {
    /// The id that clients send.
    pub name: String,
    /// The built-in id whose rules it follows: itself, except for models that configuration adds.
    pub like: &'static str,
    /// The parameters it takes.
    pub family: &'static Family,
}

/// A model of the catalogue that makes tasks, whatever it makes.
#[derive(Debug, Clone)]
pub struct TaskModel {
    /// The id that clients send.
    pub name: String,
    /// The built-in id whose rules it follows: itself, except for models that configuration adds.
    pub like: &'static str,
    /// The parameters it takes.
    pub family: AnyFamily,
}

enum Entry {
    Task(TaskModel, Option<ImageModel>),
    Chat(Endpoint),
}

/// Every model id. Ids are case-sensitive.
pub struct Catalogue {
    entries: HashMap<String, Entry>,
}

impl Catalogue {
    /// The built-in models and `extra`. The error is a sentence for the operator.
    pub fn new(extra: &[ExtraModel]) -> Result<Self, String> {
        let mut entries = HashMap::new();
        for family in AnyFamily::all() {
            for &like in family.models() {
                let entry = task_entry(like, like, family);
                entries.insert(like.to_owned(), entry);
            }
        }
        for (endpoint, names) in OTHERS {
            for name in *names {
                entries.insert((*name).to_owned(), Entry::Chat(*endpoint));
            }
        }
        let mut added = Vec::with_capacity(extra.len());
        for model in extra {
            check_name(&model.name)?;
            added.push((model.name.clone(), like(&entries, model)?));
        }
        for (name, entry) in added {
            if entries.contains_key(&name) {
                return Err(format!("model \"{name}\" is in the catalogue already"));
            }
            entries.insert(name, entry);
        }
        Ok(Self { entries })
    }

    /// The image model of that id, if it belongs to `endpoint`. 404 for an unknown id; 400 that
    /// names the right endpoint for a model of another one.
    pub fn image(&self, model: &str, endpoint: Endpoint) -> Result<&ImageModel, ApiError> {
        match self.entries.get(model) {
            Some(Entry::Task(_, Some(found))) if found.family.endpoint == endpoint => Ok(found),
            entry => Err(misplaced(model, entry)),
        }
    }

    /// The model of that id, if it belongs to `endpoint` or to the one that `endpoint` is a further way in to. 404
    /// for an unknown id; 400 that names the right endpoint for a model of another one.
    pub fn task(&self, model: &str, endpoint: Endpoint) -> Result<&TaskModel, ApiError> {
        match self.entries.get(model) {
            Some(Entry::Task(found, _)) if found.family.endpoint() == endpoint.home() => Ok(found),
            entry => Err(misplaced(model, entry)),
        }
    }

    /// The model that a request asks for, named in the field that its shape has for that. Errors as
    /// [`Catalogue::task`]'s; 400 when no model is named.
    pub fn asked(
        &self,
        body: &Map<String, Value>,
        endpoint: Endpoint,
    ) -> Result<&TaskModel, ApiError> {
        self.task(model_name(body, endpoint.shape())?, endpoint)
    }

    /// Whether that id is a chat model: every chat model is served in all four formats. 404 for an unknown id; 400 that
    /// names the right endpoint for a model of another one.
    pub fn chat(&self, model: &str) -> Result<(), ApiError> {
        match self.entries.get(model) {
            Some(Entry::Chat(endpoint)) if endpoint.is_chat() => Ok(()),
            entry => Err(misplaced(model, entry)),
        }
    }

    /// Every chat model's id, in no particular order.
    pub fn chat_models(&self) -> impl Iterator<Item = &str> {
        self.models()
            .filter(|(_, endpoint)| endpoint.is_chat())
            .map(|(name, _)| name)
    }

    /// The endpoint of a model id, none when it is unknown.
    pub fn endpoint(&self, model: &str) -> Option<Endpoint> {
        self.entries.get(model).map(Entry::endpoint)
    }

    /// Every image model, in no particular order.
    pub fn image_models(&self) -> impl Iterator<Item = &ImageModel> {
        self.entries.values().filter_map(|entry| match entry {
            Entry::Task(_, model) => model.as_ref(),
            Entry::Chat(_) => None,
        })
    }

    /// Every model that makes tasks, in no particular order.
    pub fn task_models(&self) -> impl Iterator<Item = &TaskModel> {
        self.entries.values().filter_map(|entry| match entry {
            Entry::Task(model, _) => Some(model),
            Entry::Chat(_) => None,
        })
    }

    /// Every model id with its endpoint, in no particular order.
    pub fn models(&self) -> impl Iterator<Item = (&str, Endpoint)> {
        self.entries
            .iter()
            .map(|(name, entry)| (name.as_str(), entry.endpoint()))
    }
}

impl Entry {
    fn endpoint(&self) -> Endpoint {
        match self {
            Self::Task(model, _) => model.family.endpoint(),
            Self::Chat(endpoint) => *endpoint,
        }
    }
}

/// Why `model` is not served here: 404 or 400.
fn misplaced(model: &str, entry: Option<&Entry>) -> ApiError {
    let Some(right) = entry.map(Entry::endpoint) else {
        return ApiError::not_found(format!(
            "model {} is not in the catalogue; GET /v1/models lists the models",
            text::quote(model)
        ));
    };
    let article = if right.noun().starts_with('i') {
        "an"
    } else {
        "a"
    };
    let (model, noun) = (text::quote(model), right.noun());
    ApiError::invalid(format!(
        "model {model} is {article} {noun} model: send it to {right}"
    ))
}

fn task_entry(name: &str, like: &'static str, family: AnyFamily) -> Entry {
    let name = name.to_owned();
    let image = match family {
        AnyFamily::Image(family) => Some(ImageModel {
            name: name.clone(),
            like,
            family,
        }),
        AnyFamily::Video(_) | AnyFamily::Speech(_) => None,
    };
    Entry::Task(TaskModel { name, like, family }, image)
}

/// The model that a body names.
fn model_name(body: &Map<String, Value>, shape: RequestShape) -> Result<&str, ApiError> {
    let field = shape.model_field();
    match body.get(field) {
        Some(Value::String(name)) if !name.trim().is_empty() => Ok(name),
        None | Some(Value::Null) => Err(ApiError::invalid(format!(
            "`{field}` is required: GET /v1/models lists the models"
        ))),
        Some(other) => Err(ApiError::invalid(format!(
            "`{field}` must be a string that names a model, got {}",
            text::show(other)
        ))),
    }
}

/// The entry that `model` asks for with its `like`.
fn like(built_in: &HashMap<String, Entry>, model: &ExtraModel) -> Result<Entry, String> {
    match (built_in.get(&model.like), AnyFamily::by_name(&model.like)) {
        (Some(Entry::Task(found, _)), _) => Ok(task_entry(&model.name, found.like, found.family)),
        (Some(Entry::Chat(endpoint)), _) => Ok(Entry::Chat(*endpoint)),
        (None, Some(family)) => Ok(task_entry(&model.name, family.models()[0], family)),
        (None, None) => Err(format!(
            "model \"{}\" is like \"{}\", which is neither a built-in model nor a family ({})",
            text::name(&model.name),
            text::name(&model.like),
            AnyFamily::all()
                .map(AnyFamily::name)
                .collect::<Vec<_>>()
                .join(", "),
        )),
    }
}

fn check_name(name: &str) -> Result<(), String> {
    let printable = |c: char| !c.is_control() && !c.is_whitespace();
    if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(printable) {
        return Err(format!(
            "model name \"{}\" must be 1 to {NAME_MAX} printable characters without spaces",
            text::name(name)
        ));
    }
    Ok(())
}
