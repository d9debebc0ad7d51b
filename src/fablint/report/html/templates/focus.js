// A finding and its places: on the map only its frames, in the topology its component, in the address its number.

const SMALL = 0.6; // a drawing of the topology at less than this share of its size

class Focus {
  constructor(view) {
    this.view = view;
    this.pinned = this.shown = null; // marks
    this.articles = new Map(view.marks.list.map((mark) => [mark, byId(`finding-${mark.finding + 1}`)]));
    this.pieces = [...document.querySelectorAll(".topology > *")].map((element) => [element, element.querySelector("title")?.textContent.split(": ")[0]]);
    for (const [mark, article] of this.articles) {
      article.addEventListener("pointerenter", () => this.show(mark));
      article.addEventListener("pointerleave", () => this.show(this.pinned));
      article.querySelector("summary").addEventListener("click", () => this.pin(mark).catch(fail));
    }
    for (const [element, name] of this.pieces) {
      const mark = name && view.marks.list.find((one) => one.names.includes(name));
      if (mark) element.addEventListener("click", () => this.open(mark).catch(fail));
      if (mark) element.classList.add("linked");
    }
    byId("all-findings").addEventListener("click", () => this.clear());
  }

  /** Marks of a mark's finding alone; null: of all. */
  show(mark) {
    if (mark === this.shown) return;
    this.shown = this.view.marks.only = mark;
    for (const [one, article] of this.articles) article.classList.toggle("shown", one === mark);
    document.querySelector(".topology")?.classList.toggle("dimmed", Boolean(mark));
    for (const [element, name] of this.pieces) element.classList.toggle("shown", Boolean(mark?.names.includes(name)));
    this.view.draw();
  }

  /** Stays at a finding: its map, zoomed to its frames, and its address. */
  async pin(mark) {
    const { view } = this;
    this.pinned = mark;
    byId("all-findings").hidden = false;
    const isOf = (map) => !mark.rows.length || mark.rows.includes(map.row), has = (map) => view.marks.frames(map, mark).length > 0;
    const map = [view.map, ...view.maps].find((one) => isOf(one) && has(one)) || view.maps.find(has);
    if (map && map !== view.map) {
      byId("map").selectedIndex = view.maps.indexOf(map);
      await update(view);
    }
    this.show(mark);
    if (map) view.zoomTo(view.marks.frames(map, mark));
    history.replaceState(null, "", `#finding=${mark.finding + 1}`);
  }

  /** Stays at a finding that was chosen elsewhere: opens it, too. */
  async open(mark) {
    const article = this.articles.get(mark);
    for (let element = article.querySelector("details"); element; element = element.parentElement.closest("details")) element.open = true;
    await this.pin(mark);
    article.scrollIntoView({ block: "nearest" });
  }

  clear() {
    this.pinned = null;
    byId("all-findings").hidden = true;
    this.show(null);
    this.view.fit();
    history.replaceState(null, "", location.pathname);
  }

  /** The first finding whose frames surround a cell, marked in the list. */
  pointAt(cell) {
    const { marks, map } = this.view, { x, y } = cell;
    const mark = marks.visible.find((one) => marks.frames(map, one).some(([left, top, right, bottom]) => left <= x && x < right && top <= y && y < bottom));
    for (const [one, article] of this.articles) article.classList.toggle("pointed", one === mark);
    if (mark) this.articles.get(mark).scrollIntoView({ block: "nearest" });
  }
}

/** In a small drawing of the topology only names of findings are written, as large as other texts, where they fit. */
function fitNames() {
  const drawing = document.querySelector(".topology"), scale = drawing?.getScreenCTM()?.a;
  if (!scale) return;
  drawing.classList.toggle("small", scale < SMALL);
  drawing.style.fontSize = `${12 / scale}px`;
  const boxes = [], width = drawing.viewBox.baseVal.width;
  for (const name of drawing.querySelectorAll(".named")) {
    name.setAttribute("dx", 0);
    const { x, y, width: length, height } = name.getBBox(), left = Math.max(0, Math.min(x, width - length));
    name.setAttribute("dx", left - x);
    const fits = boxes.every((box) => box.left > left + length || left > box.right || box.top > y + height || y > box.bottom);
    if (fits) boxes.push({ left, right: left + length, top: y, bottom: y + height });
    name.classList.toggle("fitting", fits);
  }
}

/** Buttons that show the node sets of the verdict, and copy them. */
function listenToNodeSets() {
  for (const button of document.querySelectorAll("[data-nodes]")) {
    button.addEventListener("click", () => copyNodeSet(button.dataset.nodes, byId("node-set")));
  }
}

/** Shows a node set, selected: Ctrl + C copies it where a page may not. */
function copyNodeSet(words, output) {
  output.textContent = words;
  getSelection().selectAllChildren(output);
  navigator.clipboard?.writeText(words).catch(() => {});
}
