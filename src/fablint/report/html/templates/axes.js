// Axes of a map: what lies where, and as many names as fit.

const LABEL = 13; // css px that a name needs across its line

/** Names without what all of them share: a domain, and a long beginning. */
function shortNames(names) {
  const domains = new Set(names.map((name) => name.replace(/^[^.]*/, "")));
  let short = domains.size === 1 ? names.map((name) => name.replace(/\..*/, "")) : [...names];
  if (short.length < 2 || Math.max(...short.slice(0, 5000).map((name) => name.length)) <= 12) return short;
  const [first, last] = short.reduce(([low, high], name) => [name < low ? name : low, name > high ? name : high], [short[0], short[0]]);
  let shared = 0;
  while (shared < first.length && first[shared] === last[shared]) shared++;
  while (shared > 0 && /\d/.test(first[shared - 1])) shared--; // numbers stay whole
  if (shared > 3) short = short.map((name) => `\u2026${name.slice(shared)}`);
  return short;
}

/** Text that is at most `width` px wide: its end says most. */
function fitted(context, text, width) {
  if (context.measureText(text).width <= width) return text;
  let kept = text.length - 1;
  while (kept > 1 && context.measureText(`\u2026${text.slice(-kept)}`).width > width) kept--;
  return `\u2026${text.slice(-kept)}`;
}

/** Runs of equal codes along the order: name, first place, end. */
function runsOf(fabric, codes, names) {
  const runs = [];
  fabric.order.forEach((rank, place) => {
    const code = codes[rank], last = runs[runs.length - 1];
    if (last && last.code === code) last.end = place + 1;
    else runs.push({ code, name: code < 0 ? "" : names[code], start: place, end: place + 1 });
  });
  return runs;
}

class RankAxis {
  constructor(fabric, side) {
    Object.assign(this, { fabric, side, count: Math.ceil(fabric.ranks / side) });
    fabric.short ??= shortNames(fabric.hosts);
    fabric.runs ??= [runsOf(fabric, fabric.switch, fabric.switches), runsOf(fabric, fabric.group, fabric.groups)];
  }

  /** Cells of the places from `first` to before `end`. */
  span(first, end) { return [first / this.side, end / this.side]; }

  /** Cells where the switch changes. */
  get dividers() { return this.fabric.runs[0].slice(1).map((run) => run.start / this.side); }

  /** Middles and names, in cells: hosts where they fit, else switches, groups, or every so many hosts. */
  labels(scale) {
    const { fabric, side } = this, at = (place) => ({ at: (place + 0.5) / side, text: fabric.short[fabric.host[fabric.order[place]]] });
    if (scale / side >= LABEL) return Array.from({ length: fabric.ranks }, (_, place) => at(place));
    for (const runs of fabric.runs) {
      const named = runs.filter((run) => run.name);
      if (named.length > 1 && (scale / side) * (fabric.ranks / named.length) >= LABEL) {
        return named.map((run) => ({ at: (run.start + run.end) / 2 / side, text: run.name }));
      }
    }
    const step = Math.ceil((2 * LABEL * side) / scale);
    return Array.from({ length: Math.ceil(fabric.ranks / step) }, (_, index) => at(index * step));
  }
}

class RoundAxis {
  constructor(count) { this.count = count; this.dividers = []; }

  span() { return [0, this.count]; }

  labels(scale) {
    const step = Math.ceil(LABEL / scale);
    return Array.from({ length: Math.ceil(this.count / step) }, (_, index) => ({ at: index * step + 0.5, text: `round ${index * step}` }));
  }
}

class BlockAxis {
  constructor(names, starts) { Object.assign(this, { names, starts, count: names.length, dividers: [] }); }

  block(place) {
    let [low, high] = [0, this.count - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.starts[middle] <= place) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  span(first, end) { return [this.block(first), this.block(end - 1) + 1]; }

  labels(scale) {
    const step = Math.ceil(LABEL / scale);
    return this.names.map((text, index) => ({ at: index + 0.5, text })).filter((_, index) => index % step === 0);
  }
}

/** Switches with links, at both ends of the links. */
class LinkAxis extends BlockAxis {
  constructor(names) { super(names, []); }

  span() { return [0, 0]; }
}
