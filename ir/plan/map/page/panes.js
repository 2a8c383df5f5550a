// SPDX-License-Identifier: Apache-2.0
// The picture: live bytes over time, strips that say what computes, the map, and what lives at the chosen moment.
const kLeft = 74, kRight = 214, kTop = 20, kCurve = 120, kStrip = 17, kGap = 8, kBottom = 24, kPileWidth = 18;
const kRed = "#b3001b", kInk = "#20262c", kGrey = "#66707a", kFree = "#f1f3f5";

class Panes {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", {alpha: false});
    this.raster = new Raster();
    this.curve = new Raster();
  }

  /** CSS pixels of the panes. */
  layout() {
    const width = Math.max(80, this.canvas.clientWidth - kLeft - kRight), top = kTop + kCurve + 3 * kStrip + kGap;
    return {width, top, height: Math.max(40, this.canvas.clientHeight - top - kBottom)};
  }

  draw(view, look) {
    this.view = view;
    const dpr = window.devicePixelRatio || 1, {canvas, context: c} = this;
    const [w, h] = [Math.max(1, Math.round(canvas.clientWidth * dpr)), Math.max(1, Math.round(canvas.clientHeight * dpr))];
    if (canvas.width !== w || canvas.height !== h)
      [canvas.width, canvas.height] = [w, h];
    c.setTransform(dpr, 0, 0, dpr, 0, 0);
    c.fillStyle = "#fff";
    c.fillRect(0, 0, canvas.clientWidth, canvas.clientHeight);
    const {width, top, height} = this.layout();
    this.raster.resize(Math.round(width * dpr), Math.round(height * dpr));
    this.raster.draw(view, look.colors, look.edges);
    c.putImageData(this.raster.image, Math.round(kLeft * dpr), Math.round(top * dpr));
    this.drawCurve(dpr, width);
    this.drawStrips(width);
    this.drawNames(width, top, height);
    this.drawScale(width, top, height);
    this.drawPile(look, top, height);
    this.drawMoment(look, width, top, height);
  }

  x(position) { return kLeft + (position - this.view.x0) / (this.view.x1 - this.view.x0) * this.layout().width; }

  text(text, x, y, {align = "left", color = kInk, size = 10, bold = false} = {}) {
    const {context: c} = this;
    c.font = `${bold ? "bold " : ""}${size}px system-ui, Helvetica, Arial, sans-serif`;
    c.textAlign = align;
    c.fillStyle = color;
    c.fillText(text, x, y);
    return c.measureText(text).width;
  }

  /** The longest beginning of a text that fits, or nothing. */
  fitting(text, width, size = 10) {
    const {context: c} = this;
    c.font = `${size}px system-ui, Helvetica, Arial, sans-serif`;
    if (c.measureText(text).width <= width)
      return text;
    let low = 0, high = text.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (c.measureText(text.slice(0, middle) + "\u2026").width <= width)
        low = middle;
      else
        high = middle - 1;
    }
    return low >= 4 ? text.slice(0, low) + "\u2026" : "";
  }

  /** Bytes by kind piled up; each pixel shows the highest moment in it. */
  drawCurve(dpr, width) {
    const {view, curve, context: c} = this, {at, bytes, total} = view.space.curve;
    curve.resize(Math.round(width * dpr), Math.round(kCurve * dpr));
    const scale = curve.width / (view.x1 - view.x0), most = Math.max(1, view.space.bytes) * 1.06;
    const highest = new Int32Array(curve.width).fill(-1);
    for (let i = 0; i < at.length; ++i) {
      const end = i + 1 < at.length ? at[i + 1] : positions;
      const from = Math.max(0, Math.floor((at[i] - view.x0) * scale));
      const to = Math.min(curve.width, Math.max(from + 1, Math.ceil((end - view.x0) * scale)));
      for (let x = from; x < to; ++x)
        if (highest[x] < 0 || total[highest[x]] < total[i])
          highest[x] = i;
    }
    curve.pixels.fill(Raster.kFree);
    const colors = kinds.map(kind => pixelOf(kind.color));
    for (let x = 0; x < curve.width; ++x) {
      let sum = 0, bottom = curve.height;
      for (let k = 0; k < kinds.length; ++k) {
        sum += bytes[k][highest[x]];
        const top = Math.max(0, Math.round(curve.height * (1 - sum / most)));
        for (let y = top; y < bottom; ++y)
          curve.pixels[y * curve.width + x] = colors[k];
        bottom = Math.min(bottom, top);
      }
    }
    c.putImageData(curve.image, Math.round(kLeft * dpr), Math.round(kTop * dpr));
    const level = value => kTop + kCurve * (1 - value / most);
    c.setLineDash([5, 3]);
    for (const [value, color] of [[view.space.bytes, kInk], [view.space.bound, kGrey]]) {
      c.strokeStyle = color;
      c.beginPath();
      c.moveTo(kLeft, level(value));
      c.lineTo(kLeft + width, level(value));
      c.stroke();
    }
    c.setLineDash([]);
    this.text(bytesText(view.space.bytes), kLeft - 6, level(view.space.bytes) + 4, {align: "right", color: kGrey});
    this.text("0", kLeft - 6, kTop + kCurve, {align: "right", color: kGrey});
    const right = kLeft + width + 8;
    this.text("Live bytes, by kind", right, kTop + 10, {bold: true});
    this.text(`arena ${bytesText(view.space.bytes)} (upper dashes)`, right, kTop + 26);
    this.text(`lower bound ${bytesText(view.space.bound)} (lower dashes)`, right, kTop + 40);
    this.text(`gap ${percentText(view.space.bytes - view.space.bound, view.space.bound)}`, right, kTop + 54);
    if (view.space.method)
      this.text(this.fitting(`packed by: ${view.space.method}`, kRight - 12), right, kTop + 68);
  }

  /** What computes: pass, layers, layer. Runs of less than a pixel are left out. */
  drawStrips(width) {
    const {view, context: c} = this, scale = width / (view.x1 - view.x0);
    c.font = "10px system-ui, Helvetica, Arial, sans-serif";
    strips.forEach((runs, row) => {
      const y = kTop + kCurve + 2 + row * kStrip;
      c.fillStyle = "#e9edf0";
      c.fillRect(kLeft, y, width, kStrip - 1);
      for (let i = runAt(runs, view.x0); i < runs.length && runs[i].first < view.x1; ++i) {
        const run = runs[i], from = Math.max(0, Math.round((run.first - view.x0) * scale));
        const to = Math.min(width, Math.round((run.last - view.x0) * scale));
        if (from >= to)
          continue;
        c.fillStyle = run.color;
        c.fillRect(kLeft + from, y, to - from, kStrip - 1);
        const label = to - from > 8 && run.labels.find(text => c.measureText(text).width + 2 < to - from);
        if (label)
          this.text(label, kLeft + (from + to) / 2, y + 12, {align: "center"});
      }
    });
  }

  /** Names inside the buffers that are large enough. */
  drawNames(width, top, height) {
    const {view} = this, {buffers: list} = view.space;
    const scaleX = width / (view.x1 - view.x0), scaleY = height / (view.y1 - view.y0);
    for (let i = 0; i < list.length; ++i) {
      if ((view.high[i] - view.low[i]) * scaleY < 13)
        continue;
      const y0 = Math.max(0, (view.y1 - view.high[i]) * scaleY), y1 = Math.min(height, (view.y1 - view.low[i]) * scaleY);
      const b = list[i], x0 = Math.max(0, (buffers.first[b] - view.x0) * scaleX);
      const x1 = Math.min(width, (buffers.last[b] - view.x0) * scaleX);
      if (y1 - y0 < 13 || x1 - x0 < 40)
        continue;
      const text = this.fitting(`${buffers.name[b]}  ${bytesText(buffers.bytes[b])}`, x1 - x0 - 8);
      if (text)
        this.text(text, kLeft + x0 + 4, top + (y0 + y1) / 2 + 4);
    }
  }

  /** Addresses on the left, positions below. */
  drawScale(width, top, height) {
    const {view, context: c} = this, level = address => top + (view.y1 - view.heightOf(address)) / (view.y1 - view.y0) * height;
    const low = view.addressOf(view.y0), high = view.addressOf(view.y1);
    let step = kAlignment, before = Infinity;
    while ((high - low) / step > 12)
      step *= 2;
    for (let at = Math.ceil(low / step) * step; at <= high; at += step) {
      const y = level(at);
      if (before - y < 13)
        continue;
      before = y;
      this.text(at ? bytesText(at) : "0", kLeft - 8, y + 4, {align: "right", color: kGrey});
      c.fillStyle = "#c9ced3";
      c.fillRect(kLeft - 5, y, 5, 1);
    }
    for (const region of view.space.regions) {
      const bottom = level(region.offset), over = level(region.offset + region.bytes);
      c.fillStyle = kInk;
      if (region.offset && bottom > top && bottom < top + height)
        c.fillRect(kLeft, Math.round(bottom), width, 1);
      const y = Math.max(top, over) + 11;
      if (Math.min(bottom, top + height) - y >= 3)
        this.text(`${region.name}: ${bytesText(region.bytes)}`, kLeft + width - 6, y, {align: "right"});
    }
    let tick = 1;
    while ((view.x1 - view.x0) / tick > 10)
      tick *= String(tick)[0] === "2" ? 2.5 : 2;
    for (let at = Math.ceil(view.x0 / tick) * tick; at < view.x1; at += tick)
      this.text(String(at), this.x(at), top + height + 12, {align: "center", color: kGrey});
    this.text("addresses \u2191   commands \u2192", kLeft, top + height + 22, {color: kGrey});
  }

  /** What lives at the chosen moment, by layer, with names; thin neighbours share a line. What is kept is drawn lower than it is. */
  drawPile(look, top, height) {
    const {context: c} = this, x = kLeft + this.layout().width + 8, kLine = 11, kKeptShare = 0.25;
    const {kept, all, pieces} = pileOf(look.live.buffers);
    const share = kept < all ? Math.min(kKeptShare, kept / all) : 1;
    const level = bytes => top + height * (1 - (bytes < kept ? share * bytes / kept :
      share + (1 - share) * (bytes - kept) / Math.max(1, all - kept)));
    for (const run of linesOf(pieces, level, kLine)) {
      for (const piece of run) {
        c.fillStyle = piece.color;
        c.fillRect(x, level(piece.end), kPileWidth, level(piece.begin) - level(piece.end));
      }
      const over = level(run[run.length - 1].end), under = level(run[0].begin);
      if (under - over < kLine)
        continue;
      c.fillStyle = "#c9ced3";
      c.fillRect(x + kPileWidth + 3, over + 1, 1, under - over - 2);
      const words = this.fitting(describe(run), kRight - kPileWidth - 20);
      this.text(words, x + kPileWidth + 8, (over + under) / 2 + 4);
    }
    this.text(`what lives at command ${look.position}, by layer`, x, top + height + 12, {color: kRed});
  }

  /** The line of the chosen moment through all panes, and the mark of the peak. */
  drawMoment(look, width, top, height) {
    const {view, context: c} = this;
    const mark = (position, color, dash, text) => {
      const x = this.x(position + 0.5);
      if (x < kLeft || x > kLeft + width)
        return;
      c.strokeStyle = color;
      c.setLineDash(dash);
      c.beginPath();
      c.moveTo(x, kTop - 2);
      c.lineTo(x, top + height);
      c.stroke();
      c.setLineDash([]);
      this.text(text, Math.min(Math.max(x, kLeft + 50), kLeft + width - 50), kTop - 6, {align: "center", color, bold: true});
    };
    const {position, peak} = view.space;
    if (look.position !== position)
      mark(look.position, kInk, [], `${bytesText(look.live.total)}`);
    mark(position, kRed, [5, 3], `peak ${bytesText(peak)}`);
    if (look.hovered >= 0) {
      const i = look.hovered, b = view.space.buffers[i], scaleY = height / (view.y1 - view.y0);
      const x0 = Math.max(kLeft, this.x(buffers.first[b])), x1 = Math.min(kLeft + width, this.x(buffers.last[b]));
      const y0 = Math.max(0, (view.y1 - view.high[i]) * scaleY), y1 = Math.min(height, (view.y1 - view.low[i]) * scaleY);
      c.strokeStyle = kInk;
      c.lineWidth = 2;
      c.strokeRect(x0, top + y0, Math.max(1, x1 - x0), Math.max(1, y1 - y0));
      c.lineWidth = 1;
    }
  }
}
