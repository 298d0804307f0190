// Coding agents without a terminal, with one call of a tool: the model calls the agent's shell, the agent runs the command and
// sends its output back, and the model's response, which quotes the output, ends the run. The models are those of the fake providers
// and the sandbox, which generate the call that the prompt names.
"use strict";

const assert = require("node:assert/strict");
const { spawn } = require("node:child_process");
const fs = require("node:fs");
const os = require("node:os");
const path = require("node:path");

const site = JSON.parse(process.env.TOLLGATE_SDK_SITE);
const programs = path.join(process.env.NODE_PATH, ".bin");
const LIMIT = 60_000;
const SANDBOX = "sdk-sandbox";
const CHANNELS = [SANDBOX, "sdk-openai-chat", "sdk-openai-responses", "sdk-anthropic-next", "sdk-gemini-next"];
// The command does not contain its output. gemini-cli rejects commands with substitutions.
const COMMAND = "expr 4100 + 142 | tee result.txt";
const OUTPUT = "4242";

const codexSettings = (model) => [
  `model="${model}"`,
  'model_provider="tollgate"',
  'model_providers.tollgate={name="Tollgate",base_url="' + site.url + '/openai/v1",env_key="TOLLGATE_KEY",wire_api="responses"}',
  "check_for_update_on_startup=false",
  "analytics.enabled=false",
];

// `own`: the model whose channel uses the agent's format; `other`: one that needs a translation.
// `prepare` writes files into the home and work folders and returns additional environment variables.
const AGENTS = {
  "claude-code": {
    own: "sdk-anthropic-next",
    other: "sdk-openai-chat",
    tool: "Bash",
    arguments: { command: COMMAND, description: "Makes a file" },
    start: (model, prompt) => ["claude", "-p", prompt, "--model", model, "--allowedTools", "Bash"],
    prepare: (model) => ({
      ANTHROPIC_BASE_URL: `${site.url}/anthropic`,
      ANTHROPIC_AUTH_TOKEN: site.key,
      ANTHROPIC_DEFAULT_HAIKU_MODEL: model,
      CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
      DISABLE_AUTOUPDATER: "1",
      DISABLE_TELEMETRY: "1",
    }),
  },
  codex: {
    own: "sdk-openai-responses",
    tool: "exec_command",
    arguments: { cmd: COMMAND },
    start: (model, prompt) => [
      ...["codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"],
      ...codexSettings(model).flatMap((setting) => ["-c", setting]),
      prompt,
    ],
    prepare: () => ({ TOLLGATE_KEY: site.key }),
  },
  "gemini-cli": {
    own: "sdk-gemini-next",
    tool: "run_shell_command",
    arguments: { command: COMMAND, description: "Makes a file" },
    start: (model, prompt) => ["gemini", "-m", model, "--yolo", "--skip-trust", "-p", prompt],
    prepare(_, home) {
      const settings = {
        general: { enableAutoUpdate: false, disableAutoUpdate: true },
        privacy: { usageStatisticsEnabled: false },
        telemetry: { enabled: false },
        security: { auth: { selectedType: "gemini-api-key" } },
      };
      fs.mkdirSync(path.join(home, ".gemini"));
      fs.writeFileSync(path.join(home, ".gemini/settings.json"), JSON.stringify(settings));
      return { GOOGLE_GEMINI_BASE_URL: `${site.url}/gemini`, GEMINI_API_KEY: site.key, GEMINI_CLI_NO_RELAUNCH: "true" };
    },
  },
  opencode: {
    own: "sdk-openai-chat",
    tool: "bash",
    arguments: { command: COMMAND, description: "Makes a file" },
    // opencode puts quotes around arguments with spaces, and joins arguments with a space.
    start: (model, prompt) => ["opencode", "run", "--auto", "--title", "test", "-m", `tollgate/${model}`, ...prompt.split(" ")],
    prepare(model, home, work) {
      const provider = {
        npm: "@ai-sdk/openai-compatible",
        options: { baseURL: `${site.url}/v1`, apiKey: site.key },
        models: { [model]: { name: model } },
      };
      const settings = { autoupdate: false, share: "disabled", provider: { tollgate: provider }, permission: { bash: "allow" } };
      fs.writeFileSync(path.join(work, "opencode.json"), JSON.stringify(settings));
      return { OPENCODE_DISABLE_AUTOUPDATE: "1", OPENCODE_DISABLE_MODELS_FETCH: "1", OPENCODE_DISABLE_LSP_DOWNLOAD: "1" };
    },
  },
};

// Runs a program with this environment, without our variables except PATH; resolves with its output.
function output([program, ...words], cwd, env) {
  return new Promise((resolve, reject) => {
    const options = { cwd, env, stdio: ["ignore", "pipe", "pipe"], timeout: LIMIT, killSignal: "SIGKILL" };
    const child = spawn(path.join(programs, program), words, options);
    let text = "";
    let errors = "";
    child.stdout.on("data", (data) => (text += data));
    child.stderr.on("data", (data) => (errors += data));
    child.on("error", reject);
    child.on("close", (code, signal) => {
      const both = `${text}\n--- stderr:\n${errors}`;
      code === 0 ? resolve(text) : reject(new Error(`ended with ${code ?? signal}: ${both}`));
    });
  });
}

async function runAgent(name, model) {
  const agent = AGENTS[name];
  const call = JSON.stringify(agent.arguments);
  const prompt =
    model === SANDBOX ? `Make the file. [[sandbox:tool=${agent.tool} ${call}]]` : `call tool ${agent.tool} with ${call}`;
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tollgate-agent-"));
  try {
    const [home, work] = [path.join(folder, "home"), path.join(folder, "work")];
    fs.mkdirSync(home);
    fs.mkdirSync(work);
    const local = { PATH: process.env.PATH, HOME: home, TMPDIR: folder, NO_PROXY: "127.0.0.1", no_proxy: "127.0.0.1", CI: "1" };
    // The agents cannot reach any other server.
    const offline = { HTTP_PROXY: "http://127.0.0.1:9", HTTPS_PROXY: "http://127.0.0.1:9" };
    const text = await output(agent.start(model, prompt), work, { ...local, ...offline, ...agent.prepare(model, home, work) });
    const result = path.join(work, "result.txt");
    assert.ok(fs.existsSync(result), `the tool was not run; the agent printed: ${text}`);
    assert.equal(fs.readFileSync(result, "utf8").trim(), OUTPUT);
    // The fakes quote the tool's result as they read it in their own format; the sandbox returns other text.
    if (model === SANDBOX) assert.ok(text.trim(), "the agent printed no text");
    else assert.match(text, new RegExp(`echo: [^]*${OUTPUT}`));
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

async function main() {
  const words = process.argv.slice(2);
  const all = process.env.TOLLGATE_SDK_AGENTS === "all";
  const pairs = Object.entries(AGENTS).flatMap(([name, { own, other }]) =>
    (all ? CHANNELS : [own, other].filter(Boolean)).map((model) => [name, model]),
  );
  const title = ([name, model]) => `${name}[${model}]`;
  const chosen = pairs.filter((pair) => !words.length || words.some((word) => title(pair).includes(word)));
  let failed = 0;
  for (const pair of chosen) {
    const began = Date.now();
    try {
      await runAgent(...pair);
      console.log(`agents ${title(pair)}: ${((Date.now() - began) / 1000).toFixed(1)} s`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED agents ${title(pair)}: ${error.stack}`);
    }
  }
  console.log(`agents: ${chosen.length - failed} of ${chosen.length} cases passed`);
  // A word may name cases that only other scripts have.
  process.exit(failed || (!chosen.length && !words.length) ? 1 : 0);
}

main();
