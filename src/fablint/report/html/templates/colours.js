// Colour scales, and the legend.

const RAW = ["#440154", "#3b528b", "#21918c", "#5ec962", "#fde725"]; // viridis: fast to slow
const RESIDUAL = ["#2166ac", "#92c5de", "#f7f7f7", "#f4a582", "#b2182b"]; // faster, as the model, slower
const MISSING_GREY = [184, 184, 184];
const NO_MODEL_COLOUR = [196, 178, 222];
const byId = (id) => document.getElementById(id);

function ramp(colours) {
  const stops = colours.map((text) => [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16)));
  return Array.from({ length: 256 }, (_, index) => {
    const at = (index / 255) * (stops.length - 1), low = Math.min(Math.floor(at), stops.length - 2);
    return stops[low].map((value, channel) => Math.round(value + (at - low) * (stops[low + 1][channel] - value)));
  });
}
const RAMPS = { raw: ramp(RAW), residual: ramp(RESIDUAL) };

function colourOf(name) { return getComputedStyle(document.documentElement).getPropertyValue(name); }

/** Fills the legend and the words below the map. */
function drawLegend(view) {
  const { map, mode } = view, context = byId("legend").getContext("2d");
  RAMPS[mode].forEach(([r, g, b], index) => {
    context.fillStyle = `rgb(${r},${g},${b})`;
    context.fillRect(index, 0, 1, 12);
  });
  const [low, high] = map.raw_scale, limit = map.residual_scale, beyond = map.late ? "more" : "slower";
  byId("legend-low").textContent = mode === "raw" ? map.figure(low) : `${map.change(-limit)} (faster)`;
  byId("legend-high").textContent = mode === "raw" ? `${map.figure(high)} and ${beyond}` : `${map.change(limit)} (slower)`;
  byId("legend-model").hidden = mode === "raw" || !map.views.residual.shade.includes(NO_MODEL);
  byId("legend-missing").hidden = !map.views[mode].levels[0].cells.some((cell, at) => cell === MISSING && !view.isDiagonal(at));
  const order = view.fabric.switches.length ? "in order of group, switch and host; lines divide the switches" : "in order of the hosts";
  const [one, other] = map.backwards ? ["receiving", "sending"] : ["sending", "receiving"];
  const axes = map.linked ? "Down: from a switch; across: to a switch; each cell a link, by the pairs that cross it." : map.layout === "blocks" ? `Down: ${one} ${map.kind}; across: ${other} ${map.kind}; each cell a ${map.late ? "mean" : "median"} over pairs.`
    : map.layout === "matrix" ? `Down: ${one} rank; across: ${other} rank; ${order}.` : `Down: round; across: ${one} rank; ${order}.`;
  const strips = map.fitted && map.effects ? " Strips beside the axes: what each rank adds." : "";
  const marks = view.marks.list.length ? ` Frames and bars: pairs and components of the findings${view.marks.areMany(map) ? "; frames that would hide the map are drawn when it is enlarged" : ""}.` : "";
  const completed = mode === "residual" && map.completed?.length ? ` Against their own median: pairs at the distance ${map.completed.join(", ")}.` : "";
  const white = mode === "residual" && map.effects ? " White: within the noise." : "";
  const isSingle = map.layout !== "blocks" || map.pairs.includes(1);
  const words = map.layout === "blocks" ? " A single red cell of one measurement is normal." : " Faint: single measurements outside of the frames; a single red cell is normal.";
  const single = mode === "residual" && isSingle ? words : "";
  const faint = map.isFaint && map.isFaint.includes(1) ? " Faint: cells of a single measurement, outside of the frames." : "";
  byId("axes").textContent = `${axes.replace("; each", ", each")}${strips}${marks}${completed}${white}${single}${faint}`;
  byId("shown").textContent = map.fitted ? `${map.label}; ${mode === "raw" ? "measured" : "deviation from the model"}` : map.label;
}
