// Times: relative ones count on every second, absolute ones are shown in the viewer's zone; the title says both zones.
const units = [["y", 31536000], ["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];

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
const relative = (seconds, due) => {
  if (seconds > 1) return `in ${span(Math.ceil(seconds))}`;
  if (seconds >= -1) return "now";
  if (due && seconds > -60) return "due now";
  return `${due ? "due " : ""}${span(Math.floor(-seconds))} ago`;
};

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone || "local time";
const three = (number) => String(number).padStart(3, "0");
const two = (number) => String(number).padStart(2, "0");
const local = (at) =>
  `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;

const tick = () => {
  if (document.hidden) return;
  const now = Date.now();
  for (const shown of document.querySelectorAll("[data-zone]")) shown.classList.toggle("here", zone === "UTC" || shown.dataset.zone === zone);
  for (const time of document.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    if (time.dataset.said !== time.dateTime) {  // new, or changed by a refresh
      time.dataset.said = time.dateTime;
      const exact = "ms" in time.dataset ? `.${three(at.getMilliseconds())}` : "";
      const utc = `${at.toISOString().slice(0, 19).replace("T", " ")}${exact} UTC`;
      time.title = zone === "UTC" ? utc : `${local(at)}${exact} ${zone}\n${utc}`;
      if ("absolute" in time.dataset) time.textContent = `${local(at)}${exact}`;
    }
    if ("absolute" in time.dataset) continue;
    const words = relative((at - now) / 1000, "due" in time.dataset);
    if (time.textContent !== words) time.textContent = words;
  }
};

document.documentElement.classList.add("js");
document.addEventListener("otd:patched", tick);
document.addEventListener("visibilitychange", tick);
setInterval(tick, 1000);
tick();
