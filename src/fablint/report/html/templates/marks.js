// The components of the findings on a map: frames around the pairs that use them, bars and names at the axes.

const STATE_COLOURS = { FAULT: "#d1242f", SUSPECT: "#d97706", CONFOUNDED: "#8250df", SUPPRESSED: "#0969da", "NOT JUDGED": "#7d7d7d" };
const LEAST = 8; // css px of a frame

class Marks {
  constructor(list, fabric) {
    this.fabric = fabric;
    this.list = list.map((mark, index) => ({ ...mark, index, frames: unpack(mark.frames, Int32Array) }));
    this.known = new Map();
  }

  /** Frames of a mark on a map as [left, top, right, bottom] in cells, each once. */
  frames(map, mark) {
    const known = this.known.get(map) || this.known.set(map, new Map()).get(map);
    if (!known.has(mark)) known.set(mark, map.layout === "blocks" ? this.joined(map, this.cells(map, mark)) : this.frame(map, mark));
    return known.get(mark);
  }

  /** Cells of a matrix of blocks or of links. */
  cells(map, mark) {
    return new Set(map.linked ? mark.links.map(([y, x]) => y * map.width + x) : unpack(map.framed[mark.index], Int32Array));
  }

  frame(map, mark) {
    const found = new Map(), both = map.payload === "both" || map.payload === "none";
    for (let at = 0; at < mark.frames.length; at += 4) {
      const places = mark.frames.subarray(at, at + 4), back = [places[2], places[3], places[0], places[1]];
      for (const [top, bottom, left, right] of both ? [places, back] : [map.backwards ? back : places]) {
        const frame = [...map.across.span(left, right), ...map.down.span(top, bottom)];
        found.set(frame.join(" "), [frame[0], frame[2], frame[1], frame[3]]);
      }
    }
    return [...found.values()];
  }

  /** Frames around runs of cells: runs along lines, then equal runs of lines below each other. */
  joined(map, cells) {
    const isIn = (x, y) => cells.has(y * map.width + x), open = new Map(), found = [];
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

  /** Cells of a mark's ends on an axis: [first, end] of each run of places. Of links those of their ends, of hosts their switches. */
  bars(axis, mark, down) {
    if (!(axis instanceof LinkAxis)) return mark.ends.flatMap((runs) => runs.map(([first, end]) => axis.span(first, end)));
    const { order, switch: codes, switches } = this.fabric, own = axis.names.indexOf(mark.name);
    if (own >= 0) return [[own, own + 1]];
    if (mark.links.length) return mark.links.map((ends) => [ends[down ? 0 : 1], ends[down ? 0 : 1] + 1]);
    const places = mark.ends.flat().map(([first]) => axis.names.indexOf(switches[codes[order[first]]]));
    return places.filter((place) => place >= 0).map((place) => [place, place + 1]);
  }

  /** Middles and names of the marks on an axis. A component that only sends has none across, one that receives none down. */
  names(map, axis, down) {
    const hidden = map.payload === "both" || map.payload === "none" ? null : down !== map.backwards ? "rx" : "tx";
    return this.list.filter((mark) => mark.direction !== hidden).flatMap((mark) => {
      const bars = this.bars(axis, mark, down), bar = bars[down || mark.ends.length < 2 ? 0 : bars.length - 1];
      if (!bar) return [];
      const block = axis.names ? axis.names[bar[0]] : "";
      const text = !block || block === mark.name || mark.name.includes(block) && !map.linked ? mark.name : mark.hosts || !map.linked ? `${block}: ${mark.name}` : block;
      return [{ at: (bar[0] + bar[1]) / 2, text, colour: STATE_COLOURS[mark.state] }];
    });
  }
}
