// SPDX-License-Identifier: Apache-2.0
// What part of the map is shown. Time is in positions; height in fractions of the whole arena's, 0 at the bottom, so that a
// stretch of addresses can be drawn lower than it is (see AddressAxis in Curve.h).
class View {
  constructor() {
    this.evenly = false;
    this.setSpace(0);
  }

  setSpace(index) {
    const all = data.spaces[index];
    this.space = all;
    if (!all.buffers) { // once: what lives long is drawn first, so that what comes and goes is not hidden
      all.buffers = [];
      for (let b = 0; b < buffers.bytes.length; ++b)
        if (buffers.space[b] === index && buffers.bytes[b] > 0 && buffers.first[b] < buffers.last[b])
          all.buffers.push(b);
      all.buffers.sort((a, b) => (buffers.last[b] - buffers.first[b]) - (buffers.last[a] - buffers.first[a]) || a - b);
    }
    this.place();
    this.reset();
  }

  setEvenly(evenly) {
    this.evenly = evenly;
    this.place();
  }

  /** Heights of all buffers, by their place in `space.buffers`. */
  place() {
    const {buffers: list} = this.space;
    this.low = new Float64Array(list.length);
    this.high = new Float64Array(list.length);
    list.forEach((b, i) => {
      this.low[i] = this.heightOf(buffers.offset[b]);
      this.high[i] = this.heightOf(buffers.offset[b] + alignedBytes(b));
    });
  }

  get axis() { return this.evenly ? [[0, 0], [Math.max(1, this.space.bytes), 1]] : this.space.axis; }

  heightOf(address) { return View.interpolate(this.axis, 0, 1, address); }
  addressOf(height) { return View.interpolate(this.axis, 1, 0, height); }
  static interpolate(points, from, to, value) {
    let i = 1;
    while (i + 1 < points.length && points[i][from] <= value)
      ++i;
    const a = points[i - 1], b = points[i];
    return a[to] + (b[to] - a[to]) * (value - a[from]) / (b[from] - a[from]);
  }

  reset() { Object.assign(this, {x0: 0, x1: positions, y0: 0, y1: 1}); }

  /** Keeps the point (fx, fy), fractions of the pane from its left and bottom, where it is. */
  zoom(factorX, factorY, fx, fy) {
    const width = Math.min(positions, Math.max(4, (this.x1 - this.x0) * factorX));
    const height = Math.min(1, Math.max(1e-7, (this.y1 - this.y0) * factorY));
    this.x0 += fx * (this.x1 - this.x0 - width);
    this.y0 += fy * (this.y1 - this.y0 - height);
    this.x1 = this.x0 + width;
    this.y1 = this.y0 + height;
    this.move(0, 0);
  }

  /** By fractions of the pane; stops at the ends. */
  move(dx, dy) {
    const width = this.x1 - this.x0, height = this.y1 - this.y0;
    this.x0 = Math.min(Math.max(0, this.x0 + dx * width), positions - width);
    this.y0 = Math.min(Math.max(0, this.y0 + dy * height), 1 - height);
    this.x1 = this.x0 + width;
    this.y1 = this.y0 + height;
  }

  /** Moves so that a position is in sight. */
  show(position) {
    const width = this.x1 - this.x0;
    if (position < this.x0 || position >= this.x1)
      this.move((position - width / 2 - this.x0) / width, 0);
  }
}
