// The selection of a list: how many are selected, all of this page at once, or all that match the filters. It survives
// live updates, and means the filters that the address has when it is sent.
const LIST = "#live-part input[name=id]";
const bar = () => document.getElementById("selection");
const boxes = () => [...document.querySelectorAll(LIST)];

const tell = () => {
  const form = bar();
  if (!form) return;
  const matching = Boolean(form.querySelector("input[name=all]")?.checked);
  const all = boxes();
  const chosen = all.filter((box) => box.checked).length;
  const every = document.querySelector("[data-all]");
  const some = chosen > 0 || matching;
  form.classList.toggle("some", some);
  for (const verb of form.querySelectorAll("button:not([title])")) verb.disabled = !some; // one with a title says why not
  for (const box of all) box.disabled = matching;
  form.querySelector("[data-count]").textContent = matching ? "All that match are selected" : `${chosen} selected`;
  if (every) { every.hidden = false; every.checked = chosen > 0 && chosen === all.length; every.indeterminate = chosen > 0 && chosen < all.length; }
};
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-all]")) for (const box of boxes()) box.checked = event.target.checked;
  if (event.target.matches(`[data-all], #selection input[name=all], ${LIST}`)) tell();
});
document.addEventListener("otd:patched", tell);
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form !== bar()) return;
  const root = document.documentElement.dataset.root ?? "";
  form.elements.back.value = location.pathname.slice(root.length) + location.search;
  if (form.elements.filter) form.elements.filter.value = location.search.slice(1);
});
tell();
