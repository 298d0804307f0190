// Dialogs and short messages above the page. A dialog is the browser's `dialog` element: focus stays inside, Escape closes it.
import { html, signal, useEffect, useRef } from "./ui.js";
import { t } from "./i18n.js";

const dialogs = signal(/** @type {{ id: number, title: string, draw: (close: (value?: any) => void) => any, done: (value: any) => void }[]} */ ([]));
const toasts = signal(/** @type {{ id: number, text: string }[]} */ ([]));
let lastId = 0;

/**
 * Opens a dialog; the promise resolves to the argument of `close` (`undefined` if the dialog was dismissed).
 * @param {string} title
 * @param {(close: (value?: any) => void) => any} draw
 * @returns {Promise<any>}
 */
export function openDialog(title, draw) {
  return new Promise((done) => {
    dialogs.value = [...dialogs.value, { id: ++lastId, title, draw, done }];
  });
}

/** Shows a short message for five seconds. */
export function toast(/** @type {string} */ text) {
  const id = ++lastId;
  toasts.value = [...toasts.value, { id, text }];
  setTimeout(() => (toasts.value = toasts.value.filter((shown) => shown.id !== id)), 5000);
}

/** Requests confirmation of an action that cannot be undone. @returns {Promise<boolean>} */
export async function confirm(/** @type {string} */ message, /** @type {string} */ action) {
  const draw = (close) => html`<p>${message}</p>
    <div class="form-actions">
      <button type="button" class="danger" onClick=${() => close(true)}>${action}</button>
      <button type="button" class="quiet" onClick=${() => close(false)}>${t("Back")}</button>
    </div>`;
  return (await openDialog(action, draw)) === true;
}

function Dialog({ id, title, draw, done }) {
  const element = useRef(null);
  useEffect(() => element.current?.showModal(), []);
  const close = (value) => {
    dialogs.value = dialogs.value.filter((dialog) => dialog.id !== id);
    done(value);
  };
  const cancel = (event) => {
    event.preventDefault();
    close();
  };
  return html`<dialog ref=${element} aria-labelledby=${`dialog-${id}`} onCancel=${cancel}>
    <header>
      <h2 id=${`dialog-${id}`}>${title}</h2>
      <button type="button" class="quiet" aria-label=${t("Close")} onClick=${() => close()}>✕</button>
    </header>
    ${draw(close)}
  </dialog>`;
}

/** All open dialogs and messages. */
export function Overlays() {
  return html`${dialogs.value.map((dialog) => html`<${Dialog} key=${dialog.id} ...${dialog} />`)}
    <div class="toasts" role="status" aria-live="polite">${toasts.value.map(({ id, text }) => html`<p key=${id}>${text}</p>`)}</div>`;
}
