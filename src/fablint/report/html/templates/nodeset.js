// Node sets: h01, h02, h03 as h[01-03].

/** Folds names by their last number. */
function fold(names) {
  const groups = new Map(), single = [];
  for (const name of new Set(names)) {
    const [, head, digits, tail] = name.match(/^(.*?)(\d+)(\D*)$/) || [];
    if (digits === undefined) { single.push(name); continue; }
    const key = JSON.stringify([head, tail, digits.length]);
    (groups.get(key) || groups.set(key, []).get(key)).push(digits);
  }
  const folded = [...groups].map(([key, numbers]) => {
    const [head, tail] = JSON.parse(key), ranges = [];
    for (const digits of numbers.sort()) {
      const last = ranges[ranges.length - 1];
      if (last && Number(digits) === Number(last[1]) + 1) last[1] = digits;
      else ranges.push([digits, digits]);
    }
    const words = ranges.map(([first, end]) => (first === end ? first : `${first}-${end}`)).join(",");
    return numbers.length === 1 ? `${head}${words}${tail}` : `${head}[${words}]${tail}`;
  });
  return [...folded, ...single].join(",");
}
