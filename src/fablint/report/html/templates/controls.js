// Mouse, keyboard, menus and the address: `#row=latency&size=8&mode=residual&src=3&dst=5` points at one cell, `#finding=2`
// at a finding.

/** Fills a list of pairs: sender, receiver, seconds, deviation, and perhaps a number. */
function listPairs(view, name, pairs) {
  const { map } = view;
  byId(name).tBodies[0].replaceChildren(...pairs.map(([src, dst, seconds, residual, times]) => {
    const [from, to] = map.backwards ? [dst, src] : [src, dst];
    const words = [view.fabric.name(from), view.fabric.name(to), map.figure(Math.log(seconds)), residual === null ? "-" : map.change(residual)];
    if (times !== undefined) words.push(times);
    const line = make("tr", {}, ...words.map((textContent, index) => make("td", { textContent, className: index > 1 ? "number" : "" })));
    return clickable(line, () => view.select(map.cellOf(src, dst)));
  }));
  navigable(byId(name).tBodies[0]);
}

function listWorst(view) {
  const { worst, repeated = [] } = view.fabric.isWhole ? view.map : pairMap(view);
  byId("slow-pairs").hidden = !worst.length;
  byId("repeated-section").hidden = !repeated.length;
  listPairs(view, "repeated", repeated);
  listPairs(view, "worst", worst);
}

async function update(view) {
  const map = view.maps[byId("map").selectedIndex];
  const residual = document.querySelector("input[value=residual]");
  byId("modes").hidden = !map.fitted; // the choice is kept for the next map
  if (map !== view.map) view.cursor = null;
  await view.show(map, residual.checked && map.fitted ? "residual" : "raw");
  listWorst(view);
  view.refreshTables?.();
  if (view.cursor) view.tell(view.cursor);
}

/** One pointer moves the map, two zoom it. */
function listenToPointer(view) {
  const { canvas } = view, down = new Map();
  let drag = null;
  const spread = () => {
    const [a, b] = [...down.values()];
    return { x: (a.x + b.x) / 2, y: (a.y + b.y) / 2, distance: Math.hypot(a.x - b.x, a.y - b.y) };
  };
  canvas.addEventListener("pointerdown", (event) => {
    down.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    drag = { x: event.offsetX, y: event.offsetY, moved: down.size > 1 };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) return view.tell(view.cellAt(event.offsetX, event.offsetY));
    const before = down.size === 2 ? spread() : null;
    down.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
    if (before) {
      const after = spread();
      view.x -= after.x - before.x;
      view.y -= after.y - before.y;
      return view.zoomBy(after.distance / Math.max(before.distance, 1), after.x, after.y);
    }
    const [dx, dy] = [event.offsetX - drag.x, event.offsetY - drag.y];
    if (Math.abs(dx) + Math.abs(dy) < 3 && !drag.moved) return;
    view.x -= dx;
    view.y -= dy;
    drag = { x: event.offsetX, y: event.offsetY, moved: true };
    requestAnimationFrame(() => view.draw());
  });
  const end = (event) => {
    down.delete(event.pointerId);
    const [left] = down.values();
    drag = left ? { ...left, moved: true } : null;
  };
  canvas.addEventListener("pointerup", (event) => {
    const cell = view.cellAt(event.offsetX, event.offsetY);
    if (drag && !drag.moved && cell) pin(view, cell);
    end(event);
  });
  canvas.addEventListener("pointercancel", end);
  canvas.addEventListener("pointerleave", () => { if (view.cursor) view.tell(view.cursor); });
  canvas.addEventListener("dblclick", (event) => view.zoomBy(2, event.offsetX, event.offsetY));
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
    event.preventDefault();
    view.zoomBy(2 ** (-event.deltaY / 240), event.offsetX, event.offsetY);
  }, { passive: false });
}

function listenToKeys(view) {
  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  view.canvas.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (steps[event.key]) {
      const { x, y } = view.cursor || { x: 0, y: 0 }, [dx, dy] = view.cursor ? steps[event.key] : [0, 0];
      const clamp = (value, end) => Math.min(Math.max(value, 0), end - 1);
      view.select({ x: clamp(x + dx, view.map.width), y: clamp(y + dy, view.map.height) });
    } else if (event.key === "+" || event.key === "=") view.zoomBy(1.5);
    else if (event.key === "-") view.zoomBy(1 / 1.5);
    else if (event.key === "0") view.fit();
    else return;
    event.preventDefault();
  });
}

/** What is folded away for the screen and belongs on paper is open while the page is printed. */
function openToPrint() {
  const closed = () => document.querySelectorAll(".findings details:not(.slowest):not([open])");
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = [...closed()];
    for (const one of opened) one.open = true;
  });
  window.addEventListener("afterprint", () => { for (const one of opened) one.open = false; });
}

/** Saves the map as it is shown, on the ground of the page. */
async function savePicture(view) {
  const { canvas, map } = view, copy = Object.assign(document.createElement("canvas"), { width: canvas.width, height: canvas.height });
  const context = copy.getContext("2d");
  context.fillStyle = colourOf("--ground");
  context.fillRect(0, 0, copy.width, copy.height);
  context.drawImage(canvas, 0, 0);
  saveFile(await new Promise((done) => copy.toBlob(done)), `${map.label.replace(/[^\w.-]+/g, "-")}.png`);
}

/** Selects a cell and puts it into the address. */
function pin(view, cell) {
  view.select(cell);
  view.focus.pointAt(cell);
  const { map, mode } = view, index = cell.y * map.width + cell.x;
  if (map.views[mode].levels[0].cells[index] === MISSING) return;
  const pair = map.layout === "blocks" ? { kind: map.addressed, x: cell.x, y: cell.y } : map.pairAt(map.views[mode].planes, index);
  const { round, ...ends } = pair;
  history.replaceState(null, "", `#${new URLSearchParams({ row: map.row, size: map.size, mode, ...ends })}`);
}

/** Shows what the address asks for. */
async function follow(view, first) {
  const asked = new URLSearchParams(location.hash.slice(1)), number = (name) => parseInt(asked.get(name), 10);
  const index = view.maps.findIndex((map) => map.row === asked.get("row") && String(map.size) === asked.get("size")
    && (map.layout === "blocks" ? map.addressed : null) === asked.get("kind"));
  byId("map").selectedIndex = index >= 0 ? index : first;
  const mode = asked.get("mode") || (index >= 0 && asked.has("src") ? "raw" : "residual");
  document.querySelector(`input[value=${mode === "raw" ? "raw" : "residual"}]`).checked = true;
  await update(view);
  const mark = view.marks.list.find((one) => one.finding + 1 === number("finding"));
  if (mark) return view.focus.open(mark);
  const { fabric, map } = view, [src, dst, x, y] = ["src", "dst", "x", "y"].map(number);
  if (fabric.isWhole && src >= 0 && dst >= 0 && src < fabric.ranks && dst < fabric.ranks) point(view, src, dst);
  else if (x >= 0 && y >= 0 && x < map.width && y < map.height) view.select({ x, y });
}

async function start() {
  const data = JSON.parse(byId("data").textContent);
  if (!data.maps.length) return;
  for (const element of [byId("matrix-section"), document.querySelector("nav [hidden]")]) element.hidden = false;
  const view = new View(data, new Fabric(data));
  window.view = view;
  byId("map").append(...view.maps.map((map) => Object.assign(document.createElement("option"), { textContent: map.label })));
  document.querySelector(".matrix form").addEventListener("change", () => update(view).catch(fail));
  byId("zoom-in").addEventListener("click", () => view.zoomBy(2));
  byId("zoom-out").addEventListener("click", () => view.zoomBy(0.5));
  byId("zoom-fit").addEventListener("click", () => view.fit());
  byId("save-map").addEventListener("click", () => savePicture(view).catch(fail));
  listenToPointer(view);
  listenToKeys(view);
  view.refreshTables = listenToTables(view);
  view.focus = new Focus(view);
  listenToColumns();
  await follow(view, data.first);
  window.addEventListener("hashchange", () => location.hash.includes("=") && follow(view, view.maps.indexOf(view.map)).catch(fail));
  window.addEventListener("resize", () => view.fit());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => view.draw());
}

/** Beside a large map stand its legend and what it says, above the findings. */
function listenToColumns() {
  const wide = matchMedia("(min-width: 1200px)"), reading = byId("reading"), figure = byId("canvas").parentElement;
  const place = () => (wide.matches ? byId("beside").prepend(reading) : figure.append(reading));
  wide.addEventListener("change", place);
  window.addEventListener("resize", fitNames);
  window.addEventListener("beforeprint", () => figure.append(reading));
  window.addEventListener("afterprint", place);
  place();
  fitNames();
}

/** A frame is painted first: the verdict is read while the map is made. A hidden page has no frames. */
function afterFrame() {
  return document.hidden ? Promise.resolve() : new Promise((done) => { requestAnimationFrame(() => setTimeout(done)); });
}

/** What went wrong is written on the page, where a reader can quote it. */
function fail(error) {
  document.documentElement.dataset.error = String(error);
  Object.assign(byId("trouble"), { hidden: false, textContent: `The heat map is missing: ${error.message || error}` });
}

openToPrint();
listenToNodeSets();
afterFrame().then(start).then(() => { document.documentElement.dataset.ready = "true"; }, fail);
