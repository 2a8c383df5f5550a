// SPDX-License-Identifier: Apache-2.0
// What lives at a moment, and why: the reasons that Story.cpp gives for the peak, for any position.
const numbered = parts.map(name => {
  const match = /^(.*?)(\d+)$/.exec(name);
  return match && match[1] ? {base: match[1], number: Number(match[2])} : {base: name, number: -1};
});

/** "decoder.block" of "decoder.block.23". */
const stemOf = part => numbered[part].base.replace(/[./_]+$/, "");

function whyAt(b, position, inUse) {
  if (kinds[buffers.kind[b]].name === "workspace")
    return "scratch memory of commands";
  if (buffers.always[b])
    return "kept from step to step";
  if (inUse.has(b))
    return "in use by this command";
  if (kinds[buffers.kind[b]].name === "communication")
    return "in flight between the ranks";
  if (buffers.reader[b] <= position)
    return "kept to the end of the program";
  const reader = passAt(buffers.reader[b]), writer = buffers.writer[b] < 0 ? passAt(position) : passAt(buffers.writer[b]);
  if (reader === writer)
    return "read again later in the " + reader;
  return (reader === "update" ? "waits for the " : "saved for the ") + reader;
}

/** {total, byKind, groups: [{name, why, byKind, total, parts, most}], buffers}: groups and buffers largest first. */
function liveAt(space, position) {
  const live = [], byKind = kinds.map(() => 0), groups = new Map();
  const inUse = new Set(commands.operands[position] || []);
  for (const b of space.buffers) {
    if (!livesAt(b, position))
      continue;
    live.push(b);
    const bytes = alignedBytes(b), kind = buffers.kind[b], part = buffers.part[b], {base, number} = numbered[part];
    const why = whyAt(b, position, inUse), key = base + "\n" + why;
    if (!groups.has(key))
      groups.set(key, {base, why, byKind: kinds.map(() => 0), total: 0, byPart: new Map(), low: Infinity, high: -1});
    const group = groups.get(key);
    byKind[kind] += bytes;
    group.byKind[kind] += bytes;
    group.total += bytes;
    group.byPart.set(part, (group.byPart.get(part) || 0) + bytes);
    if (number >= 0) {
      group.low = Math.min(group.low, number);
      group.high = Math.max(group.high, number);
    }
  }
  for (const group of groups.values()) {
    group.name = group.base + (group.high < 0 ? "" : group.low === group.high ? group.low : `${group.low}-${group.high}`);
    group.parts = group.byPart.size;
    group.most = Math.max(...group.byPart.values());
  }
  live.sort((a, b) => buffers.bytes[b] - buffers.bytes[a] || a - b);
  return {
    total: byKind.reduce((a, b) => a + b, 0), byKind, buffers: live,
    groups: [...groups.values()].sort((a, b) => b.total - a.total),
  };
}

/** What lives as one pile, from the bottom up: what is kept by kind, then the rest by kind and layer. {kept, all, pieces}, in bytes. */
function pileOf(list) {
  const rank = b => (buffers.always[b] ? 0 : kinds.length) + buffers.kind[b], part = b => buffers.always[b] ? 0 : buffers.part[b];
  const pieces = [];
  let all = 0, kept = 0, before = -1;
  for (const b of list.slice().sort((a, b) => rank(a) - rank(b) || part(a) - part(b) || a - b)) {
    const always = buffers.always[b], kind = kinds[buffers.kind[b]], name = always ? kind.label : parts[buffers.part[b]];
    if (before < 0 || rank(before) !== rank(b) || part(before) !== part(b))
      pieces.push({begin: all, name, stem: always ? name : stemOf(buffers.part[b]),
                   color: !always && buffers.part[b] % 2 ? kind.shade : kind.color});
    all += alignedBytes(b);
    kept += always ? alignedBytes(b) : 0;
    pieces[pieces.length - 1].end = all;
    before = b;
  }
  return {kept, all, pieces};
}

/** Runs of pieces that have room for a line of text: thin ones of one stem together, and what is too thin still. */
function linesOf(pieces, level, line) {
  const isThin = run => level(run[0].begin) - level(run[run.length - 1].end) < line;
  const join = (runs, run, joins) => {
    const last = runs[runs.length - 1];
    if (last && isThin(run) && joins(last))
      last.push(...run);
    else
      runs.push(run);
    return runs;
  };
  const ofStem = pieces.reduce((runs, piece) => join(runs, [piece], last => last[0].stem === piece.stem && isThin(last.slice(-1))), []);
  return ofStem.reduce((runs, run) => join(runs, run, isThin), []);
}

/** "1.66 GiB  encoder.block, decoder.block": layers of one stem together; what is less than a twentieth goes without saying. */
function describe(pieces) {
  const shares = new Map();
  let all = 0;
  for (const {begin, end, name, stem} of pieces) {
    const share = shares.get(stem) || {name, bytes: 0};
    shares.set(stem, {name: share.name === name ? name : stem, bytes: share.bytes + end - begin});
    all += end - begin;
  }
  const heavy = [...shares.values()].filter(share => share.bytes * 20 >= all);
  return bytesText(all) + "  " + heavy.map(share => share.name).join(", ");
}
