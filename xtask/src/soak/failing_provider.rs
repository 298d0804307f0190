//! A provider with higher priority than the sandbox that misbehaves: its scenario changes several times a second.

use std::time::{Duration, Instant};

use tokio::time::sleep;
use tollgate_fakes::{Fake, Options, Provider, Scenario};

use crate::rng::Rng;

/// How it responds to chats and images. The outcome of an image that is not disturbed is determined by the sandbox's directives.
const SCENARIOS: &[&str] = &[
    "status=500",
    "status=503",
    "rate-limited",
    "quota-exhausted",
    "model-missing",
    "overloaded",
    "html-200",
    "empty-body",
    "truncated-json",
    "invalid-utf8",
    "huge-headers",
    "huge-event=8000000",
    "reset-before-head",
    "reset-mid-body",
    "reset-after-accept",
    "no-end",
    "error-event",
    "error-first",
    "stall",
    "endless",
    "pings",
    "hang",
    "close-without-response",
];

/// Starts the provider.
pub(super) async fn start() -> Result<Fake, String> {
    let started = tollgate_fakes::start(Provider::OpenAi, Options::default()).await;
    started.map_err(|e| format!("cannot start a provider: {e}"))
}

/// The channels of a gateway: the provider at `url` with a higher priority than the sandbox.
pub(super) fn channels(url: &str) -> String {
    format!(
        "[[channel]]\nname = \"bad\"\nkind = \"openai\"\nbase_url = \"{url}\"\napi_keys = [\"sk-bad\"]\npriority = 0\n\
         models = [\"gpt-5\", \"gpt-image-1-official\"]\nfirst_byte_s = 2\nidle_s = 2\n\
         [[channel]]\nname = \"sandbox\"\nkind = \"sandbox\"\npriority = 1\n"
    )
}

/// Changes the provider's scenario again and again until `until`.
pub(super) async fn change_scenarios(provider: Fake, mut rng: Rng, until: Instant) {
    while Instant::now() < until {
        let scenario: Result<Scenario, _> = rng.pick(SCENARIOS).parse();
        if let Ok(scenario) = scenario {
            provider.set(scenario);
        }
        // Cleared, because the provider would keep every request in memory.
        provider.clear();
        sleep(Duration::from_millis(100 + rng.below(500))).await;
    }
    provider.set(Scenario::Status(503, None));
    std::future::pending().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_scenario_is_one_of_the_fakes() {
        for name in SCENARIOS {
            assert!(name.parse::<Scenario>().is_ok(), "{name}");
        }
    }
}
