//! Decides which options of a request a channel forwards: those that it allows, and those that have a price (docs/channels.md).

use http::{HeaderMap, HeaderValue};
use tollgate_chat::provider_options::{
    BETA_HEADERS, FoundOption, IfNotAllowed, ProviderOption, find_options, has_no_options,
    is_allowed_beta,
};
use tollgate_chat::{InvalidRequest, RequestSummary};
use tollgate_config::{ModelPrice, PartPrices};
use tollgate_core::ApiError;
use tollgate_store::TokenPrices;
use tollgate_upstream::Channel;

/// The options of one request.
#[derive(Default)]
pub struct RequestOptions {
    options: Vec<RequestedOption>,
    /// Whether the request has a header with beta features.
    has_betas: bool,
}

struct RequestedOption {
    found: FoundOption,
    /// Whether the model has a price for the option: then it is forwarded to every channel.
    is_priced: bool,
    /// Whether the option is a service tier in a field of another format. Its price does not apply, so no channel gets it.
    is_foreign_tier: bool,
}

impl RequestedOption {
    fn is_priced_tool(&self) -> bool {
        let option = self.found.option;
        self.is_priced && [ProviderOption::WebSearch, ProviderOption::WebFetch].contains(&option)
    }
}

/// The parts of a request that are not forwarded to a channel.
#[derive(Default)]
pub struct NotForwarded {
    /// The client's names of these parts.
    pub names: Vec<String>,
    /// The headers without these parts. `None` if the headers are unchanged.
    pub headers: Option<Box<HeaderMap>>,
}

impl RequestOptions {
    /// Finds the options of a request in `format` for a model of that price.
    ///
    /// # Errors
    /// 400 if a member differs from a known one only in case, if an option is given twice, or for more than one service tier.
    pub fn find(
        format: &str,
        summary: &RequestSummary,
        body: &[u8],
        headers: &HeaderMap,
        price: &ModelPrice,
    ) -> Result<Self, InvalidRequest> {
        let found = match has_no_options(summary, body) {
            true => Vec::new(),
            false => find_options(body)?,
        };
        let is_tier = |found: &&FoundOption| found.option == ProviderOption::ServiceTier;
        if let Some(second) = found.iter().filter(is_tier).nth(1) {
            let why = "is a second service tier: a request has one";
            return Err(InvalidRequest::new(&second.field, why));
        }
        let options = found.into_iter().map(|found| {
            let is_foreign_tier = is_tier(&&found) && !found.is_tier_of(format);
            RequestedOption {
                is_priced: price.names_option(&found) && !is_foreign_tier,
                is_foreign_tier,
                found,
            }
        });
        Ok(Self {
            options: options.collect(),
            has_betas: BETA_HEADERS.iter().any(|name| headers.contains_key(*name)),
        })
    }

    /// The prices of tokens and parts for the request's service tier.
    ///
    /// # Errors
    /// 500 if a price is too large: the configuration is wrong.
    pub fn prices(&self, price: &ModelPrice) -> Result<(TokenPrices, PartPrices), ApiError> {
        let tiers = self.options.iter().filter(|requested| {
            requested.is_priced && requested.found.option == ProviderOption::ServiceTier
        });
        let (mut tokens, mut parts) = (price.tokens, price.parts);
        for requested in tiers {
            if let Some(factor) = price.service_tiers.get(&requested.found.tier) {
                tokens = factor.scale(&tokens).ok_or_else(ApiError::internal)?;
                parts = parts.scale(*factor).ok_or_else(ApiError::internal)?;
            }
        }
        Ok((tokens, parts))
    }

    /// Whether this field of the request is an option.
    pub fn contains(&self, field: &str) -> bool {
        let mut options = self.options.iter();
        options.any(|option| option.found.field == field)
    }

    /// Whether the request may call tools that have a price for each call.
    pub fn has_priced_tools(&self) -> bool {
        self.options.iter().any(RequestedOption::is_priced_tool)
    }

    /// The option with a price for each call whose calls cannot be counted, because the usage in responses of `format` does not contain their number,
    /// and which `channel` does not allow.
    pub fn uncounted(&self, format: &str, channel: &Channel) -> Option<&FoundOption> {
        let is_counted = |option| match option {
            ProviderOption::WebSearch => ["messages", "responses"].contains(&format),
            _ => format == "messages",
        };
        let mut tools = self
            .options
            .iter()
            .filter(|requested| requested.is_priced_tool());
        let uncounted = tools.find(|requested| {
            let option = requested.found.option;
            !is_counted(option) && !channel.allows(option)
        });
        uncounted.map(|requested| &requested.found)
    }

    /// The options that the request must not have on `channel`.
    ///
    /// # Errors
    /// 400 if the response would be different without one of them.
    pub fn not_allowed(&self, channel: &Channel) -> Result<Vec<&FoundOption>, InvalidRequest> {
        let is_denied = |requested: &&RequestedOption| {
            requested.is_foreign_tier
                || (!requested.is_priced && !channel.allows(requested.found.option))
        };
        let denied = self.options.iter().filter(is_denied);
        let denied: Vec<_> = denied.map(|requested| &requested.found).collect();
        let differs = |found: &&&FoundOption| found.if_not_allowed() == IfNotAllowed::Reject;
        match denied.iter().find(differs) {
            Some(found) => Err(found.not_available()),
            None => Ok(denied),
        }
    }

    /// The priced option among `dropped`, the fields that have no equivalent in the channel's format. A client must not pay for such an option.
    pub fn priced_and_dropped(&self, dropped: &[String]) -> Option<&FoundOption> {
        // A translated generate-content request names the tier by its first spelling.
        let is_dropped = |field: &str| {
            let mut names = dropped.iter().map(String::as_str);
            names.any(|name| name == field || (field == "service_tier" && name == "serviceTier"))
        };
        let mut found = self.options.iter().filter(|option| option.is_priced);
        let found = found.find(|option| is_dropped(&option.found.field));
        found.map(|option| &option.found)
    }

    /// Adds the beta features that `channel` does not forward to `into.names`; if there are any, sets `into.headers` to `headers` without them.
    pub fn filter_betas(&self, headers: &HeaderMap, channel: &Channel, into: &mut NotForwarded) {
        if !self.has_betas {
            return;
        }
        let before = into.names.len();
        let mut filtered = headers.clone();
        for header in BETA_HEADERS {
            filtered.remove(header);
            for value in headers.get_all(header) {
                let Ok(value) = value.to_str() else {
                    into.names.push(header.to_owned());
                    continue;
                };
                let names = value.split(',').map(str::trim);
                for name in names.filter(|name| !name.is_empty()) {
                    let value = HeaderValue::from_str(name);
                    match (is_allowed_beta(name, &channel.betas), value) {
                        (true, Ok(value)) => drop(filtered.append(header, value)),
                        _ => into.names.push(format!("{header}: {name}")),
                    }
                }
            }
        }
        if into.names.len() > before {
            into.headers = Some(Box::new(filtered));
        }
    }
}
