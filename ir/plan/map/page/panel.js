// SPDX-License-Identifier: Apache-2.0
// The words beside the picture: what lives at the chosen moment; what is known of a buffer.
function element(tag, content, className) {
  const node = document.createElement(tag);
  if (className)
    node.className = className;
  for (const child of Array.isArray(content) ? content : [content])
    node.append(child);
  return node;
}

const byId = id => document.getElementById(id);

function swatch(color) {
  const node = document.createElement("i");
  node.style.background = color;
  return node;
}

/** Bytes by kind as a bar; `whole` fills the width. */
function barOf(byKind, whole) {
  const bar = element("div", [], "bar");
  byKind.forEach((bytes, k) => {
    if (bytes === 0)
      return;
    const piece = document.createElement("div");
    piece.style.width = 100 * bytes / whole + "%";
    piece.style.background = kinds[k].color;
    bar.append(piece);
  });
  return bar;
}

function detailsOf(b) {
  const list = document.createElement("dl");
  for (const [term, text] of lifeOf(b))
    list.append(element("dt", term), element("dd", text));
  return [element("b", buffers.name[b]), list];
}

function nameWithLayer(b) {
  const name = buffers.name[b], part = parts[buffers.part[b]];
  return name.startsWith(part) ? name : `${part}: ${name}`;
}

/** `choose`: called with a buffer whose row is clicked. */
function showLive(space, position, live, choose) {
  byId("moment").textContent = `${bytesText(live.total)} live${position === space.position ? ": the peak" : ""}`;
  byId("where").textContent = `in the ${whereText(position)}`;
  const byBytes = kinds.map((kind, k) => [kind, live.byKind[k]]).filter(([, bytes]) => bytes > 0).sort((a, b) => b[1] - a[1]);
  byId("kinds").replaceChildren(...byBytes.map(([kind, bytes]) => element("tr", [
    element("td", [swatch(kind.color), kind.label]), element("td", bytesText(bytes), "number"),
    element("td", percentText(bytes, live.total), "number")])));
  byId("groups").replaceChildren(...live.groups.slice(0, 60).map(group => {
    const layers = group.parts > 1 ? `${group.parts} layers of up to ${bytesText(group.most)}, ` : "";
    return element("tr", [
      element("td", bytesText(group.total), "number"), element("td", percentText(group.total, live.total), "number grey"),
      element("td", [element("b", group.name), element("div", layers + group.why, "grey"),
                     barOf(group.byKind, live.groups[0].total)])]);
  }));
  byId("largest").replaceChildren(...live.buffers.slice(0, 20).map(b => {
    const row = element("tr", [
      element("td", bytesText(buffers.bytes[b]), "number"),
      element("td", [swatch(kinds[buffers.kind[b]].color), nameWithLayer(b)])], "buffer");
    row.addEventListener("click", () => choose(b));
    return row;
  }));
}

/** Beside the pointer, inside the window. */
function showTip(content, x, y) {
  const tip = byId("tip");
  tip.hidden = !content;
  if (!content)
    return;
  tip.replaceChildren(...content);
  tip.style.left = Math.min(x + 14, window.innerWidth - tip.offsetWidth - 4) + "px";
  tip.style.top = (y + 14 + tip.offsetHeight < window.innerHeight ? y + 14 : Math.max(0, y - 14 - tip.offsetHeight)) + "px";
}
