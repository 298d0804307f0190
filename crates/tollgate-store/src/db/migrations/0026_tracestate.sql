-- The `tracestate` of the request that submitted the task, beside `trace_context`. Null if the caller sent none, or an older node took the request.
ALTER TABLE tasks ADD COLUMN trace_state TEXT;
