// The list of tasks.
import { html } from "../lib/ui.js";
import { t } from "../lib/i18n.js";
import { base } from "../lib/router.js";
import { between, duration, money } from "../lib/format.js";
import { Badge, ObjectLink, PageHead, Time } from "../lib/elements.js";
import { List } from "../lib/list.js";

export const TASK_STATES = ["submitted", "in_progress", "completed", "failed", "cancelled"];

/** The filters of tasks. */
export const taskFilters = () => [
  { name: "state", label: t("State"), options: TASK_STATES },
  { name: "kind", label: t("Kind"), options: ["image", "video", "speech"] },
  { name: "model", label: t("Model") }, { name: "channel", label: t("Channel") }, { name: "user_id", label: t("User id") },
  { name: "key_id", label: t("Key id") }, { name: "error_code", label: t("Error code") }, { name: "provider_job_id", label: t("Provider job id") },
];

/** The text of an empty list of tasks. */
export const noTasks = () => html`<p>${t("No tasks in this period. Submit one in the playground, or connect a client.")}</p>
  <a class="button" href=${`${base}/playground`}>${t("Open the playground")}</a> <a class="button" href=${`${base}/connect`}>${t("Connect a client")}</a>`;

export function Tasks() {
  const columns = [
    { label: t("Task"), cell: (row) => html`<${ObjectLink} type="task" id=${row.id} />` },
    { label: t("State"), cell: (row) => html`<${Badge} of=${row.state} />${row.error_code ? html` <span class="muted">${row.error_code}</span>` : ""}` },
    { label: t("Model"), cell: (row) => row.model },
    { label: t("User"), cell: (row) => html`<${ObjectLink} type="user" id=${row.user_id} />` },
    { label: t("Channel"), cell: (row) => html`<${ObjectLink} type="channel" id=${row.channel} />` },
    { label: t("Cost"), number: true, cell: (row) => money(row.cost) },
    { label: t("Duration"), number: true, cell: (row) => duration(between(row.created_at, row.ended_at)) },
    { label: t("Submitted"), cell: (row) => html`<${Time} at=${row.created_at} />` },
  ];
  return html`<${PageHead} title=${t("Tasks")}>${t("Images, videos and speech that clients have submitted.")}<//>
    <${List} path="/tasks" label=${t("Tasks")} columns=${columns} filters=${taskFilters()} timed live="task" empty=${noTasks()} />`;
}
