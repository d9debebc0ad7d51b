// The components of the findings on a map: frames around the pairs that use them, bars and names at the axes.

const STATE_COLOURS = { FAULT: "#d1242f", SUSPECT: "#d97706", CONFOUNDED: "#8250df", SUPPRESSED: "#0969da", "NOT JUDGED": "#7d7d7d" };
const LEAST = 8; // css px of a frame
const COVERED = 0.2; // share of a block's pairs from which the block is framed

class Marks {
  constructor(list, fabric) {
    this.fabric = fabric;
    this.list = list.map((mark) => ({ ...mark, frames: unpack(mark.frames, Int32Array) }));
    this.known = new Map();
  }

  /** Frames of a mark on a map as [left, top, right, bottom] in cells, each once. */
  frames(map, mark) {
    const known = this.known.get(map) || this.known.set(map, new Map()).get(map);
    if (!known.has(mark)) known.set(mark, map.linked ? this.joined(map, new Map(mark.links.map(([y, x]) => [y * map.width + x, 1]))) : this.frame(map, mark));
    return known.get(mark);
  }

  frame(map, mark) {
    const found = new Map(), both = map.payload === "both" || map.payload === "none", covered = new Map();
    for (let at = 0; at < mark.frames.length; at += 4) {
      const places = mark.frames.subarray(at, at + 4), back = [places[2], places[3], places[0], places[1]];
      for (const frame of both ? [places, back] : [map.backwards ? back : places]) {
        if (map.layout === "blocks") this.cover(map, frame, covered);
        else {
          const [[top, bottom], [left, right]] = [map.down.span(frame[0], frame[1]), map.across.span(frame[2], frame[3])];
          found.set(`${left} ${top} ${right} ${bottom}`, [left, top, right, bottom]);
        }
      }
    }
    return map.layout === "blocks" ? this.joined(map, covered) : [...found.values()];
  }

  /** Adds the share of each block's pairs that a frame of places covers. */
  cover(map, [top, bottom, left, right], covered) {
    const { starts } = map.down, share = (block, first, end) =>
      (Math.min(end, starts[block + 1]) - Math.max(first, starts[block])) / (starts[block + 1] - starts[block]);
    for (let y = map.down.block(top); y <= map.down.block(bottom - 1); y++) {
      for (let x = map.down.block(left); x <= map.down.block(right - 1); x++) {
        const cell = y * map.width + x;
        covered.set(cell, (covered.get(cell) || 0) + share(y, top, bottom) * share(x, left, right));
      }
    }
  }

  /** Frames around runs of cells of which a good part is covered: runs along lines, then equal runs of lines below each other. */
  joined(map, covered) {
    const isIn = (x, y) => (covered.get(y * map.width + x) || 0) >= COVERED, open = new Map(), found = [];
    for (let y = 0; y <= map.height; y++) {
      const runs = new Set();
      for (let x = 0; y < map.height && x < map.width; x++) {
        if (!isIn(x, y)) continue;
        const left = x;
        while (x + 1 < map.width && isIn(x + 1, y)) x++;
        runs.add(`${left} ${x + 1}`);
      }
      for (const [run, top] of [...open]) {
        if (runs.has(run)) continue;
        const [left, right] = run.split(" ").map(Number);
        found.push([left, top, right, y]);
        open.delete(run);
      }
      for (const run of runs) if (!open.has(run)) open.set(run, y);
    }
    return found;
  }

  draw(context, view, sx, sy) {
    const { map } = view;
    if (map.layout === "list") return;
    context.save();
    for (const mark of [...this.list].reverse()) { // the worst on top
      context.beginPath();
      for (const [left, top, right, bottom] of this.frames(map, mark)) {
        if (right * sx < view.x || left * sx > view.x + view.boxWidth || bottom * sy < view.y || top * sy > view.y + view.boxHeight) continue;
        const [width, height] = [Math.max((right - left) * sx + 2, LEAST), Math.max((bottom - top) * sy + 2, LEAST)];
        context.rect(((left + right) * sx - width) / 2, ((top + bottom) * sy - height) / 2, width, height);
      }
      const thin = Math.min(sx, sy) < 3;
      for (const [colour, width] of [["#fff", thin ? 2.5 : 4], [STATE_COLOURS[mark.state], thin ? 1 : 2]]) {
        Object.assign(context, { strokeStyle: colour, lineWidth: width });
        context.stroke();
      }
    }
    context.restore();
  }

  /** Cells of a mark's ends on an axis: [first, end] of each run of places. */
  bars(axis, mark, down) {
    if (axis instanceof LinkAxis) {
      const own = axis.names.indexOf(mark.name);
      return own >= 0 ? [[own, own + 1]] : mark.links.map((ends) => [ends[down ? 0 : 1], ends[down ? 0 : 1] + 1]);
    }
    return mark.ends.flatMap((runs) => runs.map(([first, end]) => axis.span(first, end)));
  }

  /** Middles and names of the marks on an axis. A component that only sends has none across, one that receives none down. */
  names(map, axis, down) {
    if (map.linked) return [];
    const hidden = map.payload === "both" || map.payload === "none" ? null : down !== map.backwards ? "rx" : "tx";
    return this.list.filter((mark) => mark.ends.length && mark.direction !== hidden).map((mark) => {
      const runs = mark.ends[down || mark.ends.length === 1 ? 0 : mark.ends.length - 1], [first, end] = axis.span(...runs[0]);
      return { at: (first + end) / 2, text: mark.name, colour: STATE_COLOURS[mark.state] };
    });
  }
}
