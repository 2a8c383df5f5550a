// SPDX-License-Identifier: Apache-2.0
// The plan as Html.cpp wrote it, and what can be asked of it. Positions number the commands of all programs.
const data = JSON.parse(document.getElementById("data").textContent);
const {kinds, parts, bands, commands, strings, buffers} = data;
const positions = Math.max(1, commands.kernel.length);
const kAlignment = 256;

const alignedBytes = b => Math.ceil(buffers.bytes[b] / kAlignment) * kAlignment;
const livesAt = (b, position) => buffers.first[b] <= position && position < buffers.last[b];

/** "1.50 GiB": three digits, as the other reports print it. */
function bytesText(bytes) {
  if (bytes < 1024)
    return bytes + " B";
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let unit = 0;
  for (; bytes >= 999.5 && unit + 1 < units.length; ++unit)
    bytes /= 1024;
  return bytes.toFixed(bytes < 9.995 ? 2 : bytes < 99.95 ? 1 : 0) + " " + units[unit];
}

const countText = count => count.toLocaleString("en");
const percentText = (part, whole) => (whole > 0 ? 100 * part / whole : 0).toFixed(1) + " %";

/** Of runs that begin at `first`, in order: the place of the one that a position lies in. */
function runAt(runs, position) {
  let low = 0, high = runs.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (runs[middle].first <= position)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

/** Program, pass and part of the model that compute at a position. */
const bandAt = position => bands[runAt(bands, position)];

function passAt(position) {
  const band = bandAt(position);
  return data.programs[band.program] === "eval" ? "evaluation" : ["forward pass", "backward pass", "update"][band.phase];
}

/** "backward pass of lm_head (matmul, command 524 of train)" */
function whereText(position) {
  const band = bandAt(position);
  return `${passAt(position)} of ${parts[band.part]} (${strings[commands.kernel[position]]}, command ${position} of ` +
    `${data.programs[band.program]})`;
}

/** "command 524: matmul, /m/lm_head/MatMul, in the backward pass"; -1: none. */
function commandText(position, none) {
  if (position < 0)
    return none;
  const place = strings[commands.place[position]];
  return `command ${position}: ${strings[commands.kernel[position]]}${place ? ", " + place : ""}, in the ${passAt(position)}`;
}

/** [term, text] pairs: all that is known of a buffer. */
function lifeOf(b) {
  const always = buffers.always[b];
  return [
    ["layer", parts[buffers.part[b]]],
    ["kind", kinds[buffers.kind[b]].label],
    ["bytes", `${bytesText(buffers.bytes[b])} (${countText(buffers.bytes[b])}) at offset ${countText(buffers.offset[b])}`],
    ["lives", always ? "always, over all steps" : `commands ${buffers.first[b]} to ${buffers.last[b] - 1}`],
    ["written by", commandText(buffers.writer[b], "nobody: given from outside")],
    ["last read by", commandText(buffers.reader[b], "nobody in a step")],
  ];
}
