// Shared by the scripts of the JavaScript SDKs: the gateway under test, its models, a runner. The cases are a selection of the Python ones: the SDKs
// of one vendor differ in how they read replies and streams.
"use strict";

const assert = require("node:assert/strict");

const site = JSON.parse(process.env.TOLLGATE_SDK_SITE);
const SANDBOX = "sdk-sandbox";
const MODELS = ["openai-chat", "deepseek", "openai-responses", "anthropic", "anthropic-next", "gemini", "gemini-next"];
const WEATHER = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};
const TOOLS = "call tool get_weather twice [[sandbox:tool=get_weather]][[sandbox:tool=get_weather]]";

const say = (text) => `${text}[[sandbox:say=echo: ${text}]]`;
const breaks = (model) =>
  "one two three four five six seven " + (model === SANDBOX ? "[[sandbox:cut=2]]" : "[[fake:error-event]]");

function checkEcho(text, expected = "hello") {
  assert.ok(text?.startsWith(`echo: ${expected}`), text);
}

// `calls` are pairs of a name and arguments.
function checkCalls(model, calls) {
  assert.equal(calls.length, 2);
  for (const [name, input] of calls) {
    assert.equal(name, "get_weather");
    // The sandbox calls tools without arguments.
    if (model !== SANDBOX) assert.match(input.city, /^city/);
  }
}

const cases = [];
const once = (name, run) => cases.push([name, run]);
function eachModel(name, run) {
  for (const model of [SANDBOX, ...MODELS.map((model) => `sdk-${model}`)]) once(`${name}[${model}]`, () => run(model));
}

async function main(name) {
  const words = process.argv.slice(2);
  const chosen = cases.filter(([name]) => !words.length || words.some((word) => name.includes(word)));
  let failed = 0;
  for (const [title, run] of chosen) {
    try {
      await run();
    } catch (error) {
      failed += 1;
      console.log(`FAILED ${name} ${title}: ${error.stack}`);
    }
  }
  console.log(`${name}: ${chosen.length - failed} of ${chosen.length} cases passed`);
  process.exit(failed || !chosen.length ? 1 : 0);
}

module.exports = { assert, site, SANDBOX, WEATHER, TOOLS, say, breaks, checkEcho, checkCalls, once, eachModel, main };
