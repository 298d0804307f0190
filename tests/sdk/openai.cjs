// The openai SDK for JavaScript: chat completions and responses.
"use strict";

const OpenAI = require("openai");
const { assert, site, SANDBOX, WEATHER, TOOLS, say, breaks, checkEcho, checkCalls, once, eachModel, main } = require("./common.cjs");

const client = new OpenAI({ baseURL: `${site.url}/openai/v1`, apiKey: site.key, maxRetries: 0 });
const described = { name: "get_weather", description: "The weather", parameters: WEATHER, strict: true };
const request = (model, text, more) => ({ model, messages: [{ role: "user", content: text }], ...more });

once("models", async () => {
  const ids = [];
  for await (const model of client.models.list()) ids.push(model.id);
  assert.ok(ids.includes(SANDBOX));
  assert.equal((await client.models.retrieve(SANDBOX)).id, SANDBOX);
});

eachModel("plain", async (model) => {
  const reply = await client.chat.completions.create(request(model, say("hello")));
  checkEcho(reply.choices[0].message.content);
  assert.equal(reply.usage.total_tokens, reply.usage.prompt_tokens + reply.usage.completion_tokens);
});

eachModel("stream", async (model) => {
  const final = await client.chat.completions.stream(request(model, say("hello"))).finalChatCompletion();
  checkEcho(final.choices[0].message.content);
  assert.equal(final.choices[0].finish_reason, "stop");
});

eachModel("tools", async (model) => {
  const tools = [{ type: "function", function: described }];
  const final = await client.chat.completions.stream(request(model, TOOLS, { tools })).finalChatCompletion();
  const calls = final.choices[0].message.tool_calls;
  checkCalls(model, calls.map((call) => [call.function.name, JSON.parse(call.function.arguments)]));
  const message = { role: "assistant", content: null, reasoning_content: final.choices[0].message.reasoning_content };
  message.tool_calls = calls.map(({ id, type, function: { name, arguments: input } }) => ({ id, type, function: { name, arguments: input } }));
  const results = calls.map((call, n) => ({ role: "tool", tool_call_id: call.id, content: `sunny ${n}` }));
  const messages = [{ role: "user", content: TOOLS }, message, ...results];
  const reply = await client.chat.completions.create({ model, messages, tools });
  assert.match(reply.choices[0].message.content, /sunny 1/);
});

eachModel("breaks off", async (model) => {
  const stream = client.chat.completions.stream(request(model, breaks(model)));
  await assert.rejects(stream.finalChatCompletion(), OpenAI.APIError);
});

eachModel("responses", async (model) => {
  const reply = await client.responses.create({ model, input: say("hello"), store: false });
  checkEcho(reply.output_text);
  const stream = client.responses.stream({ model, input: say("hello"), store: false });
  checkEcho((await stream.finalResponse()).output_text);
});

eachModel("responses: tools", async (model) => {
  const tools = [{ type: "function", ...described }];
  const final = await client.responses.stream({ model, input: TOOLS, tools, store: false }).finalResponse();
  const calls = final.output.filter((item) => item.type === "function_call");
  checkCalls(model, calls.map((call) => [call.name, JSON.parse(call.arguments)]));
});

once("errors", async () => {
  const wrong = client.withOptions({ apiKey: "sk-wrong" });
  await assert.rejects(wrong.chat.completions.create(request(SANDBOX, "hello")), OpenAI.AuthenticationError);
  await assert.rejects(client.chat.completions.create(request("no-such-model", "hello")), OpenAI.NotFoundError);
  await assert.rejects(client.chat.completions.create(request(SANDBOX, "[[sandbox:fail]]")), { status: 502 });
});

main("openai for JavaScript");
