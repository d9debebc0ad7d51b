// A matrix of medians: of the pairs of two switches, two groups, two blocks of hosts.

class BlockMap {
  constructor(data, fabric) {
    Object.assign(this, data);
    this.fabric = fabric;
    const count = data.names.length ** 2, at = unpack(data.at, Int32Array);
    this.pairs = new Uint16Array(count);
    this.linked = data.kind === "link" && new Uint8Array(count);
    for (const name of ["time", "residual"]) this[name] = new Float32Array(count).fill(NaN);
    const [time, residual, pairs] = [unpack(data.time, Float32Array), unpack(data.residual, Float32Array), unpack(data.pairs, Uint16Array)];
    at.forEach((cell, index) => {
      [this.time[cell], this.residual[cell], this.pairs[cell]] = [time[index], residual[index], pairs[index]];
      if (this.linked) this.linked[cell] = 1;
    });
    Object.assign(this, { layout: "blocks", side: 1, width: data.names.length, height: data.names.length, views: {}, worst: [] });
    this.across = this.down = this.linked ? new LinkAxis(data.names) : new BlockAxis(data.names, unpack(data.starts, Int32Array));
  }

  get backwards() { return this.payload === "dst" && !this.linked; }

  async prepare(mode) {
    this.views[mode] ??= new Cells(this.width, this.height, (index) => {
      if (!this.pairs[index]) return this.linked && !this.linked[index] ? NO_LINK : NaN;
      const value = mode === "raw" ? this.time[index] : this.residual[index];
      return Number.isNaN(value) ? NO_MODEL : value;
    });
  }

  figure(value) { return this.late ? `${(100 * value).toFixed(1)} %` : figureOf(this, value); }

  change(value) { return changeOf(this, value); }

  describe(_, x, y) {
    const index = y * this.width + x, arrow = this.backwards ? "\u2190" : "\u2192";
    const name = `${this.names[y]} ${arrow} ${this.names[x]}`, pairs = this.pairs[index];
    if (this.linked && !this.linked[index]) return `${this.names[y]}, ${this.names[x]}: no link`;
    if (!pairs) return `${name}: not measured`;
    const words = this.late
      ? [`${name}: ${this.figure(this.time[index])} of the messages take ${this.late.toFixed(2)} times their pair's median or more`]
      : [`${name}: median ${this.figure(this.time[index])}`];
    const residual = this.residual[index];
    if (this.fitted) words.push(Number.isNaN(residual) ? "no model" : `${this.change(residual)} against the model`);
    words.push(`${pairs.toLocaleString("en")} measurement${pairs === 1 ? "" : "s"}`);
    return words.join(", ");
  }

  cellOf(src, dst) {
    if (this.linked) return { x: 0, y: 0 };
    const { place } = this.fabric;
    return { x: this.across.block(place[dst]), y: this.across.block(place[src]) };
  }
}
