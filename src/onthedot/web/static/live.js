// Keeps the element with data-live up to date: on events of the server it fetches that part of the page again and changes
// only what differs, so that focus, scroll, selection, open details and what is being typed stay as they are.
const part = document.querySelector("[data-live][id]");
const sign = document.getElementById("live");
const root = document.documentElement.dataset.root;

const SOON = 1000;      // ms between two refreshes while things happen
const APART = Math.random() * 600; // ms: hundreds of dashboards hear of a change at once, and must not all ask at once
const ANYWAY = 10000;   // ms: a hint of another node may be lost
const RECONNECT = 3000; // ms after a stream was refused
const REFUSED = { 403: "not allowed any more", 404: "deleted meanwhile", 503: "database away" };

let tag = null, address = null, updated = Date.now(), busy = false, again = false, waiting = 0, late = null, trouble = "";

// One element becomes another

const keep = (old) => old.nodeType === 1 && old.hasAttribute("data-keep");

const attributes = (old, fresh) => {
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && name !== "open" && name !== "data-said" && !(name === "hidden" && old.dataset.copy)) {
      old.removeAttribute(name);
    }
  }
  for (const { name, value } of fresh.attributes) {
    if (name === "open" || (name === "title" && old.nodeName === "TIME") || (name === "hidden" && old.dataset.copy)) continue;
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
};

const morph = (old, fresh) => {
  if (keep(old)) return;
  if (old.nodeType === 3 || old.nodeType === 8) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  const sameTime = old.nodeName === "TIME" && old.dateTime === fresh.dateTime;
  attributes(old, fresh);
  if (old.nodeName === "TEXTAREA" || old.nodeName === "SELECT" || sameTime) return;
  children(old, fresh);
};

const alike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && (a.id || "") === (b.id || "");

const children = (old, fresh) => {
  const keyed = new Map();
  for (const child of old.children) if (child.id) keyed.set(child.id, child);
  let at = old.firstChild;
  for (const next of [...fresh.childNodes]) {
    let match = null;
    if (next.id && keyed.has(next.id)) match = keyed.get(next.id);
    else if (at && !at.id && alike(at, next)) match = at;
    if (match && match.nodeName === next.nodeName) {
      if (match === at) at = at.nextSibling;
      else old.insertBefore(match, at);
      morph(match, next);
    } else old.insertBefore(next, at);
  }
  while (at) { const gone = at; at = at.nextSibling; gone.remove(); }
};

const selecting = () => {
  const chosen = document.getSelection();
  return chosen && !chosen.isCollapsed && part.contains(chosen.anchorNode);
};

const patch = (html) => {
  if (selecting()) { late = html; return; } // it waits until nothing is selected
  late = null;
  const box = document.createElement("template");
  box.innerHTML = html;
  for (const fresh of [...box.content.querySelectorAll("[data-elsewhere]")]) { // what stands outside of the part
    const old = document.getElementById(fresh.id);
    fresh.remove();
    if (old) morph(old, fresh);
  }
  children(part, box.content);
  document.dispatchEvent(new CustomEvent("otd:patched"));
};
document.addEventListener("selectionchange", () => { if (late !== null && !selecting()) patch(late); });

// When to fetch

const say = () => {
  const seconds = Math.floor((Date.now() - updated) / 1000);
  const words = trouble || (seconds < 2 ? "live" : `updated ${seconds < 120 ? `${seconds} s` : `${Math.floor(seconds / 60)} min`} ago`);
  sign.hidden = false;
  sign.classList.toggle("off", trouble !== "");
  if (sign.textContent !== words) sign.textContent = words;
};

const ended = () => {
  trouble = "";
  sign.hidden = false;
  sign.classList.add("off");
  const link = document.createElement("a");
  link.href = `${root}/login?ended=true&next=${encodeURIComponent(location.pathname.slice(root.length) + location.search)}`;
  link.textContent = "Session ended: log in";
  sign.replaceChildren(link);
  clearInterval(ticking);
  stop();
};

const refresh = async () => {
  clearTimeout(waiting);
  waiting = 0;
  if (busy) { again = true; return; }
  busy = true;
  const asked = location.pathname + location.search;
  if (asked !== address) { address = asked; tag = null; }
  try {
    const headers = { "x-onthedot-live": "1", ...(tag && { "if-none-match": tag }) };
    const answer = await fetch(asked, { headers, redirect: "manual", cache: "no-store" });
    if (answer.type === "opaqueredirect") { ended(); return; }
    if (answer.status === 304 || answer.ok) { updated = Date.now(); trouble = ""; }
    else trouble = REFUSED[answer.status] ?? `error ${answer.status}`;
    if (answer.ok) {
      const html = await answer.text();
      if (asked === location.pathname + location.search) { tag = answer.headers.get("etag"); patch(html); }
      else again = true;
    }
  } catch { trouble = "not connected"; }
  finally { busy = false; }
  say();
  if (part.querySelector("[data-pending]")) soon(SOON); // it is being computed
  if (again) { again = false; soon(0); }
};
const soon = (ms) => { if (!waiting) waiting = setTimeout(refresh, ms); };

let events = null, retry = 0, missed = false;
const happened = () => {
  sign.classList.remove("beat"); void sign.offsetWidth; sign.classList.add("beat");
  soon(Math.max(50 + APART, SOON - (Date.now() - updated)));
};
const start = () => {
  if (events) return;
  events = new EventSource(`${root}/v1/events?digest=true`);
  events.onopen = () => {
    trouble = "";
    say();
    if (missed) { missed = false; refresh(); } // what happened meanwhile is not told again
  };
  events.onerror = () => {
    missed = true;
    if (events && events.readyState === EventSource.CLOSED) { stop(); retry = setTimeout(start, RECONNECT); }
  };
  events.addEventListener("changed", happened);
};
const stop = () => { clearTimeout(retry); if (events) events.close(); events = null; };

let ticking = 0;
if (part && sign) {
  start();
  if (part.querySelector("[data-pending]")) soon(SOON);
  ticking = setInterval(() => { if (!document.hidden) { say(); if (Date.now() - updated > ANYWAY) soon(0); } }, 1000);
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) { stop(); clearTimeout(waiting); waiting = 0; } else { start(); soon(0); }
  });
  document.addEventListener("otd:refresh", () => refresh());
  addEventListener("pagehide", stop);
  addEventListener("pageshow", (event) => { if (event.persisted) { start(); soon(0); } });
}
