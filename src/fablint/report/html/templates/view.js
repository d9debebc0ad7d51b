// The view: draws the chosen map, moves and zooms in it.

const MARGIN = 30; // css px left of and above the map, for the effects of the ranks and the marks of the findings
const STRIP = 9; // of it, for the effects
const NAMED_MARKS = 6; // so many parts are named at the upper axis; more would hide each other
const RAW = ["#440154", "#3b528b", "#21918c", "#5ec962", "#fde725"]; // viridis: fast to slow
const RESIDUAL = ["#2166ac", "#92c5de", "#f7f7f7", "#f4a582", "#b2182b"]; // faster, as the model, slower
const MISSING_GREYS = [[154, 154, 154], [125, 125, 125]];
const STATE_COLOURS = { FAULT: "#d1242f", SUSPECT: "#bf6a02", CONFOUNDED: "#8250df", "NOT JUDGED": "#7d7d7d" };
const byId = (id) => document.getElementById(id);

function ramp(colours) {
  const stops = colours.map((text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16)));
  return Array.from({ length: 256 }, (_, index) => {
    const at = (index / 255) * (stops.length - 1), low = Math.min(Math.floor(at), stops.length - 2);
    return stops[low].map((value, channel) => Math.round(value + (at - low) * (stops[low + 1][channel] - value)));
  });
}
const RAMPS = { raw: ramp(RAW), residual: ramp(RESIDUAL) };

class View {
  constructor(data, fabric) {
    this.fabric = fabric;
    this.maps = data.maps.map((map) => new HeatMap(map, fabric));
    this.marks = data.marks;
    this.canvas = byId("canvas");
    this.map = this.maps[0];
    this.mode = "raw";
    this.cursor = null;
    this.images = new Map();
  }

  async show(map, mode) {
    await map.prepare("raw");
    await map.prepare(mode);
    const moved = map !== this.map || !this.zoom;
    Object.assign(this, { map, mode });
    if (moved) this.fit();
    else this.draw();
    this.legend();
  }

  /** Share of the colour scale, 0..1, of a cell's shade at a level of the pyramid. */
  share(value, level = this.level) {
    const within = (share) => Math.min(1, Math.max(0, share));
    if (this.mode === "raw") {
      const [low, high] = this.map.raw_scale;
      return within((value - low) / (high - low || 1));
    }
    const limit = this.map.residual_scale, quiet = Math.min(this.quiet(level), 0.6 * limit);
    return within(0.5 + (0.5 * Math.sign(value) * Math.max(Math.abs(value) - quiet, 0)) / (limit - quiet));
  }

  /** What the worst of the pairs behind a cell is expected to be off by noise alone: the maximum of m normal draws. */
  quiet(level) {
    const pairs = this.map.side ** (this.map.layout === "matrix" ? 2 : 1) * 4 ** level;
    return this.map.noise * Math.sqrt(2 * Math.log(pairs));
  }

  /** The picture of one level of the pyramid, one pixel per cell. */
  picture(level) {
    const key = `${this.maps.indexOf(this.map)} ${this.mode} ${level}`;
    if (this.images.has(key)) return this.images.get(key);
    const { shade, levels } = this.map.views[this.mode], { width, height, cells } = levels[level];
    const canvas = Object.assign(document.createElement("canvas"), { width, height });
    const context = canvas.getContext("2d"), image = context.createImageData(width, height), colours = RAMPS[this.mode];
    const diagonal = this.map.layout === "matrix" && this.map.side === 1 && level === 0;
    for (let at = 0; at < cells.length; at++) {
      const x = at % width, y = Math.floor(at / width);
      if (cells[at] === MISSING && diagonal && x === y) continue; // a rank with itself: transparent
      const colour = cells[at] === MISSING ? MISSING_GREYS[(x + y) & 1] : colours[Math.round(255 * this.share(shade[cells[at]], level))];
      image.data.set([...colour, 255], 4 * at);
    }
    context.putImageData(image, 0, 0);
    this.images.set(key, canvas);
    return canvas;
  }

  fit() {
    const { map } = this, width = this.canvas.clientWidth;
    const box = width - MARGIN - 1;
    this.rowHeight = map.layout === "matrix" ? box : Math.min(Math.max(map.height * 22, 60), 560);
    this.canvas.style.height = "";
    this.canvas.height = 1; // forget the old height before measuring anything
    Object.assign(this, { zoom: 1, x: 0, y: 0, boxWidth: box, boxHeight: this.rowHeight });
    this.draw();
  }

  /** css px per base cell. */
  get scale() {
    return [(this.boxWidth / this.map.width) * this.zoom, (this.boxHeight / this.map.height) * this.zoom];
  }

  draw() {
    const ratio = window.devicePixelRatio || 1, { canvas, map } = this;
    const width = this.boxWidth + MARGIN + 1, height = this.boxHeight + MARGIN + 1;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d"), [sx, sy] = this.scale;
    this.x = Math.min(Math.max(this.x, 0), map.width * sx - this.boxWidth);
    this.y = Math.min(Math.max(this.y, 0), map.height * sy - this.boxHeight);
    context.scale(ratio, ratio);
    context.save();
    context.beginPath();
    context.rect(MARGIN, MARGIN, this.boxWidth, this.boxHeight);
    context.clip();
    context.translate(MARGIN - this.x, MARGIN - this.y);
    this.drawCells(context, ratio, sx, sy);
    this.drawBoundaries(context, sx, sy);
    this.drawWorst(context, sx, sy);
    this.drawRoutes(context, sx, sy);
    this.drawCursor(context, sx, sy);
    context.restore();
    this.drawMargins(context, sx, sy);
  }

  drawCells(context, ratio, sx, sy) {
    const { levels } = this.map.views[this.mode];
    let level = 0; // the finest level whose cells cover a device pixel: nothing is lost between two pixels
    while (level < levels.length - 1 && Math.min(sx, sy) * 2 ** level * ratio < 1) level++;
    this.level = level;
    const picture = this.picture(level), block = 2 ** level;
    context.imageSmoothingEnabled = false;
    context.drawImage(picture, 0, 0, picture.width * sx * block, picture.height * sy * block);
    if (sx >= 52 && sy >= 18 && level === 0) this.drawFigures(context, sx, sy);
  }

  drawFigures(context, sx, sy) {
    const { map, mode } = this, { shade, levels } = map.views[mode];
    context.font = "12px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    levels[0].cells.forEach((cell, at) => {
      if (cell === MISSING) return;
      const words = mode === "raw" ? map.figure(shade[cell]).replace(/ .*/, "") : map.change(shade[cell]);
      const [r, g, b] = RAMPS[mode][Math.round(255 * this.share(shade[cell]))];
      context.fillStyle = 0.3 * r + 0.59 * g + 0.11 * b > 130 ? "#000" : "#fff";
      context.fillText(words, ((at % map.width) + 0.5) * sx, (Math.floor(at / map.width) + 0.5) * sy);
    });
  }

  /** Pairs far off are drawn large enough to be seen, however far out the view is. */
  drawWorst(context, sx, sy) {
    const { map, mode } = this, side = Math.max(sx, 4), height = Math.max(sy, 4);
    if (side === sx || map.layout !== "matrix") return;
    for (const [src, dst, seconds, residual] of map.worst) {
      const { x, y } = map.cellOf(src, dst), shade = mode === "raw" ? Math.log(seconds) : residual;
      if (residual !== null && residual < map.residual_scale) break; // within the colour scale, as all that follow
      const [r, g, b] = RAMPS[mode][Math.round(255 * this.share(shade))];
      context.fillStyle = `rgb(${r},${g},${b})`;
      context.fillRect((x + 0.5) * sx - side / 2, (y + 0.5) * sy - height / 2, side, height);
    }
  }

  /** Lines where the switch changes. */
  drawBoundaries(context, sx, sy) {
    const { fabric, map } = this, { order } = fabric;
    if (!fabric.switches.length || fabric.switches.length * 6 > this.boxWidth * this.zoom) return;
    context.fillStyle = this.mode === "raw" ? "rgba(255,255,255,.75)" : "rgba(0,0,0,.45)";
    for (let place = 1; place < order.length; place++) {
      if (fabric.switch[order[place]] === fabric.switch[order[place - 1]]) continue;
      const at = place / map.side;
      context.fillRect(at * sx - 0.5, 0, 1, map.height * sy);
      if (map.layout === "matrix") context.fillRect(0, at * sy - 0.5, map.width * sx, 1);
    }
  }

  /** Frames around the pairs whose traffic crosses a named link or cable between switches. */
  drawRoutes(context, sx, sy) {
    if (this.map.layout !== "matrix") return;
    context.lineWidth = 2;
    for (const { state, ends, directed } of this.marks.filter((mark) => mark.ends.length === 2)) {
      context.strokeStyle = STATE_COLOURS[state];
      for (const [src, dst] of directed ? [ends] : [ends, [...ends].reverse()]) {
        const [top, bottom] = this.places(src).map((place) => (place / this.map.side) * sy);
        const [left, right] = this.places(dst).map((place) => (place / this.map.side) * sx);
        const [width, height] = [right - left + sx / this.map.side, bottom - top + sy / this.map.side];
        context.strokeRect(left - 1, top - 1, width + 2, height + 2);
      }
    }
  }

  drawCursor(context, sx, sy) {
    if (!this.cursor) return;
    const { x, y } = this.cursor;
    for (const [colour, width] of [["#000", 4], ["#fff", 2]]) {
      context.strokeStyle = colour;
      context.lineWidth = width;
      context.strokeRect(x * sx - 1, y * sy - 1, Math.max(sx, 3) + 2, Math.max(sy, 3) + 2);
    }
  }

  /** Effects of the ranks beside the axes, and the parts of the findings as bars outside of them. */
  drawMargins(context, sx, sy) {
    const { map, fabric } = this, matrix = map.layout === "matrix";
    const top = [sx, this.x, this.boxWidth], left = [sy, this.y, this.boxHeight];
    this.drawEffects(top, map.effects[matrix ? 1 : 0], (at) => context.fillRect(at, MARGIN - STRIP - 1, 1, STRIP), context);
    if (matrix) this.drawEffects(left, map.effects[0], (at) => context.fillRect(MARGIN - STRIP - 1, at, STRIP, 1), context);
    for (const mark of [...this.marks].reverse()) { // the worst on top
      context.fillStyle = STATE_COLOURS[mark.state];
      for (const rank of mark.ends.flat()) {
        const place = fabric.place[rank] / map.side;
        const bar = ([scale, offset, box], paint) => {
          const length = Math.max(4, scale / map.side), at = place * scale - offset + scale / map.side / 2 - length / 2;
          if (at + length > 0 && at < box) paint(MARGIN + Math.max(at, 0), Math.min(at + length, box) - Math.max(at, 0));
        };
        bar(top, (at, length) => context.fillRect(at, 4, length, MARGIN - STRIP - 8));
        if (matrix) bar(left, (at, length) => context.fillRect(4, at, MARGIN - STRIP - 8, length));
      }
    }
    this.drawMarkNames(context, sx);
  }

  /** Names of the parts at the upper axis, right of their bars, or left where there is no room. */
  drawMarkNames(context, sx) {
    context.font = "600 12px system-ui, sans-serif";
    context.textBaseline = "top";
    let free = 0;
    for (const mark of this.marks.slice(0, NAMED_MARKS).sort((a, b) => this.places(a.ends[0])[0] - this.places(b.ends[0])[0])) {
      const width = context.measureText(mark.name).width, [first, last] = this.places(mark.ends[0]);
      const right = MARGIN + ((last + 1) / this.map.side) * sx - this.x + 5;
      const left = MARGIN + (first / this.map.side) * sx - this.x - width - 5;
      const start = right + width < this.canvas.clientWidth ? right : left;
      if (start < free) continue;
      context.fillStyle = STATE_COLOURS[mark.state];
      context.textAlign = "left";
      context.fillText(mark.name, start, 4);
      free = start + width + 8;
    }
  }

  /** First and last place of some ranks. */
  places(ranks) {
    const places = ranks.map((rank) => this.fabric.place[rank]);
    return [places.reduce((a, b) => Math.min(a, b)), places.reduce((a, b) => Math.max(a, b))];
  }

  drawEffects([scale, offset, box], effects, paint, context) {
    if (!this.map.fitted) return;
    const { order } = this.fabric, limit = this.map.residual_scale;
    for (let pixel = 0; pixel < box; pixel++) {
      const first = Math.floor(((pixel + offset) / scale) * this.map.side);
      const last = Math.max(first + 1, Math.floor(((pixel + 1 + offset) / scale) * this.map.side));
      let worst = -Infinity;
      for (let place = first; place < Math.min(last, order.length); place++) worst = Math.max(worst, effects[order[place]]);
      const [r, g, b] = RAMPS.residual[Math.round(255 * Math.min(1, Math.max(0, (worst / limit + 1) / 2)))];
      context.fillStyle = `rgb(${r},${g},${b})`;
      paint(MARGIN + pixel);
    }
  }

  legend() {
    const { map, mode } = this, context = byId("legend").getContext("2d");
    RAMPS[mode].forEach(([r, g, b], index) => {
      context.fillStyle = `rgb(${r},${g},${b})`;
      context.fillRect(index, 0, 1, 12);
    });
    const [low, high] = map.raw_scale, limit = map.residual_scale;
    byId("legend-low").textContent = mode === "raw" ? map.figure(low) : `${map.change(-limit)} (faster)`;
    byId("legend-high").textContent = mode === "raw" ? `${map.figure(high)} and slower` : `${map.change(limit)} (slower)`;
    const order = this.fabric.switches.length ? "in order of group, switch and host; lines divide the switches" : "in order of the hosts";
    const [one, other] = map.backwards ? ["receiving", "sending"] : ["sending", "receiving"];
    const axes = map.layout === "matrix" ? `Down: ${one} rank; across: ${other} rank;` : `Down: round; across: ${one} rank;`;
    const strips = map.fitted ? " Strips beside the axes: what each rank adds." : "";
    const marks = this.marks.length ? " Bars outside them: parts named by the findings." : "";
    const white = mode === "residual" ? " White: no slower than noise alone would make the worst pair of a cell." : "";
    byId("axes").textContent = `${axes} ${order}.${strips}${marks}${white} Drag to move, Ctrl + wheel to zoom.`;
  }

  /** Base cell under a point of the canvas; in a thinned-out view the worst one there. */
  cellAt(offsetX, offsetY) {
    const [sx, sy] = this.scale, { map } = this;
    const x = Math.floor((offsetX - MARGIN + this.x) / sx), y = Math.floor((offsetY - MARGIN + this.y) / sy);
    if (offsetX < MARGIN || offsetY < MARGIN || x >= map.width || y >= map.height || x < 0 || y < 0) return null;
    const { width, cells } = map.views[this.mode].levels[this.level];
    const cell = cells[(y >> this.level) * width + (x >> this.level)];
    return cell === MISSING ? { x, y } : { x: cell % map.width, y: Math.floor(cell / map.width) };
  }

  tell(cell) {
    byId("readout").textContent = cell ? this.map.describe(this.mode, cell.x, cell.y) : "";
  }

  /** Pins a cell, brings it into view. */
  select(cell) {
    this.cursor = cell;
    const [sx, sy] = this.scale;
    if (cell.x * sx < this.x || (cell.x + 1) * sx > this.x + this.boxWidth) this.x = (cell.x + 0.5) * sx - this.boxWidth / 2;
    if (cell.y * sy < this.y || (cell.y + 1) * sy > this.y + this.boxHeight) this.y = (cell.y + 0.5) * sy - this.boxHeight / 2;
    this.draw();
    this.tell(cell);
  }

  /** Zooms by a factor, keeping a point of the canvas where it is. */
  zoomBy(factor, offsetX = MARGIN + this.boxWidth / 2, offsetY = MARGIN + this.boxHeight / 2) {
    const most = Math.max(1, (96 * this.map.width) / this.boxWidth), before = this.zoom;
    this.zoom = Math.min(Math.max(this.zoom * factor, 1), most);
    const [px, py] = [offsetX - MARGIN, offsetY - MARGIN], grown = this.zoom / before;
    this.x = (this.x + px) * grown - px;
    this.y = (this.y + py) * grown - py;
    this.draw();
  }
}
