// The form for a job: only the inputs of the chosen kinds are shown, and what is typed is checked by the server as one
// types. What is typed is kept in this tab, so that a lost connection or a restart of the server loses nothing.
const form = document.querySelector("[data-job-form]");
const panel = document.getElementById("check");
const draft = `otd:draft:${location.pathname}`;

// Which inputs are shown

const choose = () => {
  for (const part of form.querySelectorAll("[data-when]")) {
    const [name, value] = part.dataset.when.split("=");
    part.hidden = form.elements[name].value !== value;
  }
};

// What is wrong

const nearest = (path) => {
  for (let at = path; at; at = at.replace(/(\.|\[)[^.[]*$/, "")) {
    const found = [...form.querySelectorAll(`[data-path="${CSS.escape(at)}"]`)].find((field) => !field.closest("[hidden]"));
    if (found) return found;
    if (!/[.[]/.test(at)) return null;
  }
  return null;
};

let touched = new Set(); // an empty field is not called wrong before anybody has been there
const mark = (all) => {
  for (const field of form.querySelectorAll(".field[data-path]")) {
    field.classList.remove("has-error");
    const told = field.querySelector(".wrong");
    if (told) { told.hidden = true; told.textContent = ""; }
    field.querySelector("[aria-invalid]")?.removeAttribute("aria-invalid");
  }
  for (const problem of panel.querySelectorAll("[data-problems] li")) {
    const field = nearest(problem.dataset.path);
    const told = field?.querySelector(".wrong");
    const input = field?.querySelector("input, select, textarea");
    if (!told || !input || (!all && !touched.has(input.name) && !input.value)) continue;
    field.classList.add("has-error");
    told.hidden = false;
    told.textContent = problem.textContent;
    input.setAttribute("aria-invalid", "true");
    field.closest("details")?.setAttribute("open", "");
  }
};

// On a narrow screen the panel is far below: a line at the top says the most important of it, and leads there

const glance = form?.querySelector(".glance");
const peek = () => {
  const wrong = panel.querySelectorAll("[data-problems] li, :scope > .wrong").length;
  const first = panel.querySelector(".fires tbody time");
  const said = [panel.querySelector(".meaning")?.textContent ?? panel.querySelector(".wrong")?.textContent ?? ""];
  if (first) said.push(`next ${first.textContent}`);
  else if (wrong) said.push(wrong === 1 ? "1 field to fill in or correct" : `${wrong} fields to fill in or correct`);
  glance.textContent = said.join(" · ");
  glance.hidden = false;
};

// Checking

const ENDED = { 401: "Your session has ended: log in in another tab. What you type is kept in this one.", 403: "Your key can only read, so nothing is checked." };
let waiting = 0, asked = 0;
const check = async () => {
  const mine = ++asked;
  const data = new URLSearchParams(new FormData(form));
  data.set("act", "check");
  try {
    const answer = await fetch(form.action, { method: "POST", body: data, headers: { "x-onthedot-live": "1" }, redirect: "manual" });
    if (mine !== asked) return;
    if (!answer.ok) throw answer.status;
    panel.innerHTML = await answer.text();
    for (const other of panel.querySelectorAll("[data-elsewhere]")) other.remove(); // of the whole page, see live.js
    mark(false);
    document.dispatchEvent(new CustomEvent("otd:patched"));
    peek();
  } catch (status) {
    if (mine !== asked) return;
    const said = document.createElement("p");
    said.className = "wrong";
    said.textContent = ENDED[status] ?? "Not connected: what you type is kept in this tab, and is checked when the server is back.";
    panel.replaceChildren(said);
    peek();
    if (status !== 403) waiting = setTimeout(check, 3000);
  }
};
const soon = () => { clearTimeout(waiting); waiting = setTimeout(check, 300); };

// Keeping what was typed

const keep = (sent) => {
  const typed = [...new FormData(form)].filter(([name]) => !["base", "version", "mode"].includes(name));
  sessionStorage.setItem(draft, JSON.stringify({ version: form.elements.version.value, mode: form.elements.mode.value, typed, sent: sent === true }));
};
const restore = () => {
  const kept = JSON.parse(sessionStorage.getItem(draft) || "null");
  if (!kept || kept.version !== form.elements.version.value || kept.mode !== form.elements.mode.value) return;
  for (const field of form.elements) {
    if (!field.name || ["base", "version", "mode", "act"].includes(field.name)) continue;
    const values = kept.typed.filter(([name]) => name === field.name).map(([, value]) => value);
    if (field.type === "checkbox" || field.type === "radio") field.checked = values.includes(field.value);
    else if (values.length) field.value = values[values.length - 1];
  }
};

if (form && panel) {
  const refused = "refused" in form.dataset; // what is wrong is told already, and stays until it is mended
  if (!refused && !document.querySelector(".conflict")) restore();
  choose();
  for (const area of form.querySelectorAll("textarea")) area.rows = Math.max(area.rows, Math.min(20, area.value.split("\n").length));
  form.addEventListener("input", (event) => { touched.add(event.target.name); choose(); keep(); soon(); });
  form.addEventListener("focusout", (event) => { if (event.target.name) touched.add(event.target.name); });
  form.addEventListener("submit", (event) => {
    const act = event.submitter?.value;
    if (act === "json" || act === "form") sessionStorage.removeItem(draft);
    if (act === "save") keep(true);  // if nobody answers, it is still there
    if (act === "test") setTimeout(() => { delete form.dataset.sent; }, 0);
  });
  if (refused) {
    for (const field of form.elements) touched.add(field.name);
    mark(true);
    peek();
    const first = form.querySelector("[aria-invalid]");
    first?.focus({ preventScroll: true });
    first?.closest(".field").scrollIntoView({ block: innerWidth > 1000 ? "nearest" : "start" }); // below the line at the top
  } else check();
}
