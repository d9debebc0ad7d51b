// The tables of the chosen row and size: hosts, switches and groups, links, pairs.

/** The map of pairs or of rounds of the same row and size as the chosen map, or their model. */
function pairMap(view) {
  const same = view.models.filter((map) => map.row === view.map.row);
  return same.find((map) => map.size === view.map.size) || same[0];
}

/** Names of the findings' components by rank, and by link. */
function namesOfMarks(view) {
  const ranks = new Map(), links = new Map();
  const add = (known, key, name) => known.set(key, known.has(key) ? `${known.get(key)}, ${name}` : name);
  for (const mark of view.marks.list) {
    if (mark.hosts) for (const [first, end] of mark.ends.flatMap(({ runs }) => runs)) for (let place = first; place < end; place++) add(ranks, view.fabric.order[place], `${mark.state} ${mark.name}`);
    for (const link of mark.links) add(links, link.join(), `${mark.state} ${mark.name}`);
  }
  return { ranks, links };
}

/** A deviation for programs: the relative change of the figure. */
function ratio(map, value) {
  return { unit: "relative", exact: (line) => Math.expm1(map.rate ? -value(line) : value(line)) };
}

/** Places of the hosts in the order of their names, by which their names are sorted. */
function nameKeys(fabric) {
  fabric.nameKeys ??= [...fabric.hosts.keys()].sort((a, b) => COLLATOR.compare(fabric.hosts[a], fabric.hosts[b]))
    .reduce((keys, host, at) => { keys[host] = at; return keys; }, new Int32Array(fabric.hosts.length));
  return fabric.nameKeys;
}

/** Points at a rank, or at two, on the shown map. */
function point(view, src, dst = src) {
  const cell = view.map.cellOf(src, dst);
  if (cell) view.select(cell);
}

/** Shows a map, and points at a cell of it. */
async function show(view, map, cell) {
  byId("map").selectedIndex = view.maps.indexOf(map);
  await update(view);
  view.select(cell);
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
  const isBehind = fabric.hosts.map((host) => fabric.behind.has(host));
  const effect = (title, end) => ({ title, value: (host) => effects[end][host], text: (host) => map.change(effects[end][host]), ...ratio(map, (host) => effects[end][host]) });
  const topology = fabric.switches.length ? [
    { title: "switch", value: (host) => fabric.switches[fabric.switch[rankOf[host]]] ?? "" },
    { title: "group", value: (host) => fabric.groups[fabric.group[rankOf[host]]] ?? "" },
  ] : [];
  const columns = [{ title: "host", value: (host) => fabric.hosts[host], key: (host) => nameKeys(fabric)[host] }, ...topology,
    ...(map.fitted ? [effect("sending", 0), effect("receiving", 1)] : []), { title: "findings", value: (host) => finding[host] || (isBehind[host] ? "behind a faulty component" : "") }];
  new DataTable(place, {
    name: "hosts", columns, count: fabric.hosts.length, sorted: map.fitted ? 1 + topology.length : 0,
    hosts: (host) => [fabric.hosts[host]], marked: (host) => /FAULT|SUSPECT|CONFOUNDED/.test(finding[host]), behind: (host) => isBehind[host],
    slow: (host) => Math.max(effects[0][host], effects[1][host]) > 4 * map.noise,
    go: (host) => point(view, rankOf[host]), note: map.fitted ? `effects at ${map.label}; a host with several ranks counts with its slowest` : "no model",
  });
}

/** Switches and groups by the effects of their hosts. */
function switchTable(view, place) {
  const { fabric } = view, map = pairMap(view), lines = [];
  for (const [kind, codes, names] of [["switch", fabric.switch, fabric.switches], ["group", fabric.group, fabric.groups]]) {
    const members = names.map(() => []);
    codes.forEach((code, rank) => members[code]?.push(rank));
    members.forEach((ranks, code) => { if (ranks.length) lines.push({ kind, name: names[code], ranks }); });
  }
  for (const line of lines) {
    line.medians = map.effects.map((effect) => middleOf(line.ranks.map((rank) => effect[rank])));
    const worst = (rank) => Math.max(map.effects[0][rank], map.effects[1][rank]);
    line.slowest = line.ranks.reduce((one, other) => (worst(other) > worst(one) ? other : one));
    line.worst = worst(line.slowest);
    const hosts = new Set(line.ranks.map((rank) => fabric.host[rank])), places = new Set(line.ranks.map((rank) => fabric.place[rank]));
    const marks = view.marks.list.filter((mark) => mark.ends.some(({ runs }) => runs.some(([first]) => places.has(first))));
    Object.assign(line, { hosts: hosts.size, names: [...hosts].map((host) => fabric.hosts[host]), findings: marks.map((mark) => `${mark.state} ${mark.name}`).join(", ") });
  }
  const effect = (title, value) => ({ title, value: (line) => value(lines[line]), text: (line) => map.change(value(lines[line])), ...ratio(map, (line) => value(lines[line])) });
  new DataTable(place, {
    name: "switches and groups", count: lines.length, sorted: map.fitted ? 3 : 1,
    columns: [
      { title: "kind", value: (line) => lines[line].kind }, { title: "name", value: (line) => lines[line].name },
      { title: "hosts", value: (line) => lines[line].hosts, text: (line) => lines[line].hosts.toLocaleString("en") },
      ...(map.fitted ? [effect("sending", (line) => line.medians[0]), effect("receiving", (line) => line.medians[1]),
        { title: "slowest host", value: (line) => fabric.hosts[fabric.host[lines[line].slowest]] }, effect("its effect", (line) => line.worst)] : []),
      { title: "findings", value: (line) => lines[line].findings },
    ],
    hosts: (line) => lines[line].names, marked: (line) => lines[line].findings !== "",
    go: (line) => point(view, lines[line].slowest), slow: (line) => Math.max(...lines[line].medians) > 4 * map.noise, note: map.fitted ? `medians over the hosts, ${map.label}` : "no model",
  });
}

function middleOf(values) {
  const sorted = Float64Array.from(values).sort(), half = sorted.length >> 1;
  return sorted.length % 2 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

async function linkTable(view, place, map) {
  await map.prepare("raw");
  const cells = [...map.isKnown.keys()].filter((cell) => map.isKnown[cell]), names = namesOfMarks(view).links;
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
    go: (line) => show(view, map, { x: cells[line] % map.width, y: Math.floor(cells[line] / map.width) }).catch(fail),
    slow: (line) => (map.late ? map.time[cells[line]] > map.slow : map.residual[cells[line]] > 4 * map.noise), note: map.label,
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
    ...["from", "to"].map((title, end) => ({ title, value: (line) => fabric.name(ends(line)[end]), key: (line) => nameKeys(fabric)[fabric.host[ends(line)[end]]] })),
    { title: "measured", value: (line) => Math.exp(shade[cells[line]]), text: (line) => map.figure(shade[cells[line]]), unit: "seconds" },
    ...(left ? [{ title: "deviation", value: residual, text: (line) => (Number.isNaN(residual(line)) ? "-" : map.change(residual(line))), ...ratio(map, residual) }] : []),
    { title: "distance", value: (line) => fabric.scopes[fabric.scope(...ends(line))].replace("unknown", "between hosts") },
    { title: "ends named by findings", value: named },
  ];
  new DataTable(place, {
    name: "pairs", columns, count: cells.length, sorted: left ? 3 : 2, hosts: (line) => ends(line).map((rank) => fabric.hosts[fabric.host[rank]]),
    marked: (line) => named(line) !== "", slow: (line) => residual(line) > 4 * map.noise, note: map.side > 1 ? "the worst pair of each block" : map.label,
    go: (line) => show(view, map, { x: cells[line] % map.width, y: Math.floor(cells[line] / map.width) }).catch(fail),
  });
}

/** One search for all tables: the first word opens those that are closed, except that of pairs, which may be long. */
function listenToSearch() {
  let wait;
  byId("table-search").addEventListener("input", ({ target }) => {
    clearTimeout(wait);
    wait = setTimeout(() => {
      for (const name of ["hosts", "switches", "links"]) if (target.value) byId(`table-${name}`).open = true;
      for (const table of DataTable.made.values()) table.select();
    }, 150);
  });
}

/** Fills the tables that are open, again for another row. */
function listenToTables(view) {
  const links = (map) => view.maps.find((one) => one.linked && one.row === map.row);
  const fill = { hosts: hostTable, switches: switchTable, links: (own, place) => linkTable(own, place, links(own.map)), pairs: pairTable };
  const refresh = () => {
    byId("table-links").hidden = !links(view.map);
    byId("table-switches").hidden = !view.fabric.switches.length || !view.fabric.isWhole;
    byId("table-pairs").hidden = !view.fabric.isWhole;
    for (const [name, build] of Object.entries(fill)) {
      const details = byId(`table-${name}`), key = `${view.map.row} ${view.map.size}`;
      if (!details.open || details.hidden || details.dataset.row === key) continue;
      details.dataset.row = key;
      Promise.resolve(build(view, details.querySelector("div"))).catch(fail);
    }
  };
  for (const name of Object.keys(fill)) byId(`table-${name}`).addEventListener("toggle", refresh);
  listenToSearch();
  return refresh;
}
