// Reads the first page of changes again after each notification. Without this script, readers reload the page.
"use strict";
const list = document.getElementById("changes");
if (list && list.dataset.topic && !location.search) {
  let waiting = false;
  const update = async () => {
    waiting = false;
    const answer = await fetch(location.href, { cache: "no-cache" });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("changes");
    if (fresh) list.replaceChildren(...fresh.childNodes);
  };
  const soon = () => {
    if (waiting) return;
    waiting = true;
    setTimeout(update, 500);
  };
  const listen = () => {
    const events = new EventSource(list.dataset.topic);
    events.onmessage = soon;
    events.onerror = () => {
      // Browsers do not connect again after an answer of a proxy such as 502.
      if (events.readyState !== EventSource.CLOSED) return;
      setTimeout(() => {
        listen();
        soon();
      }, 5000);
    };
  };
  listen();
}
