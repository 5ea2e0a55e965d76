// The log of a run: it follows while the run goes on, and is searched as one types. What is written here is text only.
const box = document.getElementById("log");
const state = document.getElementById("log-state");
const search = document.getElementById("log-search");

const LIMIT = 65536; // characters, as the server keeps them
let full = null;     // the whole text, once it is known
let cut = false;

const draw = () => {
  const words = search.value.trim().toLowerCase();
  const bottom = box.scrollHeight - box.scrollTop - box.clientHeight < 8;
  const lines = words ? full.split("\n").filter((line) => line.toLowerCase().includes(words)) : null;
  if (!lines) box.textContent = full;
  else {
    box.replaceChildren();
    for (const line of lines) {
      let from = 0;
      const low = line.toLowerCase();
      for (let at = low.indexOf(words); at >= 0; at = low.indexOf(words, from)) {
        const mark = document.createElement("mark");
        mark.textContent = line.slice(at, at + words.length);
        box.append(line.slice(from, at), mark);
        from = at + words.length;
      }
      box.append(line.slice(from), "\n");
    }
  }
  if (bottom) box.scrollTop = box.scrollHeight;
  const said = lines ? `${lines.length} ${lines.length === 1 ? "line has" : "lines have"} it. ` : "";
  state.textContent = said + (cut || full.length >= LIMIT ? "Only the last 64 KB are kept here." : full ? "" : "Nothing was printed.");
};

const follow = () => {
  const events = new EventSource(`${box.dataset.log}?follow=true`);
  let text = "";
  events.addEventListener("log", (event) => {
    text += JSON.parse(event.data).text;
    if (text.length > LIMIT) { text = text.slice(-LIMIT); cut = true; }
    full = text;
    draw();
  });
  events.addEventListener("end", () => {
    events.close();
    if (full !== null) draw(); else state.textContent = "This run printed nothing.";
    document.dispatchEvent(new CustomEvent("otd:refresh"));
  });
  events.onerror = () => {
    text = ""; // it begins anew
    if (events.readyState === EventSource.CLOSED) state.textContent = "The log can't be followed at the moment. Reload the page to try again.";
  };
  addEventListener("pagehide", () => events.close());
};

if (box && state && search) {
  if ("follow" in box.dataset) follow();
  search.form.addEventListener("submit", (event) => event.preventDefault());
  search.addEventListener("input", async () => {
    if (full === null) {
      const answer = await fetch(box.dataset.log);
      if (!answer.ok) { state.textContent = `The log can't be read: error ${answer.status}`; return; }
      full = await answer.text();
    }
    draw();
    const url = new URL(location.href);
    if (search.value.trim()) url.searchParams.set("log", search.value.trim()); else url.searchParams.delete("log");
    history.replaceState(null, "", url);
  });
}
