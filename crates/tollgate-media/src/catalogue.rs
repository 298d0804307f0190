//! The model catalogue: every built-in model id with its family or endpoint, and the ids that configuration adds.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use serde_json::{Map, Value};
use tollgate_core::ApiError;

use crate::endpoint::{Endpoint, RequestLayout};
use crate::family::AnyFamily;
use crate::text;

/// The built-in chat models, by the endpoint that error messages name for them.
const CHAT_MODELS: &[(Endpoint, &[&str])] = &[
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

/// Patterns of ids that clients derive from those of built-in models: names of versions, dates and `-latest`. `*` matches any text. The first match
/// is used; ids in the catalogue and patterns in the configuration take precedence over these.
const DERIVED_IDS: &[(&str, &str)] = &[
    (
        "claude-opus-4-*-thinking",
        "claude-opus-4-1-20250805-thinking",
    ),
    ("claude-opus-4-*", "claude-opus-4-1-20250805"),
    (
        "claude-sonnet-4-*-thinking",
        "claude-sonnet-4-5-20250929-thinking",
    ),
    ("claude-sonnet-4-*", "claude-sonnet-4-5-20250929"),
    ("claude-haiku-4-*", "claude-haiku-4-5-20251001"),
    ("gpt-5-20*", "gpt-5"),
    ("gpt-5-mini-20*", "gpt-5-mini"),
    ("gpt-5-nano-20*", "gpt-5-nano"),
    ("gpt-5-pro-20*", "gpt-5-pro"),
    ("gpt-4o-20*", "gpt-4o"),
];

/// The minimum similarity of the names that an error suggests, from 0 to 1.
const MIN_SIMILARITY: f64 = 0.6;
/// The maximum number of names that an error suggests.
const MAX_SUGGESTIONS: usize = 3;

/// The longest model id that configuration may add, in bytes.
const NAME_MAX: usize = 128;

/// A model id that configuration adds: a `[[model]]` table. It is an alias of the other model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtraModel {
    /// The new id, 1 to 128 printable characters without spaces. With a `*`, which matches any text, every id that matches is an alias of the chat
    /// model.
    pub name: String,
    /// The model whose rules the new id follows: a built-in model id, or a family's name (which means the family's first model).
    pub like: String,
}

/// An image, video or speech model.
#[derive(Debug, Clone)]
pub struct TaskModel {
    /// The id that clients send.
    pub name: String,
    /// The built-in id whose rules the model follows: its own id, except for models that configuration adds.
    pub base_model: &'static str,
    /// The built-in id under which prices, channels and keys list the model: its own id, unless that is an alias.
    pub first_name: &'static str,
    /// The family that declares the model's parameters.
    pub family: AnyFamily,
}

/// A chat model.
#[derive(Clone, Copy)]
struct ChatModel {
    /// The endpoint that error messages name for the model.
    endpoint: Endpoint,
    /// See [`TaskModel::first_name`].
    first_name: &'static str,
}

/// The names of a model in a request. An alias is treated as its model, so the configuration need not list the alias.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelName<'a> {
    /// The id in the request.
    pub own: &'a str,
    /// The id under which prices, channels and keys list the model, unless they have an entry for `own`.
    pub first: &'a str,
}

impl TaskModel {
    /// The model's names.
    pub fn names(&self) -> ModelName<'_> {
        ModelName {
            own: &self.name,
            first: self.first_name,
        }
    }
}

enum Entry {
    Task(TaskModel),
    Chat(ChatModel),
}

/// The known model ids. They are case-sensitive.
pub struct Catalogue {
    entries: HashMap<String, Entry, RandomState>,
    /// Patterns of ids that are aliases of a chat model. The first match is used.
    patterns: Vec<(String, Entry)>,
}

impl Catalogue {
    /// The built-in models and `extra`.
    ///
    /// # Errors
    /// A sentence for the operator if an extra model has an invalid name, a name already used, or an unknown `like`.
    pub fn new(extra: &[ExtraModel]) -> Result<Self, String> {
        let mut entries = HashMap::default();
        for family in AnyFamily::all() {
            for &id in family.models() {
                entries.insert(id.to_owned(), task_entry(id, id, family));
            }
        }
        for (endpoint, names) in CHAT_MODELS {
            for name in *names {
                let model = ChatModel {
                    endpoint: *endpoint,
                    first_name: name,
                };
                entries.insert((*name).to_owned(), Entry::Chat(model));
            }
        }
        let mut added = Vec::with_capacity(extra.len());
        for model in extra {
            check_name(&model.name)?;
            added.push((model.name.clone(), resolve_like(&entries, model)?));
        }
        let mut patterns = Vec::new();
        for (name, entry) in added {
            match (name.contains('*'), &entry) {
                (true, Entry::Chat(_)) => patterns.push((name, entry)),
                (true, Entry::Task(_)) => {
                    return Err(format!(
                        "model \"{name}\" has a `*`, which only aliases of chat models may have"
                    ));
                }
                (false, _) if entries.contains_key(&name) => {
                    return Err(format!("model \"{name}\" is in the catalogue already"));
                }
                (false, _) => drop(entries.insert(name, entry)),
            }
        }
        for (pattern, model) in DERIVED_IDS {
            if let Some(Entry::Chat(model)) = entries.get(*model) {
                patterns.push(((*pattern).to_owned(), Entry::Chat(*model)));
            }
        }
        Ok(Self { entries, patterns })
    }

    /// The entry of a model id, or of the first pattern that it matches.
    fn find(&self, model: &str) -> Option<&Entry> {
        let by_pattern = || {
            let mut patterns = self.patterns.iter();
            let found = patterns.find(|(pattern, _)| matches_pattern(model, pattern));
            found.map(|(_, entry)| entry)
        };
        self.entries.get(model).or_else(by_pattern)
    }

    /// The known ids that are most like `model`, which is not known.
    fn similar_ids(&self, model: &str) -> Vec<&str> {
        // Limits the time, which grows with the product of the lengths.
        let model: String = model.chars().take(NAME_MAX).collect();
        let similarity = |id: &str| strsim::normalized_damerau_levenshtein(&model, id);
        let ids = self.entries.keys().map(|id| (similarity(id), id.as_str()));
        let mut ids: Vec<(f64, &str)> = ids.filter(|(s, _)| *s >= MIN_SIMILARITY).collect();
        ids.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        ids.truncate(MAX_SUGGESTIONS);
        ids.into_iter().map(|(_, id)| id).collect()
    }

    /// The image, video or speech model with that id, if `endpoint` serves it.
    ///
    /// # Errors
    /// 404 if the id is unknown; 400 that names the right endpoint if another endpoint serves the model.
    pub fn task_model(&self, model: &str, endpoint: Endpoint) -> Result<&TaskModel, ApiError> {
        match self.find(model) {
            Some(Entry::Task(found)) if found.family.endpoint() == endpoint.canonical() => {
                Ok(found)
            }
            entry => Err(self.endpoint_error(model, entry)),
        }
    }

    /// The model that a request body names in the model field of the endpoint's layout.
    ///
    /// # Errors
    /// Those of [`Catalogue::task_model`]; 400 if the body names no model.
    pub fn requested_model(
        &self,
        body: &Map<String, Value>,
        endpoint: Endpoint,
    ) -> Result<&TaskModel, ApiError> {
        self.task_model(model_name(body, endpoint.request_layout())?, endpoint)
    }

    /// Checks that `model` is a chat model. Every chat model is served in all four chat formats.
    ///
    /// # Errors
    /// 404 if the id is unknown; 400 that names the right endpoint if it is not a chat model.
    pub fn check_chat_model(&self, model: &str) -> Result<(), ApiError> {
        match self.find(model) {
            Some(Entry::Chat(model)) if model.endpoint.is_chat() => Ok(()),
            entry => Err(self.endpoint_error(model, entry)),
        }
    }

    /// The ids of the chat models, in no particular order.
    pub fn chat_models(&self) -> impl Iterator<Item = &str> {
        self.models()
            .filter(|(_, endpoint)| endpoint.is_chat())
            .map(|(name, _)| name)
    }

    /// The names of `model`. An unknown id is its own first name.
    pub fn names<'a>(&self, model: &'a str) -> ModelName<'a> {
        let first = match self.find(model) {
            Some(Entry::Task(found)) => found.first_name,
            Some(Entry::Chat(found)) => found.first_name,
            None => model,
        };
        ModelName { own: model, first }
    }

    /// The endpoint of a model id. `None` if the id is unknown.
    pub fn endpoint(&self, model: &str) -> Option<Endpoint> {
        self.find(model).map(Entry::endpoint)
    }

    /// The image, video and speech models, in no particular order.
    pub fn task_models(&self) -> impl Iterator<Item = &TaskModel> {
        self.entries.values().filter_map(|entry| match entry {
            Entry::Task(model) => Some(model),
            Entry::Chat(_) => None,
        })
    }

    /// The model ids with their endpoints, in no particular order.
    pub fn models(&self) -> impl Iterator<Item = (&str, Endpoint)> {
        self.entries
            .iter()
            .map(|(name, entry)| (name.as_str(), entry.endpoint()))
    }

    /// The error if `model` is not served at the endpoint of a request: 404 or 400.
    fn endpoint_error(&self, model: &str, entry: Option<&Entry>) -> ApiError {
        let Some(right) = entry.map(Entry::endpoint) else {
            let similar = match self.similar_ids(model).as_slice() {
                [] => String::new(),
                ids => format!(" (similar: {})", ids.join(", ")),
            };
            return ApiError::not_found(format!(
                "model {} is not in the catalogue{similar}; GET /v1/models lists the models",
                text::show_text(model)
            ));
        };
        let article = if right.noun().starts_with('i') {
            "an"
        } else {
            "a"
        };
        let (model, noun) = (text::show_text(model), right.noun());
        ApiError::invalid(format!(
            "model {model} is {article} {noun} model: send it to {right}"
        ))
    }
}

impl Entry {
    fn endpoint(&self) -> Endpoint {
        match self {
            Self::Task(model) => model.family.endpoint(),
            Self::Chat(model) => model.endpoint,
        }
    }
}

fn task_entry(name: &str, base_model: &'static str, family: AnyFamily) -> Entry {
    Entry::Task(TaskModel {
        name: name.to_owned(),
        base_model,
        first_name: family.first_name(base_model),
        family,
    })
}

/// The model id that a request body names.
fn model_name(body: &Map<String, Value>, layout: RequestLayout) -> Result<&str, ApiError> {
    let field = layout.model_field();
    match body.get(field) {
        Some(Value::String(name)) if !name.trim().is_empty() => Ok(name),
        None | Some(Value::Null) => Err(ApiError::invalid(format!(
            "`{field}` is required: GET /v1/models lists the models"
        ))),
        Some(other) => Err(ApiError::invalid(format!(
            "`{field}` must be a string that names a model, got {}",
            text::show_json(other)
        ))),
    }
}

/// The entry for an extra model, resolved from its `like`.
fn resolve_like(
    built_in: &HashMap<String, Entry, RandomState>,
    model: &ExtraModel,
) -> Result<Entry, String> {
    match (built_in.get(&model.like), AnyFamily::by_name(&model.like)) {
        (Some(Entry::Task(found)), _) => {
            Ok(task_entry(&model.name, found.base_model, found.family))
        }
        (Some(Entry::Chat(model)), _) => Ok(Entry::Chat(*model)),
        (None, Some(family)) => Ok(task_entry(&model.name, family.models()[0], family)),
        (None, None) => Err(format!(
            "model \"{}\" is like \"{}\", which is neither a built-in model nor a family ({})",
            text::show_name(&model.name),
            text::show_name(&model.like),
            AnyFamily::all()
                .map(AnyFamily::name)
                .collect::<Vec<_>>()
                .join(", "),
        )),
    }
}

/// Whether `id` matches `pattern`, in which `*` matches any text.
fn matches_pattern(id: &str, pattern: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = id.strip_prefix(first) else {
        return false;
    };
    let mut pieces: Vec<&str> = pieces.collect();
    let Some(last) = pieces.pop() else {
        return rest.is_empty();
    };
    for piece in pieces {
        let Some((_, after)) = rest.split_once(piece) else {
            return false;
        };
        rest = after;
    }
    rest.ends_with(last)
}

fn check_name(name: &str) -> Result<(), String> {
    let printable = |c: char| !c.is_control() && !c.is_whitespace();
    if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(printable) {
        return Err(format!(
            "model name \"{}\" must be 1 to {NAME_MAX} printable characters without spaces",
            text::show_name(name)
        ));
    }
    Ok(())
}
