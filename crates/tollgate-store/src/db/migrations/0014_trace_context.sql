-- The `traceparent` of the request that submitted the task: the spans of its work belong to that trace. Null if it was in none.
ALTER TABLE tasks ADD COLUMN trace_context TEXT;
