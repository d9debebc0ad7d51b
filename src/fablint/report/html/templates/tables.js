// Complete tables: sorted, searched, filtered, copied as a node set, saved as CSV.

const PAGE_LINES = 100;
const COLLATOR = new Intl.Collator("en", { numeric: true });
const make = (name, properties = {}, ...children) => {
  const element = Object.assign(document.createElement(name), properties);
  element.append(...children);
  return element;
};

/** A line of a list that does something: by mouse, or by Enter. */
function clickable(line, action) {
  line.addEventListener("click", action);
  line.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    action();
    event.preventDefault();
  });
  return line;
}

/** One stop of the Tab key for a list; arrow keys, Home and End move along its lines. */
function navigable(body) {
  const lines = [...body.rows];
  for (const [index, line] of lines.entries()) line.tabIndex = index ? -1 : 0;
  body.onkeydown = (event) => {
    const at = lines.indexOf(event.target.closest("tr"));
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: lines.length - 1 }[event.key];
    if (!lines[next]) return;
    [lines[at].tabIndex, lines[next].tabIndex] = [-1, 0];
    lines[next].focus();
    event.preventDefault();
  };
}

class DataTable {
  static made = new Map(); // by their places

  /**
   * columns: [{title, value(line), text(line)}], numbers where `text` is given; count lines; hosts(line) its host names;
   * marked(line): is it named by a finding, behind(line): is its host behind a faulty component, slow(line): beyond the noise.
   */
  constructor(place, source) {
    Object.assign(this, source, { place, shown: PAGE_LINES, column: source.sorted, descending: true });
    DataTable.made.set(place, this);
    this.filter = make("select", { ariaLabel: `Filter the ${source.name}` },
      ...[["all", "all"], ["marked", "named by a finding"], ...(source.behind ? [["behind", "behind a faulty component"]] : []), ["slow", "slower than the noise"]].map(([value, text]) => make("option", { value, textContent: text })));
    this.output = make("output", { className: "nodeset" });
    const button = (text, action) => make("button", { type: "button", textContent: text, onclick: action });
    this.more = button("Show more", () => { this.shown *= 10; this.draw(); });
    this.table = make("table", {}, make("thead"), make("tbody"));
    this.status = make("p", { className: "hint", role: "status" });
    place.replaceChildren(
      make("div", { className: "tools" }, this.filter, button("Copy as node set", () => this.copy()), button("CSV", () => this.save())),
      this.output, this.status, make("div", { className: "scroll" }, this.table), this.more);
    this.filter.addEventListener("input", () => this.select());
    this.select();
  }

  text(column, line) { return String(column.text ? column.text(line) : column.value(line)); }

  /** The lines that search and filter leave, in order. */
  select() {
    const words = byId("table-search").value.toLowerCase().split(/\s+/).filter(Boolean), test = this[this.filter.value];
    this.lines = [];
    for (let line = 0; line < this.count; line++) {
      if (test && !test(line)) continue;
      const texts = words.length ? this.columns.filter((column) => !column.text).map((column) => String(column.value(line)).toLowerCase()) : [];
      if (words.every((word) => texts.some((text) => text.includes(word)))) this.lines.push(line);
    }
    this.order();
  }

  /** Sorts the lines by the keys of a column, each computed once: numbers, or texts as people count them. */
  order() {
    const { value, text, key } = this.columns[this.column], sign = this.descending ? -1 : 1;
    if (text || key) {
      const keys = new Float64Array(this.count), number = key || value;
      for (const line of this.lines) keys[line] = Number.isNaN(number(line)) ? Infinity : sign * number(line); // missing ones at the end
      this.lines.sort((a, b) => keys[a] - keys[b] || 0);
    } else {
      const keys = new Map(this.lines.map((line) => [line, String(value(line))]));
      this.lines.sort((a, b) => sign * COLLATOR.compare(keys.get(a), keys.get(b)));
    }
    this.draw();
  }

  draw() {
    const [head, body] = [this.table.tHead, this.table.tBodies[0]];
    head.replaceChildren(make("tr", {}, ...this.columns.map((column, index) => {
      const button = make("button", { type: "button", textContent: column.title, onclick: () => this.sortBy(index) });
      const cell = make("th", { className: column.text ? "number" : "", scope: "col" }, button);
      cell.setAttribute("aria-sort", index !== this.column ? "none" : this.descending ? "descending" : "ascending");
      return cell;
    })));
    body.replaceChildren(...this.lines.slice(0, this.shown).map((line) => {
      const element = make("tr", { className: this.marked(line) ? "marked" : "" }, ...this.columns.map((column) =>
        make("td", { className: column.text ? "number" : "", textContent: this.text(column, line) })));
      return clickable(element, () => this.go(line));
    }));
    navigable(body);
    this.more.hidden = this.lines.length <= this.shown;
    const number = (count) => count.toLocaleString("en");
    this.status.textContent = `${number(Math.min(this.shown, this.lines.length))} shown of ${number(this.lines.length)} selected, ${number(this.count)} in all${this.note ? `; ${this.note}` : ""}`;
  }

  sortBy(index) {
    this.descending = index === this.column ? !this.descending : Boolean(this.columns[index].text);
    this.column = index;
    this.order();
    this.table.tHead.rows[0].cells[index].firstChild.focus();
  }

  copy() {
    const words = fold(this.lines.flatMap((line) => this.hosts(line)));
    copyNodeSet(words, this.output);
  }

  save() {
    const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
    const lines = [this.columns.map((column) => column.unit ? `${column.title} (${column.unit})` : column.title),
      ...this.lines.map((line) => this.columns.map((column) => (column.exact || column.value)(line)))];
    const blob = new Blob([lines.map((line) => line.map((value) => quoted(String(value))).join(",")).join("\n"), "\n"], { type: "text/csv" });
    saveFile(blob, `${this.name}.csv`);
  }
}

function saveFile(blob, download) {
  const link = make("a", { href: URL.createObjectURL(blob), download });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
