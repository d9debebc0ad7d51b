// The view: draws the chosen map, moves and zooms in it.

const STRIP = 9; // css px beside the map, for the effects of the ranks
const LINES_APART = 10; // css px between the lines of the switches
const BAR = 6; // outside of them, for the components of the findings
const FAINT = 100; // opacity of a faint cell, of 255
const CALM = 0.45; // opacity of the cells outside of frames, where each is one measurement

/** What ranks add at one size of a row that has no map of pairs. */
class Model {
  constructor(data) { Object.assign(this, data, { effects: data.effects.map((effect) => unpack(effect, Float32Array)) }); }

  change(logEffect) { return changeOf(this, logEffect); }
}

class View {
  constructor(data, fabric) {
    this.fabric = fabric;
    this.maps = data.maps.map((map) => (map.names ? new BlockMap(map, fabric) : new HeatMap(map, fabric)));
    this.models = [...this.maps.filter((map) => map.effects), ...data.models.map((model) => new Model(model))];
    this.marks = new Marks(data.marks, fabric);
    this.canvas = byId("canvas");
    this.map = this.maps[0];
    this.mode = "raw";
    this.cursor = null;
    this.images = new Map();
  }

  async show(map, mode) {
    await map.prepare(mode);
    map.shown = mode;
    const moved = map !== this.map || !this.zoom;
    Object.assign(this, { map, mode });
    if (moved) this.fit();
    else this.draw();
    drawLegend(this);
  }

  /** Share of the colour scale, 0..1, of a cell's shade; `quiet` is what noise alone makes of the cells of a level. */
  share(value, quiet = this.quiet(this.level)) {
    const within = (share) => Math.min(1, Math.max(0, share));
    if (this.mode === "raw") {
      const [low, high] = this.map.raw_scale;
      return within((value - low) / (high - low || 1));
    }
    const limit = this.map.residual_scale;
    return within(0.5 + (0.5 * Math.sign(value) * Math.max(Math.abs(value) - quiet, 0)) / (limit - quiet));
  }

  /** What the worst of the pairs behind a cell is expected to be off by noise alone: the maximum of m normal draws. */
  quiet(level) {
    const flat = this.map.layout === "list";
    const pairs = this.map.side ** (flat ? 1 : 2) * (flat ? 2 : 4) ** level;
    return Math.min(this.map.noise * Math.sqrt(2 * Math.log(pairs)), 0.6 * this.map.residual_scale);
  }

  isDiagonal(at) {
    const { map } = this;
    return map.layout === "matrix" && map.side === 1 && at % map.width === Math.floor(at / map.width);
  }

  /** The picture of one level of the pyramid, one pixel per cell. */
  picture(level) {
    const key = `${this.maps.indexOf(this.map)} ${this.mode} ${level}`;
    if (this.images.has(key)) return this.images.get(key);
    const { shade, levels } = this.map.views[this.mode], { width, height, cells } = levels[level];
    const canvas = Object.assign(document.createElement("canvas"), { width, height });
    const context = canvas.getContext("2d"), image = context.createImageData(width, height), colours = RAMPS[this.mode], quiet = this.quiet(level);
    for (let at = 0; at < cells.length; at++) {
      const value = shade[cells[at]];
      if (value === NO_LINK || (cells[at] === MISSING && level === 0 && this.isDiagonal(at))) continue; // a rank with itself: transparent
      const colour = cells[at] === MISSING ? MISSING_GREY
        : value === NO_MODEL ? NO_MODEL_COLOUR : colours[Math.round(255 * this.share(value, quiet))];
      for (let channel = 0; channel < 3; channel++) image.data[4 * at + channel] = colour[channel];
      image.data[4 * at + 3] = this.map.isFaint?.[cells[at]] ? FAINT : 255;
    }
    context.putImageData(image, 0, 0);
    this.images.set(key, canvas);
    return canvas;
  }

  fit() {
    const { map } = this, width = this.canvas.clientWidth, names = Math.min(112, Math.max(48, width / 6));
    const context = this.canvas.getContext("2d");
    context.font = "600 11px system-ui, sans-serif";
    const widest = (axis, down) => {
      const marked = this.map.layout === "list" && down ? [] : this.marks.names(map, axis, down);
      const texts = [...marked, ...[1, 4, LABEL * 8].flatMap((scale) => axis.labels(scale).slice(0, 400))].map(({ text }) => context.measureText(text).width);
      return Math.ceil(Math.min(names, Math.max(24, ...texts))) + STRIP + BAR + 10;
    };
    [this.left, this.top] = [widest(map.down, true), widest(map.across, false)];
    const box = width - this.left - 1;
    this.canvas.style.height = "";
    this.canvas.height = 1; // forget the old height before measuring anything
    const height = map.layout === "list" ? Math.min(Math.max(map.height * 22, 60), 560) : box;
    Object.assign(this, { zoom: 1, x: 0, y: 0, boxWidth: box, boxHeight: height });
    this.draw();
  }

  /** css px per base cell. */
  get scale() {
    return [(this.boxWidth / this.map.width) * this.zoom, (this.boxHeight / this.map.height) * this.zoom];
  }

  draw() {
    const ratio = window.devicePixelRatio || 1, { canvas, map } = this;
    const width = this.boxWidth + this.left + 1, height = this.boxHeight + this.top + 1;
    canvas.style.touchAction = this.zoom > 1 ? "none" : "pan-y";
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d"), [sx, sy] = this.scale;
    this.x = Math.min(Math.max(this.x, 0), map.width * sx - this.boxWidth);
    this.y = Math.min(Math.max(this.y, 0), map.height * sy - this.boxHeight);
    context.scale(ratio, ratio);
    context.save();
    context.beginPath();
    context.rect(this.left, this.top, this.boxWidth, this.boxHeight);
    context.clip();
    if (map.linked) { // cells without a link are transparent: links as fast as the model are nearly white
      context.fillStyle = colourOf("--no-link");
      context.fillRect(this.left, this.top, this.boxWidth, this.boxHeight);
    }
    context.translate(this.left - this.x, this.top - this.y);
    this.drawCells(context, ratio, sx, sy);
    this.drawBoundaries(context, sx, sy);
    this.drawWorst(context, sx, sy);
    this.marks.draw(context, this, sx, sy);
    this.drawCursor(context, sx, sy);
    context.restore();
    drawMargins(this, context, sx, sy);
  }

  /** Are single measurements faint, in a map whose frames and repeated pairs stand out? */
  get isCalm() {
    const { map, marks } = this;
    return this.mode === "residual" && map.fitted && map.layout !== "blocks" && map.side === 1 && (marks.only !== null || !marks.areMany(map));
  }

  drawCells(context, ratio, sx, sy) {
    const { levels, flat } = this.map.views[this.mode], thin = flat ? sx : Math.min(sx, sy);
    let level = 0; // the finest level whose cells cover a device pixel: nothing is lost between two pixels
    while (level < levels.length - 1 && thin * 2 ** level * ratio < 1) level++;
    this.level = level;
    const picture = this.picture(level), block = 2 ** level;
    context.imageSmoothingEnabled = false;
    const draw = () => context.drawImage(picture, 0, 0, picture.width * sx * block, picture.height * sy * (flat ? 1 : block));
    if (!this.isCalm) draw();
    else {
      context.globalAlpha = CALM;
      draw();
      context.globalAlpha = 1;
      context.save();
      context.beginPath();
      for (const [left, top, right, bottom] of this.marks.visible.flatMap((mark) => this.marks.frames(this.map, mark))) context.rect(left * sx, top * sy, (right - left) * sx, (bottom - top) * sy);
      context.clip();
      draw();
      context.restore();
    }
    if (sx >= 52 && sy >= 18 && level === 0) this.drawFigures(context, sx, sy);
  }

  drawFigures(context, sx, sy) {
    const { map, mode } = this, { shade, levels } = map.views[mode], { cells } = levels[0];
    context.font = "12px system-ui, sans-serif";
    context.textAlign = "center";
    context.textBaseline = "middle";
    const frames = this.isCalm ? this.marks.visible.flatMap((mark) => this.marks.frames(map, mark)) : [], ink = colourOf("--ink");
    const end = (offset, box, scale, count) => Math.min(count, Math.ceil((offset + box) / scale));
    for (let y = Math.floor(this.y / sy); y < end(this.y, this.boxHeight, sy, map.height); y++) {
      for (let x = Math.floor(this.x / sx); x < end(this.x, this.boxWidth, sx, map.width); x++) {
        const cell = cells[y * map.width + x];
        if (cell === MISSING || shade[cell] <= NO_MODEL || map.isFaint?.[cell]) continue;
        const words = mode === "raw" ? map.figure(shade[cell]).replace(/ .*/, "") : map.change(shade[cell]);
        const [r, g, b] = RAMPS[mode][Math.round(255 * this.share(shade[cell]))], isFramed = (one) => one[0] <= x && x < one[2] && one[1] <= y && y < one[3];
        const onGround = this.isCalm && !frames.some(isFramed); // a faint cell is as light, or as dark, as the page
        context.fillStyle = onGround ? ink : 0.3 * r + 0.59 * g + 0.11 * b > 130 ? "#000" : "#fff";
        context.fillText(words, (x + 0.5) * sx, (y + 0.5) * sy);
      }
    }
  }

  /** Pairs that were slow each time, or without a model the slowest, are drawn large enough to be seen from afar. */
  drawWorst(context, sx, sy) {
    const { map, mode } = this, side = Math.max(sx, 4), height = Math.max(sy, 4);
    if (map.layout !== "matrix" || (side === sx && !this.isCalm)) return;
    for (const [src, dst, seconds, residual] of map.fitted ? map.repeated : map.worst) {
      const { x, y } = map.cellOf(src, dst), shade = mode === "raw" ? Math.log(seconds) : residual;
      const [r, g, b] = RAMPS[mode][Math.round(255 * this.share(shade))];
      context.fillStyle = `rgb(${r},${g},${b})`;
      context.fillRect((x + 0.5) * sx - side / 2, (y + 0.5) * sy - height / 2, side, height);
    }
  }

  /** Lines where the switch changes. */
  drawBoundaries(context, sx, sy) {
    const { map } = this;
    context.fillStyle = this.mode === "raw" ? "rgba(255,255,255,.5)" : "rgba(0,0,0,.16)";
    const lines = map.across.dividers;
    if (lines.length * LINES_APART > this.boxWidth * this.zoom) return;
    for (const at of lines) context.fillRect(at * sx - 0.5, 0, 1, map.height * sy);
    if (map.layout === "matrix") for (const at of lines) context.fillRect(0, at * sy - 0.5, map.width * sx, 1);
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

  /** Base cell under a point of the canvas; in a thinned-out view the worst one there. */
  cellAt(offsetX, offsetY) {
    const [sx, sy] = this.scale, { map } = this;
    const x = Math.floor((offsetX - this.left + this.x) / sx), y = Math.floor((offsetY - this.top + this.y) / sy);
    if (offsetX < this.left || offsetY < this.top || x >= map.width || y >= map.height || x < 0 || y < 0) return null;
    const { levels, flat } = map.views[this.mode], { width, cells } = levels[this.level];
    const cell = cells[(y >> (flat ? 0 : this.level)) * width + (x >> this.level)];
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

  /** Zooms to frames, with the cells around them. */
  zoomTo(frames) {
    const bounds = [0, 1].map((at) => [Math.min(...frames.map((one) => one[at])), Math.max(...frames.map((one) => one[at + 2]))]);
    const [across, down] = bounds.map(([first, end]) => end - first), { map } = this, flat = map.layout === "list";
    this.zoom = 1;
    const room = Math.min(map.width / Math.max(across, 1), flat ? Infinity : map.height / Math.max(down, 1)) / 1.5;
    this.zoom = Math.min(Math.max(room, 1), Math.max(1, (24 * map.width) / this.boxWidth));
    const [sx, sy] = this.scale;
    this.x = ((bounds[0][0] + bounds[0][1]) / 2) * sx - this.boxWidth / 2;
    this.y = ((bounds[1][0] + bounds[1][1]) / 2) * sy - this.boxHeight / 2;
    this.draw();
  }

  /** Zooms by a factor, keeping a point of the canvas where it is. */
  zoomBy(factor, offsetX = this.left + this.boxWidth / 2, offsetY = this.top + this.boxHeight / 2) {
    const most = Math.max(1, (96 * this.map.width) / this.boxWidth), before = this.zoom;
    this.zoom = Math.min(Math.max(this.zoom * factor, 1), most);
    const [px, py] = [offsetX - this.left, offsetY - this.top], grown = this.zoom / before;
    this.x = (this.x + px) * grown - px;
    this.y = (this.y + py) * grown - py;
    this.draw();
  }
}
