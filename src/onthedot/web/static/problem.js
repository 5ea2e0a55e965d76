// A page that could not be shown is asked for again until it can be: the database is back, or the node is ready.
// Without scripts the page reloads itself; with them it does so only when that helps, and moves no focus before.

const seconds = Number(document.querySelector("[data-again]").dataset.again);

async function look() {
  if (document.hidden) return;
  try {
    const answer = await fetch(location.href, { headers: { accept: "text/html" }, cache: "no-store", redirect: "manual" });
    if (answer.status !== 503) location.reload();
  } catch {
    // the server itself is away: the next look tells
  }
}

setInterval(look, seconds * 1000);
document.addEventListener("visibilitychange", look);
