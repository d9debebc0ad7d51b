// The tables of the chosen row and size: hosts, links, pairs.

/** The map of pairs or of rounds of the same row and size as the chosen map. */
function pairMap(view) {
  const same = view.maps.filter((map) => map.row === view.map.row && map.effects);
  return same.find((map) => map.size === view.map.size) || same[0];
}

/** Names of the findings' components by rank, and by link. */
function namesOfMarks(view) {
  const ranks = new Map(), links = new Map();
  const add = (known, key, name) => known.set(key, known.has(key) ? `${known.get(key)}, ${name}` : name);
  for (const mark of view.marks.list) {
    for (const [first, end] of mark.ends.flat()) for (let place = first; place < end; place++) add(ranks, view.fabric.order[place], `${mark.state} ${mark.name}`);
    for (const link of mark.links) add(links, link.join(), `${mark.state} ${mark.name}`);
  }
  return { ranks, links };
}

/** A deviation for programs: the relative change of the figure. */
function ratio(map, value) {
  return { unit: "relative", exact: (line) => Math.expm1(map.rate ? -value(line) : value(line)) };
}

function hostTable(view, place) {
  const { fabric } = view, map = pairMap(view), names = namesOfMarks(view).ranks;
  const effects = [0, 1].map((end) => {
    const worst = new Float64Array(fabric.hosts.length).fill(-Infinity);
    for (let rank = 0; rank < fabric.ranks; rank++) worst[fabric.host[rank]] = Math.max(worst[fabric.host[rank]], map.effects[end][rank]);
    return worst;
  });
  const rankOf = new Int32Array(fabric.hosts.length);
  fabric.host.forEach((host, rank) => { rankOf[host] = rank; });
  const finding = new Array(fabric.hosts.length).fill("");
  for (const [rank, name] of names) finding[fabric.host[rank]] = name;
  const effect = (title, end) => ({ title, value: (host) => effects[end][host], text: (host) => map.change(effects[end][host]), ...ratio(map, (host) => effects[end][host]) });
  const topology = fabric.switches.length ? [
    { title: "switch", value: (host) => fabric.switches[fabric.switch[rankOf[host]]] ?? "" },
    { title: "group", value: (host) => fabric.groups[fabric.group[rankOf[host]]] ?? "" },
  ] : [];
  const columns = [{ title: "host", value: (host) => fabric.hosts[host] }, ...topology,
    ...(map.fitted ? [effect("sending", 0), effect("receiving", 1)] : []), { title: "findings", value: (host) => finding[host] }];
  new DataTable(place, {
    name: "hosts", columns, count: fabric.hosts.length, sorted: map.fitted ? 1 + topology.length : 0,
    hosts: (host) => [fabric.hosts[host]], marked: (host) => finding[host] !== "",
    slow: (host) => Math.max(effects[0][host], effects[1][host]) > 4 * map.noise,
    note: map.fitted ? `effects at ${map.label}; a host with several ranks counts with its slowest` : "no model",
  });
}

function linkTable(view, place, map) {
  const cells = [...map.linked.keys()].filter((cell) => map.linked[cell]), names = namesOfMarks(view).links;
  const ends = (line) => [Math.floor(cells[line] / map.width), cells[line] % map.width];
  const value = (title, plane, words, more) => ({ title, ...more, value: (line) => plane[cells[line]], text: (line) => (map.pairs[cells[line]] ? words(plane[cells[line]]) : "-") });
  new DataTable(place, {
    name: "links", count: cells.length, sorted: 2,
    columns: [
      { title: "from", value: (line) => map.names[ends(line)[0]] },
      { title: "to", value: (line) => map.names[ends(line)[1]] },
      map.late ? value("late messages", map.time, (share) => map.figure(share)) : value("deviation", map.residual, (one) => (Number.isNaN(one) ? "-" : map.change(one)), ratio(map, (line) => map.residual[cells[line]])),
      ...(map.late ? [] : [value("median", map.time, (time) => map.figure(time), { unit: "seconds", exact: (line) => Math.exp(map.time[cells[line]]) })]),
      { title: "measurements", value: (line) => map.pairs[cells[line]], text: (line) => map.pairs[cells[line]].toLocaleString("en") },
      { title: "findings", value: (line) => names.get(ends(line).join()) || "" },
    ],
    hosts: (line) => ends(line).map((end) => map.names[end]), marked: (line) => names.has(ends(line).join()),
    slow: (line) => (map.late ? map.time[cells[line]] > map.raw_scale[1] / 2 : map.residual[cells[line]] > 4 * map.noise), note: map.label,
  });
}

async function pairTable(view, place) {
  const map = pairMap(view), { fabric } = view;
  await map.prepare("raw");
  await map.prepare(map.fitted ? "residual" : "raw");
  const { planes, shade } = map.views.raw, left = map.fitted ? map.views.residual.shade : null;
  const cells = map.views.raw.levels[0].cells.filter((cell) => cell !== MISSING), ranks = namesOfMarks(view).ranks;
  const pair = (line) => map.pairAt(planes, cells[line]), ends = (line) => (({ src, dst }) => (map.backwards ? [dst, src] : [src, dst]))(pair(line));
  const named = (line) => ends(line).map((rank) => ranks.get(rank)).filter(Boolean).join(", ");
  const residual = (line) => (left && left[cells[line]] > NO_MODEL ? left[cells[line]] : NaN);
  const columns = [
    { title: "from", value: (line) => fabric.name(ends(line)[0]) },
    { title: "to", value: (line) => fabric.name(ends(line)[1]) },
    { title: "measured", value: (line) => Math.exp(shade[cells[line]]), text: (line) => map.figure(shade[cells[line]]), unit: "seconds" },
    ...(left ? [{ title: "deviation", value: residual, text: (line) => (Number.isNaN(residual(line)) ? "-" : map.change(residual(line))), ...ratio(map, residual) }] : []),
    { title: "distance", value: (line) => fabric.scopes[fabric.scope(...ends(line))].replace("unknown", "between hosts") },
    { title: "ends named by findings", value: named },
  ];
  new DataTable(place, {
    name: "pairs", columns, count: cells.length, sorted: left ? 3 : 2, hosts: (line) => ends(line).map((rank) => fabric.hosts[fabric.host[rank]]),
    marked: (line) => named(line) !== "", slow: (line) => residual(line) > 4 * map.noise, note: map.side > 1 ? "the worst pair of each block" : map.label,
    go: (line) => { if (view.map === map) view.select({ x: cells[line] % map.width, y: Math.floor(cells[line] / map.width) }); },
  });
}

/** Fills the tables that are open, again for another row. */
function listenToTables(view) {
  const links = (map) => view.maps.find((one) => one.linked && one.row === map.row);
  const fill = { hosts: hostTable, links: (own, place) => linkTable(own, place, links(own.map)), pairs: pairTable };
  const refresh = () => {
    byId("table-links").hidden = !links(view.map);
    for (const [name, build] of Object.entries(fill)) {
      const details = byId(`table-${name}`), key = `${view.map.row} ${view.map.size}`;
      if (!details.open || details.hidden || details.dataset.row === key) continue;
      details.dataset.row = key;
      Promise.resolve(build(view, details.querySelector("div"))).catch(fail);
    }
  };
  for (const name of Object.keys(fill)) byId(`table-${name}`).addEventListener("toggle", refresh);
  return refresh;
}
