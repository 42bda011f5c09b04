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
  form.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const own = ++search;
    const wanted = form.elements.q.value.toLowerCase();
    list.replaceChildren();
    result.textContent = "Searching…";
    let count = 0;
    for (const address of form.dataset.names.split(" ")) {
      const answer = await fetch(address).catch(() => null);
      const index = answer && answer.ok ? await answer.json().catch(() => null) : null;
      if (own !== search) return;
      if (!index) {
        result.textContent = "The names cannot be read now. Try again later.";
        return;
      }
      for (const entry of index.names) {
        const [name, url] = Array.isArray(entry) ? entry : [entry, index.base + entry];
        if (!name.toLowerCase().includes(wanted)) continue;
        count += 1;
        if (count <= most) show(name, url);
      }
    }
    result.textContent = count > most ? `${count} resources found, the first ${most} of them:` : `${count} resources found`;
  });
}
