"use strict";
// One heat map: decodes the image, thins it out by the worst cell, and says what a cell is.

const MISSING = -1;
const NO_LINK = Math.fround(-2e30); // shade of a cell that cannot be measured
const NO_MODEL = Math.fround(-1e30); // shade of a cell that was measured, and that no model says anything about

/** Typed array of a little-endian base64 string. */
function unpack(text, Type) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Type(bytes.buffer);
}

/** The fabric: which rank sits where, and in which order the axes show the ranks. */
class Fabric {
  constructor(data) {
    Object.assign(this, { ranks: data.ranks, hosts: data.hosts, switches: data.switches, groups: data.groups, scopes: data.scopes });
    for (const name of ["host", "switch", "group", "order"]) this[name] = unpack(data[name], Int32Array);
    this.place = new Int32Array(this.ranks);
    this.order.forEach((rank, place) => { this.place[rank] = place; });
    this.oneRankPerHost = this.hosts.length === this.ranks;
  }

  /** Index into scopes of a pair. The same rule as Placement.scopes. */
  scope(a, b) {
    if (this.host[a] === this.host[b]) return 0;
    if (this.switch[a] < 0 || this.switch[b] < 0) return 4;
    if (this.switch[a] === this.switch[b]) return 1;
    return this.group[a] === this.group[b] ? 2 : 3;
  }

  name(rank) {
    const host = this.hosts[this.host[rank]];
    return this.oneRankPerHost ? host : `${host} (rank ${rank})`;
  }
}

/** Cells of one layer: base cells, and a pyramid of ever larger blocks that show their worst cell. */
class Cells {
  /** badness(index): a number that grows with badness, NaN for a missing cell. `flat`: only columns are merged. */
  constructor(width, height, badness, flat = false) {
    this.flat = flat;
    const base = new Int32Array(width * height);
    this.shade = new Float32Array(width * height);
    for (let i = 0; i < base.length; i++) {
      this.shade[i] = badness(i);
      base[i] = Number.isNaN(this.shade[i]) ? MISSING : i;
    }
    this.levels = [{ width, height, cells: base }];
    while ((flat ? width : Math.max(width, height)) > 1) {
      this.levels.push(this.halve(this.levels[this.levels.length - 1]));
      ({ width, height } = this.levels[this.levels.length - 1]);
    }
  }

  halve(fine) {
    const down = this.flat ? 0 : 1, width = Math.ceil(fine.width / 2), height = this.flat ? fine.height : Math.ceil(fine.height / 2);
    const cells = new Int32Array(width * height).fill(MISSING);
    for (let y = 0; y < fine.height; y++) {
      for (let x = 0; x < fine.width; x++) {
        const cell = fine.cells[y * fine.width + x], at = (y >> down) * width + (x >> 1);
        if (cell !== MISSING && (cells[at] === MISSING || this.shade[cell] > this.shade[cells[at]])) cells[at] = cell;
      }
    }
    return { width, height, cells };
  }
}

class HeatMap {
  constructor(data, fabric) {
    Object.assign(this, data);
    this.data = data;
    this.fabric = fabric;
    this.txEffect = unpack(data.tx, Float32Array);
    this.rxEffect = unpack(data.rx, Float32Array);
    this.effects = data.effects.map((effect) => unpack(effect, Float32Array)); // of all ranks, faulty ones too
    this.classLog = data.class_log.map((value) => (value === null ? NaN : value));
    this.decoded = {};
    this.views = {};
    this.across = new RankAxis(fabric, this.side);
    this.down = this.layout === "list" ? new RoundAxis(this.height) : this.across;
  }

  /** Direction of the payload, seen from the rank that measured: backwards for a get, and from a fan-out's hub. */
  get arrow() { return this.backwards ? "\u2190" : "\u2192"; }

  /** Decodes what `mode` (raw or residual) needs. */
  async prepare(mode) {
    if (this.views[mode]) return;
    const layer = this.layers[mode] ? mode : "raw";
    if (!this.decoded[layer]) this.decoded[layer] = await this.decode(this.layers[layer]);
    const planes = this.decoded[layer];
    this.views[mode] = new Cells(this.width, this.height, (index) => {
      const time = this.logTime(planes, index);
      if (mode === "raw" || Number.isNaN(time)) return time;
      const pair = this.pairAt(planes, index), residual = time - this.modelLog(pair.src, pair.dst);
      return Number.isNaN(residual) ? NO_MODEL : residual;
    }, this.layout === "list");
    this.views[mode].planes = planes;
  }

  async decode(layer) {
    const image = new Image();
    await new Promise((loaded, failed) => {
      image.onload = loaded;
      image.onerror = () => failed(new Error("the browser could not decode the image of the matrix"));
      image.src = layer.image;
    });
    const { width, height } = this;
    const canvas = Object.assign(document.createElement("canvas"), { width: width * layer.planes.length, height });
    const context = canvas.getContext("2d", { willReadFrequently: true });
    context.drawImage(image, 0, 0);
    const pixels = context.getImageData(0, 0, canvas.width, height).data;
    const planes = {};
    let sum = 0;
    layer.planes.forEach((name, index) => {
      const plane = new Uint8Array(width * height);
      for (let y = 0, at = 0; y < height; y++) {
        for (let x = 0; x < width; x++, at++) sum += plane[at] = pixels[4 * (y * canvas.width + index * width + x)];
      }
      planes[name] = plane;
    });
    // A browser that resists fingerprinting hands out altered pixels: rather no map than a false one.
    if (sum !== layer.sum) throw new Error("this browser alters the pixels of canvases, so the heat map cannot be shown");
    return planes;
  }

  logTime(planes, index) {
    const code = planes.high[index] * 256 + planes.low[index];
    return code ? this.low + (code - 1) * this.step : NaN;
  }

  /** Ranks of the pair that a cell shows: the worst one of its block. */
  pairAt(planes, index) {
    const x = index % this.width, y = Math.floor(index / this.width), { order } = this.fabric;
    const inside = (plane) => (plane ? plane[index] : 0);
    if (this.layout === "matrix") {
      return {
        src: order[y * this.side + inside(planes.source)],
        dst: order[Math.min(x * this.side + inside(planes.partner), order.length - 1)],
      };
    }
    const place = planes.partner0[index] + 256 * planes.partner1[index] + 65536 * planes.partner2[index];
    return { src: order[x * this.side + inside(planes.source)], dst: order[place], round: y };
  }

  modelLog(src, dst) {
    return this.classLog[this.fabric.scope(src, dst)] + this.txEffect[src] + this.rxEffect[dst];
  }

  figure(logTime) { return figureOf(this, logTime); }

  change(logEffect) { return changeOf(this, logEffect); }

  /** What cell (x, y) of the base level is, in words. */
  describe(mode, x, y) {
    const index = y * this.width + x, view = this.views[mode];
    const time = this.logTime(view.planes, index);
    if (Number.isNaN(time)) return this.describeMissing(x, y);
    const { src, dst, round } = this.pairAt(view.planes, index);
    const residual = time - this.modelLog(src, dst);
    const words = [`${this.fabric.name(src)} ${this.arrow} ${this.fabric.name(dst)}: ${this.figure(time)}`];
    words.push(Number.isNaN(residual) ? "no model" : `${this.change(residual)} against the model`);
    if (!this.fitted) words.pop();
    words.push(this.fabric.scopes[this.fabric.scope(src, dst)].replace("unknown", "between hosts"));
    if (round !== undefined) words.push(`round ${round}`);
    if (this.side > 1) words.push(`worst of ${this.layout === "matrix" ? this.side * this.side : this.side} pairs here`);
    return words.join(", ");
  }

  describeMissing(x, y) {
    const { order } = this.fabric, name = (place) => this.fabric.name(order[Math.min(place, order.length - 1)]);
    if (this.layout === "list") return `${name(x * this.side)}, round ${y}: not measured`;
    if (this.side === 1 && x === y) return `${name(x)}: with itself`;
    return `${name(y * this.side)} ${this.arrow} ${name(x * this.side)}: not measured`;
  }

  /** The base cell that shows a pair of ranks. */
  cellOf(src, dst) {
    const x = Math.floor(this.fabric.place[dst] / this.side), y = Math.floor(this.fabric.place[src] / this.side);
    if (this.layout === "matrix") return { x, y };
    const column = Math.floor(this.fabric.place[src] / this.side), { planes } = this.views.raw;
    for (let round = 0; round < this.height; round++) {
      const pair = this.pairAt(planes, round * this.width + column);
      if (pair.src === src && pair.dst === dst) return { x: column, y: round };
    }
    return { x: column, y: 0 };
  }
}

/** A time as a figure of a map: seconds, or bytes per second. */
function figureOf(map, logTime) {
  const seconds = Math.exp(logTime);
  if (map.rate) return `${significant(map.size / seconds / 1e6)} MB/s`;
  if (seconds >= 1) return `${significant(seconds)} s`;
  return seconds >= 1e-3 ? `${significant(seconds * 1e3)} ms` : `${significant(seconds * 1e6)} us`;
}

/** Relative change of the figure (a rate falls when the time grows), as text. */
function changeOf(map, logEffect) {
  const value = 100 * Math.expm1(map.rate ? -logEffect : logEffect);
  return `${value > 0 ? "+" : ""}${Math.abs(value) >= 10 ? value.toFixed(0) : value.toFixed(1)} %`;
}

/** Three significant digits, and two decimals where there is room. */
function significant(value) {
  const decimals = Math.max(2 - Math.floor(Math.log10(Math.abs(value) || 1)), Math.abs(value) < 1000 ? 2 : 0);
  return value.toFixed(Math.min(decimals, 9));
}
