// Keys: / searches, g and a letter goes to a page, ? shows them all.
const map = document.getElementById("keys");
const quick = document.getElementById("quick");
const pages = [...document.querySelectorAll("nav.tabs a[data-key]")];
const search = () => quick || document.querySelector("form[data-filters] input[type=search]"); // /jobs itself is the search
let going = 0;

const typing = (element) => element.closest?.("input, textarea, select, [contenteditable]") && element.type !== "checkbox";

const row = (keys, words) => {
  const line = document.createElement("tr");
  const [left, right] = [document.createElement("td"), document.createElement("td")];
  for (const key of keys) { const kbd = document.createElement("kbd"); kbd.textContent = key; left.append(kbd, " "); }
  right.textContent = words;
  line.append(left, right);
  return line;
};
const show = () => {
  const title = document.createElement("h1");
  title.textContent = "Keyboard shortcuts";
  const table = document.createElement("table");
  if (search()) table.append(row(["/"], "Search jobs"));
  for (const page of pages) table.append(row(["g", page.dataset.key], page.textContent));
  table.append(row(["?"], "This list"), row(["Esc"], "Close"));
  const close = document.createElement("button");
  close.type = "button";
  close.className = "button small";
  close.textContent = "Close";
  close.addEventListener("click", () => map.close());
  map.replaceChildren(title, table, close);
  map.showModal();
};
map.addEventListener("click", (event) => { if (event.target === map) map.close(); });

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target) || document.querySelector("dialog[open]")) return;
  if (going) {
    clearTimeout(going);
    going = 0;
    const page = pages.find((each) => each.dataset.key === event.key);
    if (page) { event.preventDefault(); location.href = page.href; }
  } else if (event.key === "g") going = setTimeout(() => { going = 0; }, 1500);
  else if (event.key === "?") { event.preventDefault(); show(); }
  else if (event.key === "/") {
    const field = search();
    if (field) { event.preventDefault(); field.focus(); field.select(); }
  }
});
document.querySelector("nav.tabs [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
