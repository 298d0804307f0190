-- What is charged beside the five kinds of tokens: tools of the provider by their calls, cache writes of an hour, audio and images.
-- parts is a JSON list of [name, units, price in billionths, units of the price], parts_cost its sum in billionths, which is a
-- part of settled; of an open chat, it is the part of held.
ALTER TABLE chats ADD COLUMN parts_cost BIGINT NOT NULL DEFAULT 0;
ALTER TABLE chats ADD COLUMN parts TEXT NOT NULL DEFAULT '';
