// Forms: filters work as one types and are kept in the address, questions open as dialogs, texts can be copied.
// Without this script all of it works by pages and buttons.

// Filters

const filters = document.querySelector("form[data-filters]");

const wanted = () => {
  const url = new URL(filters.action, location.href);
  const asked = new URLSearchParams(location.search);
  asked.delete("cursor");
  const data = new FormData(filters);
  for (const field of filters.elements) if (field.name) asked.delete(field.name);
  for (const [name, value] of data) if (value) asked.append(name, value);
  url.search = asked.toString();
  return url;
};
const apply = (push) => {
  const url = wanted();
  if (url.href === location.href) return;
  history[push ? "pushState" : "replaceState"](null, "", url);
  for (const field of filters.elements) if (field.nodeName === "SELECT") field.classList.toggle("chosen", field.value !== "");
  document.dispatchEvent(new CustomEvent("otd:refresh"));
};
if (filters && document.querySelector("[data-live]")) {
  let typing = 0;
  filters.addEventListener("submit", (event) => { event.preventDefault(); clearTimeout(typing); apply(false); });
  filters.addEventListener("input", (event) => {
    clearTimeout(typing);
    const wait = { search: 150, text: 150, "datetime-local": 600 }[event.target.type];
    if (wait) typing = setTimeout(() => apply(false), wait); else apply(true);
  });
  addEventListener("popstate", () => {
    const asked = new URLSearchParams(location.search);
    for (const field of filters.elements) {
      if (!field.name) continue;
      if (field.type === "checkbox") field.checked = asked.getAll(field.name).includes(field.value);
      else field.value = asked.get(field.name) || "";
    }
    document.dispatchEvent(new CustomEvent("otd:refresh"));
  });
}

// Dialogs

const open = async (link) => {
  const answer = await fetch(link.href, { redirect: "manual" });
  if (!answer.ok) throw new Error(String(answer.status));
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const content = page.querySelector("[data-dialog-content]");
  if (!content) throw new Error("no dialog");
  const dialog = document.createElement("dialog");
  dialog.className = "card";
  dialog.append(document.importNode(content, true));
  document.body.append(dialog);
  const form = dialog.querySelector("form");
  restore(form);
  dialog.addEventListener("close", () => { sessionStorage.removeItem(draftOf(form)); dialog.remove(); link.focus(); });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog || event.target.closest("[data-close]")) { event.preventDefault(); dialog.close(); }
  });
  const title = dialog.querySelector("h1");
  if (title) { title.id = title.id || "dialog-title"; dialog.setAttribute("aria-labelledby", title.id); }
  dialog.showModal();
  document.dispatchEvent(new CustomEvent("otd:patched"));
};
document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[data-dialog]");
  if (!link || event.button || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  open(link).catch(() => { location.href = link.href; });
});

// A form is sent once, however often its button is pressed.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post" || event.defaultPrevented) return;
  if (form.dataset.sent) { event.preventDefault(); return; }
  form.dataset.sent = "1";
  setTimeout(() => { delete form.dataset.sent; }, 5000);
});

// Copy

const copyable = () => { for (const button of document.querySelectorAll("[data-copy][hidden]")) button.hidden = false; };
const copy = async (text) => {
  if (navigator.clipboard) { await navigator.clipboard.writeText(text); return; }
  const box = document.createElement("textarea"); // without TLS there is no clipboard but this one
  box.value = text;
  document.body.append(box);
  box.select();
  document.execCommand("copy");
  box.remove();
};
document.addEventListener("click", async (event) => {
  const button = event.target.closest?.("[data-copy]");
  if (!button) return;
  const label = button.textContent;
  try { await copy(button.dataset.copy); button.textContent = "Copied"; } catch { button.textContent = "Could not copy"; }
  setTimeout(() => { button.textContent = label; }, 1500);
});
document.addEventListener("otd:patched", copyable);
copyable();

// What was typed into a question is kept in this tab until a page says that it has arrived: if nobody answers, the same
// question has it again. (The form of a job does that itself, see job_form.js.)

const QUESTIONS = "form.confirm, form.make-key";
const draftOf = (form) => `otd:draft:${form.getAttribute("action")}:${form.querySelector("h1")?.textContent ?? ""}`;
const typedIn = (form) => [...form.elements].filter((field) => field.name && field.name !== "typed" && !["hidden", "submit"].includes(field.type));
const keep = (form, sent) => {
  const typed = typedIn(form).map((field) => [field.name, field.type === "checkbox" ? field.checked : field.value]);
  sessionStorage.setItem(draftOf(form), JSON.stringify({ typed, sent }));
};
const restore = (form) => {
  const kept = Object.fromEntries(JSON.parse(sessionStorage.getItem(draftOf(form)) || '{"typed": []}').typed);
  for (const field of typedIn(form)) {
    if (!(field.name in kept)) continue;
    if (field.type === "checkbox") field.checked = kept[field.name]; else field.value = kept[field.name];
  }
};
if (document.querySelector(".notice.good, .new-key")) {
  for (const name of Object.keys(sessionStorage)) {
    if (name.startsWith("otd:draft:") && JSON.parse(sessionStorage.getItem(name)).sent) sessionStorage.removeItem(name);
  }
}
document.addEventListener("input", (event) => { if (event.target.form?.matches(QUESTIONS)) keep(event.target.form, false); });
document.addEventListener("submit", (event) => { if (!event.defaultPrevented && event.target.matches(QUESTIONS) && sessionStorage.getItem(draftOf(event.target))) keep(event.target, true); });
const asked = document.querySelector(QUESTIONS);
if (asked && !asked.querySelector(".has-error")) restore(asked);
