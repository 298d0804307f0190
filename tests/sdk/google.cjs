// The google-genai SDK for JavaScript: generate-content.
"use strict";

const { GoogleGenAI } = require("@google/genai");
const { assert, site, SANDBOX, WEATHER, TOOLS, say, breaks, checkEcho, checkCalls, once, eachModel, main } = require("./common.cjs");

const connect = (apiKey) => new GoogleGenAI({ apiKey, httpOptions: { baseUrl: `${site.url}/gemini` } });
const client = connect(site.key);
const tools = [{ functionDeclarations: [{ name: "get_weather", description: "The weather", parametersJsonSchema: WEATHER }] }];

async function chunksOf(stream) {
  const chunks = [];
  for await (const chunk of await stream) chunks.push(chunk);
  return chunks;
}

once("models", async () => {
  const names = [];
  for await (const model of await client.models.list()) names.push(model.name);
  assert.ok(names.includes(`models/${SANDBOX}`));
  assert.equal((await client.models.get({ model: SANDBOX })).name, `models/${SANDBOX}`);
});

eachModel("plain", async (model) => {
  const reply = await client.models.generateContent({ model, contents: say("hello") });
  checkEcho(reply.text);
  assert.equal(reply.candidates[0].finishReason, "STOP");
  assert.ok(reply.usageMetadata.totalTokenCount > 0);
});

eachModel("stream", async (model) => {
  const chunks = await chunksOf(client.models.generateContentStream({ model, contents: say("hello") }));
  checkEcho(chunks.map((chunk) => chunk.text ?? "").join(""));
  assert.equal(chunks.at(-1).candidates[0].finishReason, "STOP");
});

// The SDK's own history drops a turn whose last chunk has no part.
eachModel("chats", async (model) => {
  const chat = client.chats.create({ model });
  await chunksOf(chat.sendMessageStream({ message: say("first") }));
  checkEcho((await chat.sendMessage({ message: say("second") })).text, "second");
  assert.equal(chat.getHistory(true).filter((content) => content.role === "user").length, 2);
});

eachModel("tools", async (model) => {
  const contents = [{ role: "user", parts: [{ text: TOOLS }] }];
  const chunks = await chunksOf(client.models.generateContentStream({ model, contents, config: { tools } }));
  const parts = chunks.flatMap((chunk) => chunk.candidates[0].content?.parts ?? []);
  const calls = parts.map((part) => part.functionCall).filter(Boolean);
  checkCalls(model, calls.map((call) => [call.name, call.args]));
  const functionResponses = calls.map(({ id, name }, n) => ({ functionResponse: { id, name, response: { output: `sunny ${n}` } } }));
  contents.push({ role: "model", parts }, { role: "user", parts: functionResponses });
  assert.match((await client.models.generateContent({ model, contents, config: { tools } })).text, /sunny 1/);
});

eachModel("breaks off", async (model) => {
  await assert.rejects(chunksOf(client.models.generateContentStream({ model, contents: breaks(model) })));
});

once("errors", async () => {
  const generate = (client, model, contents) => client.models.generateContent({ model, contents });
  await assert.rejects(generate(connect("sk-wrong"), SANDBOX, "hello"), { status: 401 });
  await assert.rejects(generate(client, "no-such-model", "hello"), { status: 404 });
  await assert.rejects(generate(client, SANDBOX, "[[sandbox:fail]]"), { status: 502 });
});

main("google-genai for JavaScript");
