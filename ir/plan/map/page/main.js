// SPDX-License-Identifier: Apache-2.0
// What the user does, and the one place where things are drawn: at most once a frame.
const view = new View(), panes = new Panes(byId("picture"));
const look = {position: 0, hovered: -1, live: null, colors: null, edges: null};
let frame = 0, drag = null;

function redraw() {
  frame = frame || requestAnimationFrame(() => {
    frame = 0;
    panes.draw(view, look);
  });
}

/** Colors by kind or layer; what the search does not find is pale. */
function recolor() {
  const {buffers: list} = view.space, byLayer = byId("colorBy").value === "layer";
  const wanted = byId("find").value.trim().toLowerCase();
  look.colors = new Uint32Array(list.length);
  look.edges = new Uint32Array(list.length);
  list.forEach((b, i) => {
    const kind = kinds[buffers.kind[b]], part = buffers.part[b];
    const color = byLayer ? partColors[part] : part % 2 ? kind.shade : kind.color;
    const found = !wanted || buffers.name[b].toLowerCase().includes(wanted) || parts[part].toLowerCase().includes(wanted);
    look.colors[i] = pixelOf(color, 1, found ? 0 : 0.85);
    look.edges[i] = pixelOf(color, 0.75, found ? 0 : 0.85);
  });
  redraw();
}

function choose(position) {
  look.position = Math.min(positions - 1, Math.max(0, Math.floor(position)));
  look.live = liveAt(view.space, look.position);
  showLive(view.space, look.position, look.live, chooseBuffer);
  view.show(look.position);
  redraw();
}

function chooseBuffer(b) {
  byId("chosen").replaceChildren(...(b < 0 ? [] : detailsOf(b)));
  look.hovered = b < 0 ? -1 : view.space.buffers.indexOf(b);
  redraw();
}

function useSpace(index) {
  view.setSpace(index);
  byId("title").textContent = `Peak: ${bytesText(view.space.peak)}, in the ${whereText(view.space.position)}`;
  byId("summary").textContent = "Why: " + view.space.summary;
  const largest = kinds.map((_, k) => view.space.curve.bytes[k].reduce((a, b) => Math.max(a, b), 0));
  byId("legend").replaceChildren(...kinds.filter((_, k) => largest[k] > 0)
    .map(kind => element("span", [swatch(kind.color), kind.label])));
  recolor();
  choose(view.space.position);
}

/** Where the pointer is: position, fractions of the map, and the buffer's place in space.buffers. */
function pointAt(event) {
  const box = byId("picture").getBoundingClientRect(), {width, top, height} = panes.layout();
  const x = event.clientX - box.left - kLeft, y = event.clientY - box.top - top, dpr = window.devicePixelRatio || 1;
  return {
    inside: x >= 0 && x < width, fx: x / width, fy: 1 - y / height, inMap: x >= 0 && x < width && y >= 0 && y < height,
    position: view.x0 + x / width * (view.x1 - view.x0), index: panes.raster.at(x * dpr, y * dpr),
  };
}

function hover(event) {
  const point = pointAt(event), index = point.inMap ? point.index : -1;
  if (index !== look.hovered) {
    look.hovered = index;
    redraw();
  }
  if (index >= 0)
    return showTip(detailsOf(view.space.buffers[index]), event.clientX, event.clientY);
  if (!point.inside || point.inMap || point.fy <= 1)
    return showTip(null);
  const {at, total} = view.space.curve, position = Math.min(positions - 1, Math.floor(point.position));
  let i = 0;
  while (i + 1 < at.length && at[i + 1] <= position)
    ++i;
  const words = [element("b", `${bytesText(total[i])} live`), element("div", `in the ${whereText(position)}`)];
  showTip(words, event.clientX, event.clientY);
}

function listen() {
  const picture = byId("picture");
  picture.addEventListener("pointerdown", event => {
    picture.setPointerCapture(event.pointerId);
    drag = {x: event.clientX, y: event.clientY, moved: false};
  });
  picture.addEventListener("pointermove", event => {
    if (!drag)
      return hover(event);
    const {width, height} = panes.layout(), dx = event.clientX - drag.x, dy = event.clientY - drag.y;
    if (!drag.moved && Math.hypot(dx, dy) < 4)
      return;
    showTip(null);
    view.move(-dx / width, dy / height);
    drag = {x: event.clientX, y: event.clientY, moved: true};
    redraw();
  });
  picture.addEventListener("pointerup", event => {
    const point = pointAt(event), click = drag && !drag.moved && point.inside;
    drag = null;
    if (click) {
      choose(point.position);
      chooseBuffer(point.inMap && point.index >= 0 ? view.space.buffers[point.index] : -1);
    }
  });
  picture.addEventListener("pointerleave", () => showTip(null));
  picture.addEventListener("dblclick", () => { view.reset(); redraw(); });
  picture.addEventListener("wheel", event => {
    event.preventDefault();
    const point = pointAt(event), factor = Math.exp(0.0015 * (event.deltaY || event.deltaX));
    const inside = fraction => Math.min(1, Math.max(0, fraction));
    view.zoom(event.shiftKey ? 1 : factor, event.ctrlKey ? 1 : factor, inside(point.fx), inside(point.fy));
    redraw();
  }, {passive: false});
  picture.addEventListener("keydown", event => {
    const keys = {
      ArrowLeft: () => choose(look.position - 1), ArrowRight: () => choose(look.position + 1),
      ArrowUp: () => view.move(0, 0.1), ArrowDown: () => view.move(0, -0.1),
      "+": () => view.zoom(0.8, 0.8, 0.5, 0.5), "-": () => view.zoom(1.25, 1.25, 0.5, 0.5),
      p: () => choose(view.space.position), 0: () => view.reset(),
    };
    if (!keys[event.key])
      return;
    event.preventDefault();
    keys[event.key]();
    redraw();
  });
  byId("controls").addEventListener("submit", event => event.preventDefault());
  byId("colorBy").addEventListener("change", recolor);
  byId("find").addEventListener("input", recolor);
  byId("evenly").addEventListener("change", event => { view.setEvenly(event.target.checked); redraw(); });
  byId("toPeak").addEventListener("click", () => choose(view.space.position));
  byId("wholeStep").addEventListener("click", () => { view.reset(); redraw(); });
  byId("space").addEventListener("change", event => useSpace(Number(event.target.value)));
  window.addEventListener("resize", redraw);
}

byId("subtitle").textContent = data.subtitle;
data.spaces.forEach((space, i) => byId("space").append(new Option(space.kind, i)));
byId("spaceLabel").hidden = data.spaces.length < 2;
listen();
useSpace(0);
