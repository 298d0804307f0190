// The colours: the system's choice until a person chooses, which is remembered under the name that the console uses too.
"use strict";
(() => {
  const NAME = "tollgate_theme";
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  try {
    const stored = localStorage.getItem(NAME);
    if (stored === "dark" || stored === "light") root.dataset.theme = stored;
  } catch { /* Without storage nothing is remembered. */ }
  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("site-theme");
    const show = () => { button.textContent = isDark() ? "Light" : "Dark"; };
    button.title = "Switch between dark and light";
    button.hidden = false;
    show();
    system.addEventListener("change", show);
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      try { localStorage.setItem(NAME, root.dataset.theme); } catch { /* See above. */ }
      show();
    });
  });
})();
