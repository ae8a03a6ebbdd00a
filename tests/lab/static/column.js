// One column of the lab on the page. Everything that somebody said becomes text, never markup.
//
// Knows nothing of networks and counting: it is given what to show.

const NEAR_END_PX = 40;
const STATES = {
  runs: "runs",
  done: "done",
  broken: "nobody listens any more",
  succeeded: "done",
  failed: "failed",
  unknown: "nobody knows whether it ran",
  not_executed: "not run",
};

/** Show a column: `chat` is absent before the first start. */
export function drawColumn(article, { chat, counts, bookings, servers }) {
  article.dataset.state = chat?.ended ? "ended" : "open";
  set(article.querySelector(".status"), chat?.status ?? "not started");
  drawCounts(article.querySelector(".counts"), counts, bookings);
  drawAnswer(article.querySelector(".answer"), chat?.bubbles ?? []);
  set(article.querySelector(".aside"), asideWords(counts, servers));
}

function drawCounts(list, counts, bookings) {
  const { twice = 0, lost = 0, silentMs = 0, isDeaf = false } = counts ?? {};
  const shown = [
    ["shown twice", twice, twice > 0],
    ["lost", lost, lost > 0],
    [bookings === 1 ? "tool run" : "tool runs", bookings, bookings > 1],
    ["s of silence", Math.floor(silentMs / 1000), isDeaf],
  ];
  while (list.children.length < shown.length) list.append(count());
  shown.forEach(([label, number, isBad], at) => {
    const [term, value] = list.children[at].children;
    set(term, label);
    set(value, String(number));
    list.children[at].classList.toggle("bad", isBad);
  });
}

function count() {
  const group = document.createElement("div");
  group.append(document.createElement("dt"), document.createElement("dd"));
  return group;
}

/** Only what has changed is written, so that a selection and the scroll position stay. */
function drawAnswer(list, bubbles) {
  const follows = list.scrollHeight - list.scrollTop - list.clientHeight < NEAR_END_PX;
  while (list.children.length > bubbles.length) list.lastElementChild.remove();
  while (list.children.length < bubbles.length) list.append(document.createElement("li"));
  bubbles.forEach(({ kind, text, state }, at) => {
    const item = list.children[at];
    item.className = [kind, state].filter(Boolean).join(" ");
    set(item, kind === "tool" ? `${text}: ${STATES[state] ?? state}` : text);
  });
  if (follows) list.scrollTop = list.scrollHeight;
}

function asideWords(counts, servers) {
  const names = servers.map(({ state, owner }, at) => `${at + 1} ${state}${owner ? ", serves" : ""}`);
  const backs = counts?.takenBack ? [`${counts.takenBack} events taken back and said again`] : [];
  return [...(names.length ? [`servers: ${names.join("; ")}`] : []), ...backs].join(". ");
}

function set(element, words) {
  if (element.textContent !== words) element.textContent = words;
}
