// The English text of words of the API, such as states. All other English texts are in the pages.

/** @type {Record<string, string>} */
export const en = {
  in_progress: "in progress",
  cut: "interrupted",
  client_gone: "client disconnected",
  half_open: "half open",
  given_up: "given up",
  attempt_started: "attempt started",
  attempt_failed: "attempt failed",
  provider_job: "provider job",
  thousand_characters: "thousand characters",
  low_balance: "low balance",
  circuit_open: "circuit open",
  queue_age: "queue age",
  audit_violation: "audit violation",
  webhook_given_up: "webhook given up",
  per_image: "per image",
  per_second: "per second",
  per_video: "per video",
  per_thousand_characters: "per thousand characters",
  input_per_million: "per million input tokens",
  output_per_million: "per million output tokens",
  cached_input_per_million: "per million cached input tokens",
  cache_write_per_million: "per million cache-write tokens",
  reasoning_per_million: "per million reasoning tokens",
};
