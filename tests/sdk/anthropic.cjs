// The anthropic SDK for JavaScript: messages.
"use strict";

const { Anthropic } = require("@anthropic-ai/sdk");
const { assert, site, SANDBOX, WEATHER, TOOLS, say, breaks, checkEcho, checkCalls, once, eachModel, main } = require("./common.cjs");

const client = new Anthropic({ baseURL: `${site.url}/anthropic`, apiKey: site.key, maxRetries: 0 });
const tools = [{ name: "get_weather", description: "The weather", input_schema: WEATHER }];
const request = (model, text, more) => ({ model, max_tokens: 4000, messages: [{ role: "user", content: text }], ...more });
const textOf = (message) => message.content.filter((block) => block.type === "text").map((block) => block.text).join("");

once("models", async () => {
  const ids = [];
  for await (const model of client.models.list()) ids.push(model.id);
  assert.ok(ids.includes(SANDBOX));
  assert.equal((await client.models.retrieve(SANDBOX)).id, SANDBOX);
});

eachModel("plain", async (model) => {
  const message = await client.messages.create(request(model, say("hello")));
  checkEcho(textOf(message));
  assert.equal(message.stop_reason, "end_turn");
  assert.ok(message.usage.input_tokens > 0 && message.usage.output_tokens > 0);
});

eachModel("stream", async (model) => {
  const final = await client.messages.stream(request(model, say("hello"))).finalMessage();
  checkEcho(textOf(final));
  assert.equal(final.stop_reason, "end_turn");
});

eachModel("tools", async (model) => {
  const final = await client.messages.stream(request(model, TOOLS, { tools })).finalMessage();
  assert.equal(final.stop_reason, "tool_use");
  const calls = final.content.filter((block) => block.type === "tool_use");
  checkCalls(model, calls.map((call) => [call.name, call.input]));
  const results = calls.map((call, n) => ({ type: "tool_result", tool_use_id: call.id, content: `sunny ${n}` }));
  const messages = [
    { role: "user", content: TOOLS },
    { role: "assistant", content: final.content },
    { role: "user", content: results },
  ];
  assert.match(textOf(await client.messages.create(request(model, "", { messages, tools }))), /sunny 1/);
});

eachModel("breaks off", async (model) => {
  await assert.rejects(client.messages.stream(request(model, breaks(model))).finalMessage(), Anthropic.APIError);
});

once("errors", async () => {
  const wrong = client.withOptions({ apiKey: "sk-wrong" });
  await assert.rejects(wrong.messages.create(request(SANDBOX, "hello")), Anthropic.AuthenticationError);
  await assert.rejects(client.messages.create(request("no-such-model", "hello")), Anthropic.NotFoundError);
  await assert.rejects(client.messages.create(request(SANDBOX, "[[sandbox:fail]]")), { status: 502 });
  const counted = await client.messages.countTokens({ model: SANDBOX, messages: [{ role: "user", content: "hello" }] });
  assert.ok(counted.input_tokens > 0);
});

main("anthropic for JavaScript");
