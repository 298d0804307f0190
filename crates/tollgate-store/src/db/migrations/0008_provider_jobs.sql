-- Tasks are found by the provider's name for their work.
CREATE INDEX attempts_by_ticket ON attempts (ticket) WHERE ticket IS NOT NULL;
