// SPDX-License-Identifier: Apache-2.0
// The map as pixels: one pass over the buffers, which do not overlap, so that 100,000 of them cost little more than the pixels.
// The buffer under each pixel is kept: looking one up is reading an array.
class Raster {
  constructor() {
    this.width = this.height = 0;
  }

  resize(width, height) {
    if (width === this.width && height === this.height)
      return;
    Object.assign(this, {width, height});
    this.image = new ImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.indices = new Int32Array(width * height);
  }

  /** `colors`: 0xAABBGGRR by place in space.buffers, `edges` for their borders. */
  draw(view, colors, edges) {
    const {width, height, pixels, indices} = this, {buffers: list} = view.space;
    const scaleX = width / (view.x1 - view.x0), scaleY = height / (view.y1 - view.y0);
    pixels.fill(Raster.kFree);
    indices.fill(-1);
    for (let i = 0; i < list.length; ++i) {
      const top = Math.max(0, Math.round((view.y1 - view.high[i]) * scaleY));
      const bottom = Math.min(height, Math.round((view.y1 - view.low[i]) * scaleY));
      if (top >= bottom)
        continue;
      const begin = Math.round((buffers.first[list[i]] - view.x0) * scaleX);
      const left = Math.max(0, begin);
      const right = Math.min(width, Math.max(begin + 1, Math.round((buffers.last[list[i]] - view.x0) * scaleX)));
      if (left >= right)
        continue;
      const edged = bottom - top > 4, sided = edged && right - left > 4 && left === begin;
      for (let row = top; row < bottom; ++row) {
        const color = edged && row === top ? edges[i] : colors[i], at = row * width + left, end = row * width + right;
        if (right - left > 32) {
          pixels.fill(color, at, end);
          indices.fill(i, at, end);
        } else { // a call costs more than so few pixels
          for (let p = at; p < end; ++p) {
            pixels[p] = color;
            indices[p] = i;
          }
        }
        if (sided)
          pixels[at] = edges[i];
      }
    }
  }

  /** Place in space.buffers, or -1. */
  at(x, y) {
    return x >= 0 && y >= 0 && x < this.width && y < this.height ? this.indices[Math.floor(y) * this.width + Math.floor(x)] : -1;
  }
}
Raster.kFree = 0xfff5f3f1;

/** "#rrggbb" to the pixel's number; `dark` 1: as it is; `pale` 0: as it is, 1: white. */
function pixelOf(color, dark = 1, pale = 0) {
  const channel = i => {
    const value = parseInt(color.slice(i, i + 2), 16) * dark;
    return Math.round(value + (244 - value) * pale);
  };
  return (0xff000000 | channel(5) << 16 | channel(3) << 8 | channel(1)) >>> 0;
}

/** A color for each part, so that neighbours differ: the golden angle apart. */
const partColors = parts.map((_, i) => {
  const hue = i * 137.508 % 360, lightness = 0.58 + 0.1 * (i % 3 - 1);
  const channel = n => {
    const k = (n + hue / 30) % 12;
    const value = lightness - 0.5 * Math.min(lightness, 1 - lightness) * Math.max(-1, Math.min(k - 3, 9 - k, 1));
    return Math.round(255 * value).toString(16).padStart(2, "0");
  };
  return "#" + channel(0) + channel(8) + channel(4);
});
