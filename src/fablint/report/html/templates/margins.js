// Beside the map: effects of the ranks, bars of the findings' components, and names.

/** The two margins of a view: how far along a cell lies, and how to paint there. */
function marginsOf(view, context, sx, sy) {
  const { map, left, top } = view;
  const horizontal = {
    axis: map.across, scale: sx, offset: view.x, box: view.boxWidth, down: false,
    strip: (at, length) => context.fillRect(left + at, top - STRIP - 1, length, STRIP),
    bar: (at, length) => context.fillRect(left + at, top - STRIP - BAR - 3, length, BAR),
    write: (at, text) => {
      context.save();
      context.translate(left + at, top - STRIP - BAR - 6);
      context.rotate(-Math.PI / 2);
      context.textAlign = "left";
      context.fillText(text, 0, 0);
      context.restore();
    },
    room: top - STRIP - BAR - 8,
  };
  const vertical = {
    axis: map.down, scale: sy, offset: view.y, box: view.boxHeight, down: true,
    strip: (at, length) => context.fillRect(left - STRIP - 1, top + at, STRIP, length),
    bar: (at, length) => context.fillRect(left - STRIP - BAR - 3, top + at, BAR, length),
    write: (at, text) => {
      context.textAlign = "right";
      context.fillText(text, left - STRIP - BAR - 6, top + at);
    },
    room: left - STRIP - BAR - 8,
  };
  return [horizontal, vertical];
}

function drawMargins(view, context, sx, sy) {
  const { map } = view;
  for (const margin of marginsOf(view, context, sx, sy)) {
    const ranked = !(map.layout === "list" && margin.down);
    if (map.fitted && map.effects && ranked) drawEffects(view, context, margin, map.effects[margin.down || map.layout === "list" ? 0 : 1]);
    if (ranked) drawBars(view, context, margin);
    drawNames(view, context, margin, ranked);
  }
}

function drawEffects(view, context, { scale, offset, box, strip }, effects) {
  const { map, fabric } = view, { order } = fabric, limit = map.residual_scale;
  for (let pixel = 0; pixel < box; pixel++) {
    const first = Math.floor(((pixel + offset) / scale) * map.side);
    const last = Math.max(first + 1, Math.floor(((pixel + 1 + offset) / scale) * map.side));
    let worst = -Infinity;
    for (let place = first; place < Math.min(last, order.length); place++) worst = Math.max(worst, effects[order[place]]);
    const [r, g, b] = RAMPS.residual[Math.round(255 * Math.min(1, Math.max(0, (worst / limit + 1) / 2)))];
    context.fillStyle = `rgb(${r},${g},${b})`;
    strip(pixel, 1);
  }
}

function drawBars(view, context, { axis, scale, offset, box, bar, down }) {
  for (const mark of [...view.marks.visible].reverse()) { // the worst on top
    context.fillStyle = STATE_COLOURS[mark.state];
    for (const { bar: [first, end] } of view.marks.ends(view.map, axis, mark, down)) {
      const length = Math.max(4, (end - first) * scale), at = ((first + end) / 2) * scale - offset - length / 2;
      if (at + length > 0 && at < box) bar(Math.max(at, 0), Math.min(at + length, box) - Math.max(at, 0));
    }
  }
}

/** Names of the findings' components first, then as many others as find a place between them. */
function drawNames(view, context, { axis, scale, offset, box, write, room, down }, ranked) {
  const taken = [], ink = colourOf("--quiet");
  context.textBaseline = "middle";
  const marked = ranked ? view.marks.names(view.map, axis, down) : [];
  for (const { at, text, short, colour } of [...marked, ...axis.labels(scale)]) {
    const place = at * scale - offset;
    if (place < 0 || place > box || taken.some((other) => Math.abs(other - place) < LABEL)) continue;
    taken.push(place);
    context.font = `${colour ? "600 " : ""}11px system-ui, sans-serif`;
    context.fillStyle = colour || ink;
    write(place, short && context.measureText(text).width > room ? fitted(context, short, room) : fitted(context, text, room));
  }
}
