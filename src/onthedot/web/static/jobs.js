// The selection of the jobs page: how many are selected, and all of this page at once. It survives live updates.
const bar = document.getElementById("selection");
const count = bar?.querySelector("[data-count]");
const verbs = [...(bar?.querySelectorAll("button:not([disabled])") ?? [])];
const boxes = () => [...document.querySelectorAll("#live-part input[name=id]")];

const tell = () => {
  const all = boxes();
  const chosen = all.filter((box) => box.checked).length;
  bar.classList.toggle("some", chosen > 0);
  for (const verb of verbs) verb.disabled = chosen === 0;
  count.textContent = `${chosen} selected`;
  const every = document.querySelector("[data-all]");
  if (every) { every.hidden = false; every.checked = chosen > 0 && chosen === all.length; every.indeterminate = chosen > 0 && chosen < all.length; }
};
if (bar) {
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-all]")) for (const box of boxes()) box.checked = event.target.checked;
    if (event.target.matches("[data-all], #live-part input[name=id]")) tell();
  });
  document.addEventListener("otd:patched", tell);
  tell();
}
