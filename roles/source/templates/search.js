// Searches the names of a static site. Without this script, readers go from folder to folder.
"use strict";
const form = document.querySelector("form[data-names]");
if (form) {
  const list = document.getElementById("found");
  const result = document.getElementById("result");
  const most = 100;
  let search = 0;
  const show = (name, url) => {
    const item = document.createElement("li");
    const link = document.createElement(/^https?:/.test(url) ? "a" : "span");
    if (link.localName === "a") link.href = url;
    link.textContent = name;
    item.append(link);
    list.append(item);
  };
  const read = async (address) => {
    const answer = await fetch(address, { cache: "no-cache" }).catch(() => null);
    return answer && answer.ok ? answer.json().catch(() => null) : null;
  };
  form.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const own = ++search;
    const wanted = form.elements.q.value.normalize("NFC").toLowerCase();
    list.replaceChildren();
    result.textContent = "Searching…";
    const index = await read(form.dataset.names);
    let count = 0;
    for (const address of index ? index.parts : []) {
      const part = await read(address);
      if (own !== search) return;
      if (!part) {
        count = NaN;
        break;
      }
      for (const entry of part.names) {
        const [name, url] = Array.isArray(entry) ? entry : [entry, part.base + entry];
        if (!name.normalize("NFC").toLowerCase().includes(wanted)) continue;
        count += 1;
        if (count <= most) show(name, url);
      }
    }
    if (!index || Number.isNaN(count)) {
      result.textContent = "The names cannot be read now. Try again later.";
      return;
    }
    result.textContent = count > most ? `${count} resources found, the first ${most} of them:` : `${count} resources found`;
  });
}
