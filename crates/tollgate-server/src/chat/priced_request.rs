//! The highest cost of a chat: its model, options, prices and bounds, computed by the same code for a request and for a quote.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;
use tollgate_chat::RequestSummary;
use tollgate_core::{Amount, ApiError, money};
use tollgate_store::{TokenCounts, TokenPrices};

use crate::auth::caller::Caller;
use crate::chat::allowed_options::RequestOptions;
use crate::chat::bounds::ChargeBounds;
use crate::chat::context::ChatContext;
use crate::chat::endpoint::Endpoint;
use crate::chat::error::ChatErrorResponse;
use crate::chat::stored_conversations::ConversationHome;
use crate::http::large_work;
use crate::reloadable::Reloadable;

/// A request that has not been priced yet.
pub struct UnpricedRequest<'a> {
    /// The chat endpoint that the request is for.
    pub endpoint: Endpoint,
    /// The request's headers.
    pub headers: &'a HeaderMap,
    /// The body, JSON text.
    pub body: &'a Bytes,
    /// The model as the client wrote it.
    pub model: &'a str,
    /// The caller. `None` for the quote of an admin, who may use every model.
    pub caller: Option<&'a Caller>,
    /// Whether the caller's account or key has a limit.
    pub has_limit: bool,
}

/// A request with its prices.
pub struct PricedRequest {
    /// The name that channels use for the model: the client's name may be an alias.
    pub channel_model: String,
    /// The channel and key that store the conversation which the request continues.
    pub stored_at: Option<Arc<ConversationHome>>,
    /// The options that are forwarded only to channels which allow them.
    pub options: RequestOptions,
    /// The prices of its tokens.
    pub prices: TokenPrices,
    /// Whether an amount is held for the request: its account or key has a limit, and it is not free.
    pub needs_hold: bool,
    /// The body; if an amount is held, it contains a limit of output tokens.
    pub raw: Bytes,
    /// The summary of that body.
    pub summary: RequestSummary,
    /// The bounds of the tokens that it can cost.
    pub bounds: ChargeBounds,
}

impl PricedRequest {
    /// Checks the model of a request (in the catalogue, allowed for this key, served by some channel), freezes the price, and computes the highest
    /// cost of the request. The output tokens that are held are also its limit.
    ///
    /// # Errors
    /// 400 for an invalid option or a thread that no channel of the model supports, 403 or 404 for the model, the thread or the stored response, the
    /// endpoint's `no_channel_status` if no channel serves the model, 500 if a price is out of range.
    pub fn new(
        context: &ChatContext,
        reloadable: &Reloadable,
        request: &UnpricedRequest<'_>,
        mut summary: RequestSummary,
    ) -> Result<Self, ChatErrorResponse> {
        let (body, model) = (request.body, request.model);
        let size = body.len();
        let channel_model = check_model(reloadable, request)?;
        let user_id = request.caller.map_or("", |caller| &caller.key.user_id);
        let stored = &context.stored_conversations;
        let stored_at = stored.find(user_id, &summary, &reloadable.routing, &channel_model)?;

        let default_max_tokens = context.settings.default_max_tokens;
        let price = reloadable.prices.chat(reloadable.catalogue.names(model));
        let format = request.endpoint.format.name();
        let find = || RequestOptions::find(format, &summary, body, request.headers, price);
        let options = large_work::run_in_place(size, find)?;
        let (prices, parts) = options.prices(price)?;
        let needs_hold = request.has_limit && !(prices.is_free() && parts.is_free());
        let has_cap = summary.max_tokens.is_some();
        let mut raw = body.clone();
        if needs_hold && !has_cap {
            let endpoint = request.endpoint;
            let limit = || limit_output(endpoint, raw, &mut summary, default_max_tokens);
            raw = large_work::run_in_place(size, limit);
        }
        let format = request.endpoint.format;
        let stored_tokens = stored_at.as_ref().map_or(0, |home| home.tokens);
        let measure = || ChargeBounds::new(format, &summary, &raw, default_max_tokens, needs_hold);
        let bounds = large_work::run_in_place(size, measure)
            .with_stored_tokens(stored_tokens)
            .with_client_cap(has_cap)
            .with_parts(parts, options.has_priced_tools());
        Ok(Self {
            channel_model,
            stored_at,
            options,
            prices,
            needs_hold,
            raw,
            summary,
            bounds,
        })
    }

    /// The tokens that are held, and the cost of them and of the parts that are charged separately.
    ///
    /// # Errors
    /// 500 if the cost is out of range: the configuration is wrong.
    pub fn held(&self) -> Result<(TokenCounts, Amount), ApiError> {
        if !self.needs_hold {
            return Ok((TokenCounts::default(), Amount::ZERO));
        }
        let tokens = self.bounds.held_tokens(&self.prices);
        let parts = self.bounds.held_parts(&tokens, &self.prices);
        let cost = self.prices.cost(&tokens).zip(parts);
        let cost = cost.and_then(|(tokens, parts)| tokens.nanos().checked_add(parts.nanos()));
        let cost = cost.map(Amount::from_nanos).filter(|c| *c <= money::MAX);
        Ok((tokens, cost.ok_or_else(ApiError::internal)?))
    }
}

/// Checks that the caller may use the model and that some channel serves it. Returns the name that channels use for it.
fn check_model(
    reloadable: &Reloadable,
    request: &UnpricedRequest<'_>,
) -> Result<String, ChatErrorResponse> {
    let (model, routing) = (request.model, &reloadable.routing);
    let known = reloadable.catalogue.check_chat_model(model);
    known.map_err(ChatErrorResponse::invalid_model)?;
    let names = reloadable.catalogue.names(model);
    if let Some(caller) = request.caller {
        caller.check_may_use(names)?;
    }
    let channel_model = routing.name_of(names);
    if !routing.serves_chat(channel_model) {
        return Err(ChatErrorResponse::no_channel(model));
    }
    Ok(channel_model.to_owned())
}

/// Adds a limit of output tokens to a request that has none: `default_max_tokens` plus the budget for thinking. Returns the new body, or the same one
/// if it is no JSON object.
fn limit_output(
    endpoint: Endpoint,
    raw: Bytes,
    summary: &mut RequestSummary,
    default_max_tokens: u64,
) -> Bytes {
    let cap = default_max_tokens.saturating_add(summary.thinking_budget.unwrap_or(0));
    let capped = endpoint.format.add_output_cap(&raw, summary, cap);
    capped.unwrap_or(raw)
}
