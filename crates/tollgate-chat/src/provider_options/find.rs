//! Finds the options of a request without parsing its conversation.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde::de::{IgnoredAny, MapAccess, SeqAccess};

use super::option::{FoundOption, ProviderOption};
use crate::chat_completions::has_plain_fields_only;
use crate::error::InvalidRequest;
use crate::format::RequestSummary;
use crate::lazy_json::{LazyVisitor, Scalar, VisitWith, next_key, visit_json};

/// Top-level members of a request that are options, in all formats. An option of one format counts in a request of another format too: servers that
/// support several formats may understand it. A service tier is forwarded in the fields of its own format only.
const MEMBERS: &[(&str, ProviderOption)] = &[
    ("service_tier", ProviderOption::ServiceTier),
    ("serviceTier", ProviderOption::ServiceTier),
    ("speed", ProviderOption::ServiceTier),
    ("inference_geo", ProviderOption::InferenceGeo),
    ("models", ProviderOption::Routing),
    ("route", ProviderOption::Routing),
    ("provider", ProviderOption::Routing),
    ("preset", ProviderOption::Routing),
    ("background", ProviderOption::Background),
    ("deferred", ProviderOption::Background),
    ("store", ProviderOption::Store),
    ("previous_response_id", ProviderOption::StoredContext),
    ("conversation", ProviderOption::StoredContext),
    ("prompt", ProviderOption::StoredContext),
    ("continuationToken", ProviderOption::StoredContext),
    ("continuation_token", ProviderOption::StoredContext),
    ("cachedContent", ProviderOption::CachedContent),
    ("cached_content", ProviderOption::CachedContent),
    ("container", ProviderOption::CodeExecution),
    ("mcp_servers", ProviderOption::Mcp),
    ("web_search_options", ProviderOption::WebSearch),
    ("search_parameters", ProviderOption::WebSearch),
    ("enable_search", ProviderOption::WebSearch),
    ("plugins", ProviderOption::OtherTools),
    ("audio", ProviderOption::AudioOutput),
];

/// Members that servers of Google's format read in two spellings: each with the other one.
const OTHER_SPELLINGS: &[(&str, &str)] = &[
    ("serviceTier", "service_tier"),
    ("cachedContent", "cached_content"),
    ("continuationToken", "continuation_token"),
];

/// Members of all formats that are not options: of their names, only these spellings are forwarded.
const OTHER_MEMBERS: &[&str] = &[
    "model",
    "messages",
    "stream",
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "n",
    "tools",
    "tool_choice",
    "functions",
    "function_call",
    "input",
    "instructions",
    "system",
    "thinking",
    "thread",
    "cache_control",
    "reasoning",
    "reasoning_effort",
    "output_config",
    "metadata",
    "user",
    "stop",
    "temperature",
    "top_p",
    "top_k",
    "modalities",
    "response_format",
    "stream_options",
    "contents",
    "systemInstruction",
    "generationConfig",
    "toolConfig",
];

/// Types, or beginnings of types, of tools that the client runs or that only inform the model about tools.
const CLIENT_TOOLS: &[&str] = &[
    "function",
    "custom",
    "namespace",
    "local_shell",
    "apply_patch",
    "tool_search",
    "collaboration",
    "bash_2",
    "text_editor_",
    "memory_2",
    "computer",
    "browser_toolset",
];

/// Members of tools without a type that the client runs, in lower case.
const UNTYPED_TOOLS: &[&str] = &[
    "name",
    "function",
    "functiondeclarations",
    "function_declarations",
    "computeruse",
    "computer_use",
];

/// Beginnings of the types, in lower case, of tools that the provider runs. A tool of any other type is [`ProviderOption::OtherTools`].
const SERVER_TOOLS: &[(&str, ProviderOption)] = &[
    ("web_search", ProviderOption::WebSearch),
    ("googlesearch", ProviderOption::WebSearch),
    ("google_search", ProviderOption::WebSearch),
    ("enterprisewebsearch", ProviderOption::WebSearch),
    ("web_fetch", ProviderOption::WebFetch),
    ("urlcontext", ProviderOption::WebFetch),
    ("url_context", ProviderOption::WebFetch),
    ("file_search", ProviderOption::FileSearch),
    ("filesearch", ProviderOption::FileSearch),
    ("code_execution", ProviderOption::CodeExecution),
    ("codeexecution", ProviderOption::CodeExecution),
    ("code_interpreter", ProviderOption::CodeExecution),
    ("programmatic_tool_calling", ProviderOption::CodeExecution),
    ("shell", ProviderOption::CodeExecution),
    ("image_generation", ProviderOption::ImageGeneration),
    ("mcp", ProviderOption::Mcp),
    ("remote_mcp", ProviderOption::Mcp),
    ("googlemaps", ProviderOption::Maps),
    ("google_maps", ProviderOption::Maps),
];

/// Texts, one of which is in every body that sets the ttl of a cache write or that may hide it behind an escaped name.
static CACHE_HINTS: LazyLock<[Finder<'static>; 3]> =
    LazyLock::new(|| ["cache_control", "prompt_cache_", "\\u00"].map(Finder::new));

/// Whether the summary shows that a request has no options, which is the case for most requests.
pub fn has_no_options(summary: &RequestSummary, body: &[u8]) -> bool {
    has_plain_fields_only(summary.members) && !has_cache_hint(body)
}

fn has_cache_hint(body: &[u8]) -> bool {
    CACHE_HINTS.iter().any(|hint| hint.find(body).is_some())
}

/// The options of a request with that body, in the order in which they occur; a long cache write is the last one.
///
/// # Errors
/// If a member's name differs from a known one only by case: some servers treat it as the known one. If an option is given twice: some servers read
/// the first one, others the last one.
pub fn find_options(body: &[u8]) -> Result<Vec<FoundOption>, InvalidRequest> {
    let mut search = Search {
        found: Vec::new(),
        error: None,
    };
    visit_json(body, Top(&mut search))?;
    if let Some(error) = search.error {
        return Err(error);
    }
    if has_cache_hint(body) {
        visit_json(
            body,
            CacheSearch {
                search: &mut search,
                is_cache_member: false,
            },
        )?;
    }
    Ok(search.found)
}

struct Search {
    found: Vec<FoundOption>,
    error: Option<InvalidRequest>,
}

impl Search {
    fn add(&mut self, option: ProviderOption, field: impl Into<String>, tier: &str) {
        let field = field.into();
        if !self
            .found
            .iter()
            .any(|found| found.option == option && found.field == field && found.tier == tier)
        {
            let tier = tier.to_owned();
            self.found.push(FoundOption {
                option,
                field,
                tier,
            });
        }
    }
}

/// Visits the request.
struct Top<'s>(&'s mut Search);

impl<'de> LazyVisitor<'de> for Top<'_> {
    fn visit_object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let search = self.0;
        // A bit for each row of `MEMBERS`; two spellings share one.
        let mut seen = 0_u32;
        while let Some(name) = next_key(&mut object)? {
            if let Some(at) = MEMBERS.iter().position(|member| member.0 == name) {
                let (name, option) = MEMBERS[at];
                let other = OTHER_SPELLINGS.iter().find(|spelling| spelling.0 == name);
                let row = |(_, other): &(&str, &str)| {
                    MEMBERS.iter().position(|member| member.0 == *other)
                };
                let at = other.and_then(row).unwrap_or(at);
                if seen & (1 << at) != 0 {
                    let twice = || InvalidRequest::new(name, "is given twice");
                    search.error.get_or_insert_with(twice);
                }
                seen |= 1 << at;
                object.next_value_seed(VisitWith(Member {
                    search,
                    name,
                    option,
                }))?;
                continue;
            }
            match &*name {
                "tools" => object.next_value_seed(VisitWith(Tools {
                    search,
                    at: "tools",
                }))?,
                name if OTHER_MEMBERS.contains(&name) => drop(object.next_value::<IgnoredAny>()?),
                name => {
                    let mut known = MEMBERS
                        .iter()
                        .map(|member| member.0)
                        .chain(OTHER_MEMBERS.iter().copied());
                    if let Some(known) = known.find(|known| known.eq_ignore_ascii_case(name)) {
                        let why = format!(
                            "is not a field: names are compared with their case, so write `{known}`"
                        );
                        search
                            .error
                            .get_or_insert_with(|| InvalidRequest::new(name, why));
                    }
                    object.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// Visits a member that is an option unless its value is `null`, `false` or the default.
struct Member<'s> {
    search: &'s mut Search,
    name: &'static str,
    option: ProviderOption,
}

impl<'de> LazyVisitor<'de> for Member<'_> {
    fn visit_scalar(self, value: Scalar<'de>) {
        let Self {
            search,
            name,
            option,
        } = self;
        let is_tier = option == ProviderOption::ServiceTier;
        match value {
            Scalar::Null | Scalar::Bool(false) => {}
            Scalar::String(tier) if is_tier => {
                let tier = tier.to_ascii_lowercase();
                let is_default =
                    ["", "auto", "default", "standard", "standard_only"].contains(&&*tier);
                if !is_default && !tier.ends_with("unspecified") {
                    search.add(option, name, &tier);
                }
            }
            _ => search.add(option, name, ""),
        }
    }

    fn visit_array<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut is_empty = true;
        while list.next_element::<IgnoredAny>()?.is_some() {
            is_empty = false;
        }
        if !is_empty {
            self.search.add(self.option, self.name, "");
        }
        Ok(())
    }

    fn visit_object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        self.search.add(self.option, self.name, "");
        while object.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(())
    }
}

/// Visits a list of tools.
struct Tools<'s, 'p> {
    search: &'s mut Search,
    at: &'p str,
}

impl<'de> LazyVisitor<'de> for Tools<'_, '_> {
    fn visit_array<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let mut index = 0_usize;
        let search = self.search;
        while list
            .next_element_seed(VisitWith(Tool {
                search,
                list: self.at,
                index,
            }))?
            .is_some()
        {
            index += 1;
        }
        Ok(())
    }
}

struct Tool<'s, 'p> {
    search: &'s mut Search,
    list: &'p str,
    index: usize,
}

impl<'de> LazyVisitor<'de> for Tool<'_, '_> {
    fn visit_object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let Self {
            search,
            list,
            index,
        } = self;
        let (mut kinds, mut members) = (Vec::new(), Vec::new());
        while let Some(name) = next_key(&mut object)? {
            if name.eq_ignore_ascii_case("type") {
                let mut kind = None;
                object.next_value_seed(VisitWith(Text(&mut kind)))?;
                kinds.extend(kind.map(|kind: String| kind.to_ascii_lowercase()));
            } else if name == "tools" {
                let at = format!("{list}[{index}].tools");
                object.next_value_seed(VisitWith(Tools { search, at: &at }))?;
            } else {
                // In Google's format, the names of the members are the types of tools.
                let mut is_null = false;
                object.next_value_seed(VisitWith(IsNull(&mut is_null)))?;
                members.extend((!is_null).then(|| name.to_ascii_lowercase()));
            }
        }
        // Of two spellings of `type`, servers may read either one.
        let is_client_tool = |kind: &str| CLIENT_TOOLS.iter().any(|start| kind.starts_with(start));
        let typed = kinds.iter().filter(|kind| !is_client_tool(kind));
        let typed = typed.map(|kind| server_tool(kind).unwrap_or(ProviderOption::OtherTools));
        // Clients of Google's format could add a type, which its servers ignore.
        let named = members.iter().filter_map(|name| match kinds.is_empty() {
            true => untyped_tool(name, &members),
            false => server_tool(name),
        });
        for option in typed.chain(named) {
            search.add(option, format!("{list}[{index}]"), "");
        }
        Ok(())
    }
}

/// The option that corresponds to the member `name` of a tool without a type. `None` if the client runs that tool. `members` are the names of all
/// members, in lower case.
pub(super) fn untyped_tool(name: &str, members: &[String]) -> Option<ProviderOption> {
    if UNTYPED_TOOLS.contains(&name) {
        return None;
    }
    // The other members of a function are its attributes.
    let is_function = members
        .iter()
        .any(|name| name == "name" || name == "function");
    server_tool(name).or((!is_function).then_some(ProviderOption::OtherTools))
}

/// The option that corresponds to a tool of that type. `None` if the type is not known.
fn server_tool(kind: &str) -> Option<ProviderOption> {
    let is_start = |start: &str| {
        kind.get(..start.len())
            .is_some_and(|head| head.eq_ignore_ascii_case(start))
    };
    let row = SERVER_TOOLS.iter().find(|(start, _)| is_start(start));
    row.map(|(_, option)| *option)
}

struct Text<'t>(&'t mut Option<String>);

impl<'de> LazyVisitor<'de> for Text<'_> {
    fn visit_scalar(self, value: Scalar<'de>) {
        if let Scalar::String(text) = value {
            *self.0 = Some(text.into_owned());
        }
    }
}

struct IsNull<'n>(&'n mut bool);

impl<'de> LazyVisitor<'de> for IsNull<'_> {
    fn visit_scalar(self, value: Scalar<'de>) {
        *self.0 = matches!(value, Scalar::Null);
    }
}

/// Searches the complete request for cache writes with a long ttl.
struct CacheSearch<'s> {
    search: &'s mut Search,
    /// Whether this is the value of a member that controls the cache.
    is_cache_member: bool,
}

impl<'de> LazyVisitor<'de> for CacheSearch<'_> {
    fn visit_array<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let search = self.search;
        while list
            .next_element_seed(VisitWith(CacheSearch {
                search,
                is_cache_member: false,
            }))?
            .is_some()
        {}
        Ok(())
    }

    fn visit_object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let Self {
            search,
            is_cache_member,
        } = self;
        while let Some(name) = next_key(&mut object)? {
            if is_cache_member && name.eq_ignore_ascii_case("ttl") {
                let mut ttl = None;
                object.next_value_seed(VisitWith(Text(&mut ttl)))?;
                if ttl.is_some_and(|ttl| is_long(&ttl)) {
                    search.add(ProviderOption::CacheWrite1h, "cache_control.ttl", "");
                }
                continue;
            }
            let is_cache_member = is_cache_member_name(&name);
            object.next_value_seed(VisitWith(CacheSearch {
                search,
                is_cache_member,
            }))?;
        }
        Ok(())
    }
}

/// Whether a member controls the prompt cache.
pub(super) fn is_cache_member_name(name: &str) -> bool {
    [
        "cache_control",
        "prompt_cache_breakpoint",
        "prompt_cache_options",
    ]
    .iter()
    .any(|known| known.eq_ignore_ascii_case(name))
}

/// Whether a ttl of a cache write is longer than every provider's default.
pub(super) fn is_long(ttl: &str) -> bool {
    !["5m", "30m"].contains(&ttl)
}
