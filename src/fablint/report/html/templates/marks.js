// The components of the findings on a map: frames around the pairs that use them, bars and names at the axes.

const STATE_COLOURS = { FAULT: "#d1242f", SUSPECT: "#d97706", CONFOUNDED: "#8250df", SUPPRESSED: "#0969da", "NOT JUDGED": "#7d7d7d" };
const STATE_INKS = { FAULT: "--fault", SUSPECT: "--suspect", CONFOUNDED: "--confounded", SUPPRESSED: "--suppressed", "NOT JUDGED": "--unknown" }; // of words
const LEAST = 8; // css px of a frame
const MOST_NAMES = 400; // at an axis: more have no room
const MOST_BOLD = 5; // findings with thick frames: those of more hide the cells beside them
const MOST_FRAMES = 800; // on a map whose cells are smaller than a frame: more of them hide the colours of the cells

class Marks {
  constructor(list, fabric) {
    this.fabric = fabric;
    this.list = list.map((mark, index) => ({ ...mark, index, frames: unpack(mark.frames, Int32Array) }));
    this.known = new Map();
    this.only = null; // the mark that is shown alone
  }

  /** Frames of a mark on a map as [left, top, right, bottom] in cells, each once. */
  frames(map, mark) {
    const known = this.known.get(map) || this.known.set(map, new Map()).get(map);
    if (!known.has(mark)) known.set(mark, map.layout === "blocks" ? this.joined(map, this.cells(map, mark)) : map.layout === "list" ? this.columns(map, mark) : this.frame(map, mark));
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

  /** Columns of the ends of a mark in a map of rounds, where it is one of hosts. */
  columns(map, mark) {
    return mark.hosts ? this.ends(map, map.across, mark, false).map(({ bar: [first, end] }) => [first, 0, end, map.height]) : [];
  }

  /** Frames [left, top, right, bottom] around runs of cells: along lines, and equal runs of lines below each other. */
  joined(map, cells) {
    const open = new Map(), found = [], lines = new Map();
    for (const cell of [...cells].sort((a, b) => a - b)) {
      const y = Math.floor(cell / map.width), x = cell % map.width;
      const runs = lines.get(y) || lines.set(y, []).get(y), last = runs[runs.length - 1];
      if (last?.[1] === x) last[1] = x + 1;
      else runs.push([x, x + 1]);
    }
    for (const [y, runs] of lines) {
      for (const [left, right] of runs) {
        const run = `${left} ${right}`, above = open.get(run);
        if (above?.[3] === y) above[3] = y + 1;
        else found.push(open.set(run, [left, y, right, y + 1]).get(run));
      }
    }
    return found;
  }

  /** Has a map more frames than may be drawn around thin cells? */
  areMany(map) {
    return this.list.reduce((sum, mark) => sum + this.frames(map, mark).length, 0) > MOST_FRAMES;
  }

  /** Marks of the findings that are shown. */
  get visible() { return this.only ? [this.only] : this.list; }

  /** Marks that are drawn: of thin cells the first, and those of the fewest frames, which do not hide what they surround. */
  drawn(map, isThin) {
    if (this.only || !isThin || !this.areMany(map)) return [...this.visible];
    const count = (mark) => this.frames(map, mark).length, kept = new Set(this.list.slice(0, 1));
    let free = MOST_FRAMES;
    for (const mark of [...this.list].sort((a, b) => count(a) - count(b))) {
      free -= count(mark);
      if (free >= 0) kept.add(mark);
    }
    return this.list.filter((mark) => kept.has(mark));
  }

  draw(context, view, sx, sy) {
    const { map } = view, thin = Math.min(sx, sy) < 3, light = thin || (!this.only && this.list.length > MOST_BOLD);
    context.save();
    for (const mark of this.drawn(map, thin).reverse()) { // the worst on top
      context.beginPath();
      for (const [left, top, right, bottom] of this.frames(map, mark)) {
        if (right * sx < view.x || left * sx > view.x + view.boxWidth || bottom * sy < view.y || top * sy > view.y + view.boxHeight) continue;
        const [width, height] = [Math.max((right - left) * sx + 2, LEAST), Math.max((bottom - top) * sy + 2, LEAST)];
        context.rect(((left + right) * sx - width) / 2, ((top + bottom) * sy - height) / 2, width, height);
      }
      context.setLineDash(map.diluted?.[mark.index] ? [5, 4] : []);
      for (const [colour, width] of [["#fff", light ? 0 : 4], [STATE_COLOURS[mark.state], light ? 1 : 2]]) {
        Object.assign(context, { strokeStyle: colour, lineWidth: width || 1 });
        if (width) context.stroke();
      }
    }
    context.restore();
  }

  /** Ends of a mark on an axis, [first, end] in cells and a name. An end that only sends has none across, one that receives none down. */
  ends(map, axis, mark, down) {
    const isSending = (down || map.layout === "list") !== map.backwards; // the columns of rounds are senders
    const other = map.payload === "both" || map.payload === "none" ? null : isSending ? "rx" : "tx";
    const shown = mark.ends.filter((end) => end.side === null || end.side !== other);
    if (!(axis instanceof LinkAxis)) return shown.flatMap((end) => end.runs.map(([first, past]) => ({ bar: axis.span(first, past), name: end.name })));
    const { order, switch: codes, switches } = this.fabric, own = axis.names.indexOf(mark.name);
    const places = own >= 0 ? [own] : mark.links.length ? mark.links.map((ends) => ends[down ? 0 : 1])
      : shown.flatMap((end) => end.runs.map(([first]) => axis.names.indexOf(switches[codes[order[first]]]))).filter((place) => place >= 0);
    return places.map((place) => ({ bar: [place, place + 1], name: mark.hosts ? mark.name : axis.names[place] }));
  }

  /** Middles and names of the marks on an axis: a switch or a block keeps its name, and a host in it is named behind it. */
  names(map, axis, down) {
    const found = this.visible.flatMap((mark) => this.ends(map, axis, mark, down).map(({ bar: [first, past], name }) => {
      const block = axis.names ? axis.names[first] : name, colour = colourOf(STATE_INKS[mark.state]);
      const text = block === name || !name ? block : `${block}: ${name}`;
      return { at: (first + past) / 2, text, short: name || block, colour };
    })).filter((one) => one.text);
    return found.slice(0, MOST_NAMES);
  }
}
