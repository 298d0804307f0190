// Results of tasks as a grid of previews; each links to the page of its task.
import { html } from "../lib/ui.js";
import { t } from "../lib/i18n.js";
import { get } from "../lib/api.js";
import { money } from "../lib/format.js";
import { Badge, ObjectLink, PageHead, Time, useLoad } from "../lib/elements.js";
import { List } from "../lib/list.js";
import { filesOfRecord, Media } from "../lib/media.js";
import { noTasks, taskFilters } from "./tasks.js";

export function Gallery() {
  const filters = taskFilters().filter(({ name }) => ["kind", "model", "user_id", "channel"].includes(name));
  return html`<${PageHead} title=${t("Gallery")}>${t("Generated images, videos and speech. Files are shown until their links expire.")}<//>
    <${List} path="/tasks" csv=${false} fixed=${{ state: "completed", limit: 24 }} filters=${filters} timed live="task" empty=${noTasks()}
      draw=${(rows) => html`<div class="gallery">${rows.map((row) => html`<${Result} key=${row.id} task=${row} />`)}</div>`} />`;
}

/** One task with its first result. `path`: the prefix of the pages of tasks. */
export function Result({ task, path = "/tasks" }) {
  const { state } = useLoad((signal) => get(`${path}/${encodeURIComponent(task.id)}`, {}, signal), [task.id]);
  const details = state.value;
  const files = details ? (details.files?.length ? details.files : filesOfRecord(details.record ?? details, task.kind)) : [];
  const label = t("Result {n} of {model}", { n: 1, model: task.model });
  return html`<article aria-label=${`${task.model} ${task.id}`}>
    <div class="preview">${files[0] ? html`<${Media} file=${files[0]} label=${label} />` : html`<span class="muted">${state.value || state.error ? t("No file") : t("Loading…")}</span>`}</div>
    <div class="about">
      <${ObjectLink} type="task" id=${task.id} />
      <div class="row"><${Badge} of=${task.kind} /> <span>${task.model}</span></div>
      <div class="muted">${money(task.cost)} · <${Time} at=${task.created_at} />${files.length > 1 ? ` · ${t("{n} files", { n: files.length })}` : ""}</div>
    </div>
  </article>`;
}
