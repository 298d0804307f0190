// The libraries that every module uses to draw: Preact, its hooks, signals, and templates.
import { Component, Fragment, h, render } from "../vendor/preact.js";
import htm from "../vendor/htm.js";

export { useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/hooks.js";
export { computed, signal } from "../vendor/signals.js";
export { Component, Fragment, render };
export const html = htm.bind(h);
