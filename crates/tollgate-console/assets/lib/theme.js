// Dark or light: the system's setting until the user chooses one.
import { signal } from "./ui.js";

const system = matchMedia("(prefers-color-scheme: dark)");
const stored = localStorage.getItem("tollgate_theme");

/** "dark" or "light". */
export const theme = signal(stored === "dark" || stored === "light" ? stored : system.matches ? "dark" : "light");

/** Changes the colours and remembers the choice. */
export function setTheme(/** @type {string} */ name) {
  theme.value = name;
  localStorage.setItem("tollgate_theme", name);
  applyTheme();
}

/** Gives the document the colours of the theme. */
export function applyTheme() {
  document.documentElement.dataset.theme = theme.value;
}

system.addEventListener("change", () => {
  if (localStorage.getItem("tollgate_theme")) return;
  theme.value = system.matches ? "dark" : "light";
  applyTheme();
});
