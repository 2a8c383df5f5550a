// SPDX-License-Identifier: Apache-2.0
// Which pass, which layers and which layer compute, as runs of positions {first, last, label, color}; one list for each strip.
const kPassColors = {"forward pass": "#cfe0f1", "backward pass": "#f3d9c6", update: "#d6e8cf", evaluation: "#e3e3e3"};

/** Neighbouring bands of the same key are one run. */
function runsOf(key, label, color) {
  const runs = [];
  let before = null;
  for (const band of bands) {
    const now = key(band);
    if (now === before)
      runs[runs.length - 1].last = band.last;
    else
      runs.push({first: band.first, last: band.last, label: label(band), color: color(band)});
    before = now;
  }
  return runs;
}

const strips = (() => {
  const pass = band => passAt(band.first), several = data.programs.length > 3; // micro-steps apart
  const inPass = band => band.program + pass(band) + "\n";
  return [
    runsOf(inPass, b => (several && b.phase !== 2 ? data.programs[b.program] + ": " : "") + pass(b), b => kPassColors[pass(b)]),
    runsOf(b => inPass(b) + stemOf(b.part), b => stemOf(b.part), () => "#e9edf0"),
    runsOf(b => inPass(b) + parts[b.part], b => numbered[b.part].number < 0 ? "" : String(numbered[b.part].number),
      b => b.part % 2 ? "#cdd5dc" : "#dfe5ea"),
  ];
})();
