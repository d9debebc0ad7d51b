// A matrix of medians: of the pairs of two switches, two groups, two blocks of hosts.

class BlockMap {
  constructor(data, fabric) {
    Object.assign(this, data);
    Object.assign(this, { data, fabric });
    this.linked = data.kind === "link";
    Object.assign(this, { layout: "blocks", side: 1, width: data.names.length, height: data.names.length, views: {}, worst: [] });
    this.across = this.down = this.linked ? new LinkAxis(data.names) : new BlockAxis(data.names, unpack(data.starts, Int32Array));
  }

  get backwards() { return this.payload === "dst" && !this.linked; }

  /** Its kind in the address of the page, of each matrix of a row and size another. */
  get addressed() { return this.late ? `late-${this.kind}` : this.kind; }

  /** Fills the matrix from the list of its cells. */
  unpackCells() {
    const { data } = this, count = this.width * this.height, at = unpack(data.at, Int32Array);
    Object.assign(this, { pairs: new Uint16Array(count), isKnown: new Uint8Array(count), time: new Float32Array(count).fill(NaN), residual: new Float32Array(count).fill(NaN) });
    const time = decode(data.time), residual = decode(data.residual), pairs = unpack(data.pairs, Uint16Array);
    for (let index = 0; index < at.length; index++) {
      const cell = at[index];
      this.isKnown[cell] = 1;
      this.time[cell] = time[index];
      this.residual[cell] = residual[index];
      this.pairs[cell] = pairs[index];
    }
    this.isFaint = this.late && !this.linked && this.singles();
  }

  /** Cells of one measurement outside of the frames: the messages of one pair are often late without a fault. */
  singles() {
    const found = Uint8Array.from(this.pairs, (pairs) => Number(pairs === 1));
    for (const cells of this.framed) for (const cell of unpack(cells, Int32Array)) found[cell] = 0;
    return found;
  }

  async prepare(mode) {
    if (this.views[mode]) return;
    if (!this.isKnown) this.unpackCells();
    const values = mode === "raw" ? this.time : this.residual;
    this.views[mode] = new Cells(this.width, this.height, values.map((value, index) => {
      if (!this.pairs[index]) return this.linked && !this.isKnown[index] ? NO_LINK : NaN;
      return Number.isNaN(value) ? NO_MODEL : value;
    }));
  }

  figure(value) { return this.late ? `${(100 * value).toFixed(1)} %` : figureOf(this, value); }

  change(value) { return changeOf(this, value); }

  describe(_, x, y) {
    const index = y * this.width + x, arrow = this.backwards ? "\u2190" : "\u2192";
    const name = `${this.names[y]} ${arrow} ${this.names[x]}`, pairs = this.pairs[index];
    if (this.linked && !this.isKnown[index]) return `${this.names[y]}, ${this.names[x]}: no link`;
    if (!pairs) return `${name}: not measured`;
    const words = this.late
      ? [`${name}: ${this.figure(this.time[index])} of the messages take ${this.late.toFixed(2)} times the model's time or more`]
      : [`${name}: median ${this.figure(this.time[index])}`];
    const residual = this.residual[index];
    if (this.fitted) words.push(Number.isNaN(residual) ? this.linked ? "its pairs are those of other findings" : "no model" : `${this.change(residual)} against the model`);
    words.push(`${pairs.toLocaleString("en")} measurement${pairs === 1 ? "" : "s"}`);
    return words.join(", ");
  }

  cellOf(src, dst) {
    const { place, switch: codes, switches } = this.fabric;
    if (this.linked) {
      const [x, y] = [dst, src].map((rank) => this.names.indexOf(switches[codes[rank]]));
      return x < 0 || y < 0 ? null : { x, y };
    }
    return { x: this.across.block(place[dst]), y: this.across.block(place[src]) };
  }
}
