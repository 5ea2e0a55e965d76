// Updates the overview page: relative times every second, and the job list on every event.
"use strict";
(() => {
  const jobs = document.getElementById("jobs");
  const live = document.getElementById("live");
  const form = document.querySelector(".search");
  document.documentElement.classList.add("js");

  const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const span = (seconds) => {
    for (let i = 0; i < units.length; i++) {
      const [unit, size] = units[i];
      if (seconds >= size || unit === "s") {
        const whole = Math.floor(seconds / size);
        const rest = units[i + 1] && whole < 10 ? Math.floor((seconds % size) / units[i + 1][1]) : 0;
        return rest ? `${whole} ${unit} ${rest} ${units[i + 1][0]}` : `${whole} ${unit}`;
      }
    }
  };
  const tick = () => {
    const now = Date.now();
    for (const time of document.querySelectorAll("time")) {
      const at = Date.parse(time.dateTime);
      const seconds = (at - now) / 1000;
      const words = seconds > 1 ? `in ${span(Math.ceil(seconds))}` : seconds < -1 ? `${span(-seconds)} ago` : "now";
      if (time.textContent !== words) time.textContent = words;
      if (!time.title) time.title = new Date(at).toLocaleString();
    }
  };

  let busy = false, again = false;
  const address = (part) => {
    const asked = new URLSearchParams(location.search);
    asked.delete("part");
    for (const [name, value] of new FormData(form)) value ? asked.set(name, value) : asked.delete(name);
    if (part) asked.set("part", "true");
    const text = asked.toString();
    return text ? `/?${text}` : "/";
  };
  const refresh = async () => {
    if (busy) { again = true; return; }
    busy = true;
    try {
      const answer = await fetch(address(true), { redirect: "manual" });
      if (answer.ok) { jobs.innerHTML = await answer.text(); tick(); }
      else if (answer.type === "opaqueredirect") location.reload();
    } catch { live.hidden = true; }
    busy = false;
    if (again) { again = false; soon(); }
  };
  let waiting = 0;
  const soon = (ms = 400) => { clearTimeout(waiting); waiting = setTimeout(refresh, ms); };

  form.addEventListener("submit", (event) => { event.preventDefault(); search(); });
  const search = () => {
    const asked = new URL(address(false), location.href);
    asked.searchParams.delete("cursor");
    history.replaceState(null, "", asked);
    soon(120);
  };
  form.addEventListener("input", search);

  const events = new EventSource("/v1/events");
  let last = 0;
  events.onopen = () => { live.hidden = false; };
  events.onerror = () => { live.hidden = true; };
  const happened = () => {
    live.classList.remove("beat"); void live.offsetWidth; live.classList.add("beat");
    const now = Date.now();  // reload the list at most twice a second, but never starve it
    if (now - last > 500) { last = now; refresh(); } else soon();
  };
  for (const name of ["run.started", "run.finished", "run.retried", "run.skipped", "job.created", "job.changed",
    "job.deleted", "job.quarantined", "node.registered", "node.lost", "node.left", "dropped"]) {
    events.addEventListener(name, happened);
  }
  setInterval(tick, 1000);
  setInterval(() => { if (!document.hidden) refresh(); }, 5000);
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
  tick();
})();
