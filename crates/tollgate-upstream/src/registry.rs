//! The registry of providers: one [`ProviderEntry`] per channel kind.

use crate::channel;
use crate::provider::ProviderEntry;
use crate::{anthropic, ark, dashscope, fal, gemini, kling, openai, replicate, xai};

/// The channel kinds of this crate. The server adds the sandbox's (`tollgate_sandbox::PROVIDER`).
pub static PROVIDERS: &[ProviderEntry] = &[
    ProviderEntry {
        kind: "anthropic",
        check: channel::no_options,
        field_support: &[],
        open: anthropic::open,
    },
    ProviderEntry {
        kind: "ark",
        check: channel::no_options,
        field_support: ark::FIELD_SUPPORT,
        open: ark::open,
    },
    ProviderEntry {
        kind: "dashscope",
        check: dashscope::check,
        field_support: dashscope::FIELD_SUPPORT,
        open: dashscope::open,
    },
    ProviderEntry {
        kind: "fal",
        check: fal::check,
        // The supported fields are configured.
        field_support: &[],
        open: fal::open,
    },
    ProviderEntry {
        kind: "gemini",
        check: gemini::check,
        field_support: gemini::FIELD_SUPPORT,
        open: gemini::open,
    },
    ProviderEntry {
        kind: "kling",
        check: kling::check,
        field_support: kling::FIELD_SUPPORT,
        open: kling::open,
    },
    ProviderEntry {
        kind: "openai",
        check: openai::check,
        field_support: openai::FIELD_SUPPORT,
        open: openai::open,
    },
    ProviderEntry {
        kind: "replicate",
        check: replicate::check,
        // The supported fields are configured.
        field_support: &[],
        open: replicate::open,
    },
    ProviderEntry {
        kind: "xai",
        check: xai::check,
        field_support: xai::FIELD_SUPPORT,
        open: xai::open,
    },
];
