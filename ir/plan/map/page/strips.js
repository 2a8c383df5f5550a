// SPDX-License-Identifier: Apache-2.0
// Which pass, which layers and which layer compute, as runs of positions {first, last, labels, color}; one list for each strip.
const kPassColors = {"forward pass": "#cfe0f1", "backward pass": "#f3d9c6", update: "#d6e8cf", evaluation: "#e3e3e3"};

/** `labels`: the first that fits is shown. Neighbouring bands of the same key are one run. */
function runsOf(key, labels, color) {
  const runs = [];
  let before = null;
  for (const band of bands) {
    const now = key(band);
    if (now === before)
      runs[runs.length - 1].last = band.last;
    else
      runs.push({first: band.first, last: band.last, labels: labels(band), color: color(band)});
    before = now;
  }
  return runs;
}

const strips = (() => {
  const pass = band => passAt(band.first), several = data.programs.length > 3; // micro-steps apart
  const inPass = band => band.program + pass(band) + "\n";
  const passLabels = band => {
    const program = data.programs[band.program];
    return several && program.startsWith("train") ? [`${program}: ${pass(band)}`, pass(band)] : [pass(band)];
  };
  const stemLabels = band => { // "deberta.encoder.layer", "encoder.layer", "encoder", "layer"
    const stem = stemOf(band.part), [last, parent] = stem.split(".").reverse();
    return parent === undefined ? [stem] : [stem, `${parent}.${last}`, parent, last];
  };
  const numberLabels = band => numbered[band.part].number < 0 ? [] : [String(numbered[band.part].number)];
  return [
    runsOf(inPass, passLabels, b => kPassColors[pass(b)]),
    runsOf(b => inPass(b) + stemOf(b.part), stemLabels, () => "#e9edf0"),
    runsOf(b => inPass(b) + parts[b.part], numberLabels, b => b.part % 2 ? "#cdd5dc" : "#dfe5ea"),
  ];
})();
