// The start of both sites: the operators' console and the users' portal.
import { html, render } from "./lib/ui.js";
import { language, setLanguage } from "./lib/i18n.js";
import { base, followLinks } from "./lib/router.js";
import { applyTheme } from "./lib/theme.js";

applyTheme();
setLanguage(language.value);
followLinks();
const { App } = base === "/portal" ? await import("./portal/app.js") : await import("./pages/app.js");
render(html`<${App} />`, /** @type {HTMLElement} */ (document.getElementById("app")));
