//! Names and limits of the Responses format.

use crate::hub::Role;

/// The format's name in [`ExtraFields`](crate::hub::ExtraFields), [`crate::hub::Request::client_format`] and
/// [`crate::hub::PartKind::FormatSpecific`].
pub(super) const NAME: &str = "responses";

/// Part of every item id that the gateway generates: `msg_tg1_SEED_0`. No upstream stores such an item, so the id is never sent upstream.
pub(super) const GENERATED_ID_MARK: &str = "_tg1_";

/// Part of every id and wrapped signature that the gateway generates. A request without it can be
/// forwarded unchanged.
pub(super) const GATEWAY_MARK: &[u8] = b"tg1";

/// Media types that `input_image` accepts.
pub(super) const IMAGE_TYPES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];

/// The largest image in a request, in bytes.
pub(super) const MAX_IMAGE_BYTES: u64 = 20 * 1024 * 1024;

/// `include` value for encrypted reasoning, which responses of the gateway always have.
pub(super) const INCLUDE_REASONING: &str = "reasoning.encrypted_content";
/// `include` value for log probabilities, which the hub has a field for.
pub(super) const INCLUDE_LOGPROBS: &str = "message.output_text.logprobs";

/// Member of the web search tool that chat-completions has too.
pub(super) const SEARCH_CONTEXT_SIZE: &str = "search_context_size";

/// The `type` of a text part in a message of `role`.
pub(super) fn text_part_type(role: Role) -> &'static str {
    match role {
        Role::Assistant => "output_text",
        Role::System | Role::User => "input_text",
    }
}

/// The domains that a search is limited to: in messages a member of the tool, in this format a member of its `filters`.
pub(super) const ALLOWED_DOMAINS: &str = "allowed_domains";
