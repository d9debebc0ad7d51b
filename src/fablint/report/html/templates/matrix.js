"use strict";
// One heat map: decodes the image, thins it out by the worst cell, and says what a cell is.

const MISSING = -1;
const NO_LINK = Math.fround(-2e30); // shade of a cell that cannot be measured
const NO_MODEL = Math.fround(-1e30); // shade of a cell that was measured, and that no model says anything about

/** Typed array of a little-endian base64 string. */
function unpack(text, Type) {
  return new Type(bytesOf(text).buffer);
}

/** Numbers of two bytes each, in steps from the lowest one on; code 0 is NaN. */
function decode({ codes, low, step }) {
  return Float32Array.from(unpack(codes, Uint16Array), (code) => code ? low + (code - 1) * step : NaN);
}

function bytesOf(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text); // browsers since 2025
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let at = 0; at < bytes.length; at++) bytes[at] = letters.charCodeAt(at);
  return bytes;
}

/** Bytes that zlib compressed. */
async function inflate(text) {
  if (typeof DecompressionStream === "undefined") throw new Error("this browser is too old to decompress it (needs DecompressionStream, of 2023)");
  const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** The fabric: which rank sits where, and in which order the axes show the ranks. */
class Fabric {
  constructor(data) {
    Object.assign(this, { ranks: data.ranks, hosts: data.hosts, switches: data.switches, groups: data.groups, scopes: data.scopes });
    this.behind = new Set(data.behind);
    for (const name of ["host", "switch", "group", "order"]) this[name] = unpack(data[name], Int32Array);
    this.numbers = data.numbers && unpack(data.numbers, Int32Array); // of a page that does not name all ranks
    this.place = new Int32Array(this.ranks);
    this.order.forEach((rank, place) => { this.place[rank] = place; });
    this.oneRankPerHost = data.one_rank_per_host;
  }

  get isWhole() { return !this.numbers; }

  /** Index into scopes of a pair. The same rule as Placement.scopes. */
  scope(a, b) {
    if (this.host[a] === this.host[b]) return 0;
    if (this.switch[a] < 0 || this.switch[b] < 0) return 4;
    if (this.switch[a] === this.switch[b]) return 1;
    return this.group[a] === this.group[b] ? 2 : 3;
  }

  name(rank) {
    const host = this.hosts[this.host[rank]];
    return this.oneRankPerHost ? host : `${host} (rank ${this.numbers ? this.numbers[rank] : rank})`;
  }
}

/** Cells of one layer: base cells, and a pyramid of ever larger blocks that show their worst cell. */
class Cells {
  /** shade: (width * height) numbers that grow with badness, NaN for a missing cell. `flat`: only columns are merged. */
  constructor(width, height, shade, flat = false) {
    Object.assign(this, { flat, shade });
    const base = new Int32Array(width * height);
    for (let at = 0; at < base.length; at++) base[at] = Number.isNaN(shade[at]) ? MISSING : at;
    this.levels = [{ width, height, cells: base }];
    while ((flat ? width : Math.max(width, height)) > 1) {
      this.levels.push(this.halve(this.levels[this.levels.length - 1]));
      ({ width, height } = this.levels[this.levels.length - 1]);
    }
  }

  halve(fine) {
    const lines = this.flat ? 1 : 2, width = Math.ceil(fine.width / 2), height = Math.ceil(fine.height / lines);
    const cells = new Int32Array(width * height), { shade } = this, { cells: from, width: across, height: down } = fine;
    for (let y = 0, at = 0; y < height; y++) {
      const bottom = Math.min((y + 1) * lines, down);
      for (let x = 0; x < width; x++, at++) {
        const right = Math.min(2 * x + 2, across);
        let worst = MISSING;
        for (let line = y * lines; line < bottom; line++) {
          for (let column = 2 * x; column < right; column++) {
            const cell = from[line * across + column];
            if (cell !== MISSING && (worst === MISSING || shade[cell] > shade[worst])) worst = cell;
          }
        }
        cells[at] = worst;
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
    const planes = this.decoded[layer], shade = mode === "raw" ? this.times(planes) : this.residuals(planes);
    this.views[mode] = Object.assign(new Cells(this.width, this.height, shade, this.layout === "list"), { planes });
  }

  async decode(layer) {
    const names = Object.keys(layer), planes = await Promise.all(names.map((name) => inflate(layer[name])));
    return Object.fromEntries(names.map((name, index) => [name, planes[index]]));
  }

  times(planes) {
    const shade = new Float32Array(this.width * this.height);
    for (let at = 0; at < shade.length; at++) shade[at] = this.logTime(planes, at);
    return shade;
  }

  residuals(planes) {
    const shade = this.times(planes);
    for (let at = 0; at < shade.length; at++) {
      if (Number.isNaN(shade[at])) continue;
      const residual = shade[at] - this.modelLog(this.srcAt(planes, at), this.dstAt(planes, at));
      shade[at] = Number.isNaN(residual) ? NO_MODEL : residual;
    }
    return shade;
  }

  logTime(planes, index) {
    const code = planes.high[index] * 256 + planes.low[index];
    return code ? this.low + (code - 1) * this.step : NaN;
  }

  /** Ranks of the pair that a cell shows: the worst one of its block. */
  srcAt(planes, index) {
    const block = this.layout === "matrix" ? Math.floor(index / this.width) : index % this.width;
    return this.fabric.order[block * this.side + (planes.source ? planes.source[index] : 0)];
  }

  dstAt(planes, index) {
    const { order } = this.fabric;
    if (this.layout === "list") return order[planes.partner0[index] + 256 * planes.partner1[index] + 65536 * planes.partner2[index]];
    return order[Math.min((index % this.width) * this.side + (planes.partner ? planes.partner[index] : 0), order.length - 1)];
  }

  pairAt(planes, index) {
    const pair = { src: this.srcAt(planes, index), dst: this.dstAt(planes, index) };
    return this.layout === "list" ? { ...pair, round: Math.floor(index / this.width) } : pair;
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
    const column = Math.floor(this.fabric.place[src] / this.side), { planes } = this.views[this.shown];
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
  const rate = map.bytes / seconds / 1e6;
  if (map.rate) return rate >= 999.5 ? `${significant(rate / 1e3)} GB/s` : `${significant(rate)} MB/s`;
  if (seconds >= 1) return `${significant(seconds)} s`;
  return seconds >= 1e-3 ? `${significant(seconds * 1e3)} ms` : `${significant(seconds * 1e6)} us`;
}

/** Relative change of the figure (a rate falls when the time grows), as text: a factor from twice as much on. */
function changeOf(map, logEffect) {
  const value = 100 * Math.expm1(map.rate ? -logEffect : logEffect);
  if (value >= 100) return `${significant(1 + value / 100, 2)} x`;
  const digits = value.toFixed(Math.abs(value) >= 10 ? 0 : 1).replace("-0.0", "0.0");
  return `${value > 0 ? "+" : ""}${digits} %`;
}

/** A number with so many significant digits. */
function significant(value, digits = 3) {
  const rounded = Number(value.toPrecision(digits)), decimals = digits - 1 - Math.floor(Math.log10(Math.abs(rounded) || 1));
  return rounded.toFixed(Math.min(Math.max(decimals, 0), 9));
}
