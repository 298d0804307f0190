//! The registry of providers: one [`ProviderEntry`] per channel kind.

use crate::channel::{self, Channel};
use crate::provider::ProviderEntry;
use crate::{anthropic, ark, dashscope, fal, gemini, kling, openai, replicate, xai};

/// The channel kinds of this crate. The program adds the sandbox's (`tollgate_sandbox::PROVIDERS`).
pub static PROVIDERS: &[ProviderEntry] = &[
    ProviderEntry {
        kind: "anthropic",
        trace_names: ["anthropic"; 2],
        environment: Some(&anthropic::ENVIRONMENT),
        check: channel::no_options,
        base_url: |channel| base_url(channel, anthropic::BASE_URL),
        field_support: &[],
        open: anthropic::open,
    },
    ProviderEntry {
        kind: "ark",
        trace_names: ["ark"; 2],
        environment: Some(&ark::ENVIRONMENT),
        check: channel::no_options,
        base_url: |channel| base_url(channel, ark::BASE_URL),
        field_support: ark::FIELD_SUPPORT,
        open: ark::open,
    },
    ProviderEntry {
        kind: "dashscope",
        trace_names: ["dashscope"; 2],
        environment: Some(&dashscope::ENVIRONMENT),
        check: dashscope::check,
        base_url: |channel| base_url(channel, dashscope::BASE_URL),
        field_support: dashscope::FIELD_SUPPORT,
        open: dashscope::open,
    },
    ProviderEntry {
        kind: "fal",
        trace_names: ["fal"; 2],
        environment: Some(&fal::ENVIRONMENT),
        check: fal::check,
        base_url: |channel| base_url(channel, fal::BASE_URL),
        // The operator configures the supported fields.
        field_support: &[],
        open: fal::open,
    },
    ProviderEntry {
        kind: "gemini",
        trace_names: ["gcp.gen_ai"; 2],
        environment: Some(&gemini::ENVIRONMENT),
        check: gemini::check,
        base_url: gemini::base_url,
        field_support: gemini::FIELD_SUPPORT,
        open: gemini::open,
    },
    ProviderEntry {
        kind: "kling",
        trace_names: ["kling"; 2],
        environment: Some(&kling::ENVIRONMENT),
        check: kling::check,
        base_url: |channel| base_url(channel, kling::BASE_URL),
        field_support: kling::FIELD_SUPPORT,
        open: kling::open,
    },
    ProviderEntry {
        kind: "openai",
        trace_names: ["openai"; 2],
        environment: Some(&openai::ENVIRONMENT),
        check: openai::check,
        base_url: |channel| base_url(channel, openai::BASE_URL),
        field_support: openai::FIELD_SUPPORT,
        open: openai::open,
    },
    ProviderEntry {
        kind: "replicate",
        trace_names: ["replicate"; 2],
        environment: Some(&replicate::ENVIRONMENT),
        check: replicate::check,
        base_url: |channel| base_url(channel, replicate::BASE_URL),
        // The operator configures the supported fields.
        field_support: &[],
        open: replicate::open,
    },
    ProviderEntry {
        kind: "xai",
        trace_names: ["xai", "x_ai"],
        environment: Some(&xai::ENVIRONMENT),
        check: xai::check,
        base_url: |channel| base_url(channel, xai::BASE_URL),
        field_support: xai::FIELD_SUPPORT,
        open: xai::open,
    },
];

fn base_url(channel: &Channel, default: &str) -> Option<String> {
    let configured = channel.base_url.as_deref();
    Some(configured.unwrap_or(default).to_owned())
}
