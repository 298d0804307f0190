//! The service tiers of OpenAI, which both of its formats have.

/// The values of `service_tier`.
pub(crate) const SERVICE_TIERS: [&str; 6] =
    ["auto", "default", "flex", "scale", "priority", "fast"];
