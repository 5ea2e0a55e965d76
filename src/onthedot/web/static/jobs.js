// The selection of a list: how many are selected, all of this page at once, or all that match the filters. It survives
// live updates, and means the filters that the address has when it is sent.
const bar = document.getElementById("selection");
const count = bar?.querySelector("[data-count]");
const verbs = [...(bar?.querySelectorAll("button:not([disabled])") ?? [])];
const matching = bar?.querySelector("input[name=all]");
const boxes = () => [...document.querySelectorAll("#live-part input[name=id]")];

const tell = () => {
  const all = boxes();
  const chosen = all.filter((box) => box.checked).length;
  const every = document.querySelector("[data-all]");
  const some = chosen > 0 || Boolean(matching?.checked);
  bar.classList.toggle("some", some);
  for (const verb of verbs) verb.disabled = !some;
  for (const box of all) box.disabled = Boolean(matching?.checked);
  count.textContent = matching?.checked ? "All that match are selected" : `${chosen} selected`;
  if (every) { every.hidden = false; every.checked = chosen > 0 && chosen === all.length; every.indeterminate = chosen > 0 && chosen < all.length; }
};
if (bar) {
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-all]")) for (const box of boxes()) box.checked = event.target.checked;
    if (event.target === matching || event.target.matches("[data-all], #live-part input[name=id]")) tell();
  });
  document.addEventListener("otd:patched", tell);
  bar.addEventListener("submit", () => {
    const root = document.documentElement.dataset.root ?? "";
    bar.elements.back.value = location.pathname.slice(root.length) + location.search;
    if (bar.elements.filter) bar.elements.filter.value = location.search.slice(1);
  });
  tell();
}
