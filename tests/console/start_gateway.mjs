// Starts and stops the gateway under test.
import { spawn } from "node:child_process";
import { once } from "node:events";

/** Starts the gateway on an empty folder, with its tollgate.toml if there is one; resolves with its address, the first sign-in code and `stop`. */
export function startGateway(folder) {
  const child = spawn(process.env.TOLLGATE, ["serve", "--listen", "127.0.0.1:0", "--data-dir", folder, "--no-demo"], { cwd: folder, stdio: ["ignore", "pipe", "pipe"] });
  // Resolves when the gateway has exited: until then it may write to its folder.
  const stop = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, "exit");
    child.kill("SIGKILL");
    await ended;
  };
  return new Promise((done, failed) => {
    let text = "";
    const read = (chunk) => {
      text += chunk;
      const url = /listening on (http:\S+)/.exec(text)?.[1];
      const code = /first sign-in: \S+#code=(\S+)/.exec(text)?.[1];
      if (url && code) done({ url, code, stop });
    };
    child.stdout.on("data", read);
    child.stderr.on("data", read);
    child.on("exit", (status) => failed(new Error(`the gateway ended with ${status}: ${text}`)));
  });
}
