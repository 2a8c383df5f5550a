# SPDX-License-Identifier: Apache-2.0
"""The page of a memory map in a real browser: what is drawn, said and found is what the CSV of the plan holds.

MapBrowserTest.py BIN [SCREENSHOT.png]. Exit code 77: no Chromium here.
"""
import csv
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import browser  # noqa: E402

BIN = sys.argv[1]
MODEL = "tests/models/tiny-t5/ts17-loss.onnx"
MANY, SLOW_MS = 100_000, 250  # buffers; a redraw of so many on a busy machine without a GPU


def bytes_text(value):
    if value < 1024:
        return f"{value} B"
    unit = 0
    while value >= 999.5 and unit < 5:
        value, unit = value / 1024, unit + 1
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'][unit]}"


def make(folder):
    plan = f"{folder}/t5.plan"
    subprocess.run([f"{BIN}/shardc", MODEL, "--dim", "batch=8,src=16,tgt=16", "--ranks", "2", "--zero", "3", "-o", plan],
                   check=True, stdout=subprocess.DEVNULL)
    subprocess.run([f"{BIN}/shardc-inspect", plan, "--map", f"{folder}/t5.html", "--csv", f"{folder}/t5.csv"], check=True)
    subprocess.run([f"{BIN}/shardc-inspect", plan, "--map", f"{folder}/t5.svg"], check=True)
    with open(f"{folder}/t5.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row.update({k: int(row[k]) for k in ("id", "lower", "upper", "size", "offset")})
    return f"{folder}/t5.html", rows


def live(rows, position):
    return sum(r["size"] for r in rows if r["lower"] <= position < r["upper"])


def check_words(page, rows, svg):
    positions = max(r["upper"] for r in rows)
    peak = max(range(positions), key=lambda p: (live(rows, p), -p))
    title = page.js("byId('title').textContent")
    assert title.startswith(f"Peak: {bytes_text(live(rows, peak))}, in the ") and f"command {peak} of " in title, title
    assert page.js("byId('moment').textContent") == f"{bytes_text(live(rows, peak))} live: the peak"
    groups = page.js("look.live.groups.map(g => g.total)")
    assert sum(groups) == live(rows, peak) and groups == sorted(groups, reverse=True)

    # The picture tells the same story, from other code.
    words = ["".join(t.itertext()) for t in ET.parse(svg).iter("{http://www.w3.org/2000/svg}text")]
    assert title in words, title
    for group in page.js("look.live.groups.slice(0, 5).map(g => ({total: g.total, text: g.name + ' ' + g.why}))"):
        at = next(i for i, w in enumerate(words) if all(part in w for part in group["text"].split(" ", 1)))
        assert bytes_text(group["total"]) in words[at - 2:at], (group, words[at - 2:at + 1])


def check_pixels(page, rows):
    """Random points of the map: the page finds the buffer that the CSV has there, and shows it in its kind's color."""
    chooser, hits = random.Random(7), 0
    layout = page.js("({...panes.layout(), left: kLeft, pixels: [panes.raster.width, panes.raster.height]})")
    colors = dict(page.js("kinds.map(k => [k.name, [k.color, k.shade]])"))
    for _ in range(400):
        x, y = chooser.randrange(2, layout["pixels"][0] - 2), chooser.randrange(2, layout["pixels"][1] - 2)
        corners = []  # the buffers a pixel and a half around must be the same: else the point is on an edge
        for dx, dy in [(0.5, 0.5), (-1, -1), (2, -1), (-1, 2), (2, 2)]:
            position, address = page.js(
                f"[view.x0 + {x + dx} / panes.raster.width * (view.x1 - view.x0),"
                f" view.addressOf(view.y1 - {y + dy} / panes.raster.height * (view.y1 - view.y0))]")
            corners.append(next((r for r in rows if r["lower"] <= position < r["upper"]
                                 and r["offset"] <= address < r["offset"] + r["size"]), None))
        if any(c is not corners[0] for c in corners):
            continue
        found = page.js(f"panes.raster.at({x}, {y})")
        wanted = corners[0]
        assert (found < 0) == (wanted is None), (x, y, wanted)
        if wanted is None:
            continue
        assert page.js(f"view.space.buffers[{found}]") == wanted["id"], (x, y, wanted)
        pixel = page.js(f"'#' + [...panes.raster.image.data.slice(4 * ({y} * panes.raster.width + {x})).slice(0, 3)]"
                        ".map(v => v.toString(16).padStart(2, '0')).join('')")
        hits += pixel in colors[wanted["kind"]]
    assert hits > 60, hits
    return layout


def screen_of(page, row):
    """The middle of a buffer in the window."""
    return page.js(f"""(() => {{
      const box = byId('picture').getBoundingClientRect(), {{width, top, height}} = panes.layout();
      const middle = (view.heightOf({row['offset']}) + view.heightOf({row['offset'] + row['size']})) / 2;
      const position = (Math.max(view.x0, {row['lower']}) + Math.min(view.x1, {row['upper']})) / 2;
      return [box.left + kLeft + (position - view.x0) / (view.x1 - view.x0) * width,
              box.top + top + (view.y1 - middle) / (view.y1 - view.y0) * height, position];
    }})()""")


def check_mouse(page, rows):
    largest = max((r for r in rows if r["kind"] == "activation"), key=lambda r: r["size"] * (r["upper"] - r["lower"]))
    x, y, position = screen_of(page, largest)
    page.mouse("mouseMoved", x, y)
    tip = page.js("byId('tip').hidden ? '' : byId('tip').textContent")
    for text in [largest["name"], largest["layer"], "activation", bytes_text(largest["size"]), "written by", "last read by",
                 f"commands {largest['lower']} to {largest['upper'] - 1}"]:
        assert text in tip, (text, tip)
    page.click(x, y)
    assert page.js("look.position") == int(position)
    assert page.js("byId('moment').textContent").startswith(bytes_text(live(rows, int(position))) + " live")
    assert largest["name"] in page.js("byId('chosen').textContent")

    # The wheel zooms; what is under the pointer stays there.
    for _ in range(4):
        page.mouse("mouseWheel", x, y, deltaX=0, deltaY=-240)
    assert page.js("view.x1 - view.x0") < max(r["upper"] for r in rows) / 3
    page.mouse("mouseMoved", x, y)
    assert largest["name"] in page.js("byId('tip').textContent")
    page.js("byId('wholeStep').click()")
    assert page.js("[view.x0, view.x1, view.y0, view.y1]") == [0, max(r["upper"] for r in rows), 0, 1]

    # The search leaves what it finds as it is; colors by layer are others.
    index = page.js(f"view.space.buffers.indexOf({largest['id']})")
    other = page.js(f"view.space.buffers.findIndex((b, i) => i !== {index} && kinds[buffers.kind[b]].name === 'parameter')")
    before = page.js(f"[look.colors[{index}], look.colors[{other}]]")
    page.js(f"byId('find').value = {json.dumps(largest['name'])}; byId('find').dispatchEvent(new Event('input'))")
    after = page.js(f"[look.colors[{index}], look.colors[{other}]]")
    assert before[0] == after[0] and before[1] != after[1]
    page.js("byId('find').value = ''; byId('colorBy').value = 'layer'; byId('colorBy').dispatchEvent(new Event('change'))")
    assert page.js(f"look.colors[{index}]") != before[0]


def repeated(html, path):
    """The same page with its step many times in a row, so that it has MANY buffers."""
    with open(html, encoding="utf-8") as file:
        head, rest = file.read().split('id="data">', 1)
    text, tail = rest.split("</script>", 1)
    data = json.loads(text)
    length, buffers = len(data["commands"]["kernel"]), data["buffers"]
    fleeting = [i for i, always in enumerate(buffers["always"]) if not always]
    copies = -(-MANY // len(fleeting))
    for key, values in buffers.items():
        step = length if key in ("first", "last", "writer", "reader") else 0
        kept = [length * copies if key == "last" else v for v, always in zip(values, buffers["always"]) if always]
        buffers[key] = kept + [values[i] if step == 0 or values[i] == -1 else values[i] + c * step
                               for c in range(copies) for i in fleeting]
    data["commands"] = {key: values * copies for key, values in data["commands"].items()}
    data["bands"] = [{**b, "first": b["first"] + c * length, "last": b["last"] + c * length}
                     for c in range(copies) for b in data["bands"]]
    curve = data["spaces"][0]["curve"]
    data["spaces"][0]["curve"] = {
        "at": [at + c * length for c in range(copies) for at in curve["at"]],
        "total": curve["total"] * copies, "bytes": [kind * copies for kind in curve["bytes"]]}
    with open(path, "w", encoding="utf-8") as file:
        file.write(head + 'id="data">' + json.dumps(data).replace("<", "\\u003c") + "</script>" + tail)


def check_many(page):
    count = page.js("buffers.bytes.length")
    assert count >= MANY
    timed = """(() => {
      const times = [];
      for (let i = 0; i < 15; ++i) {
        const start = performance.now();
        panes.draw(view, look);
        times.push(performance.now() - start);
      }
      return times.sort((a, b) => a - b)[7];
    })()"""
    whole = page.js(timed)
    page.js("view.zoom(0.01, 0.5, 0.3, 0.5)")
    near = page.js(timed)
    print(f"{count} buffers: a redraw takes {whole:.0f} ms, of a hundredth of the time {near:.0f} ms")
    assert whole < SLOW_MS and near < SLOW_MS


def main():
    if not browser.find():
        print(f"skipped: no browser: got none of {', '.join(browser.NAMES)}")
        sys.exit(77)
    signal.alarm(300)
    with tempfile.TemporaryDirectory() as folder, browser.Browser(1500, 950) as page:
        html, rows = make(folder)
        page.open(html)
        if len(sys.argv) > 2:
            page.screenshot(sys.argv[2])
        check_words(page, rows, f"{folder}/t5.svg")
        check_pixels(page, rows)
        check_mouse(page, rows)
        repeated(html, f"{folder}/many.html")
        page.open(f"{folder}/many.html")
        check_many(page)
        assert not page.errors, page.errors
    print("the map in a browser: all as it should be")


if __name__ == "__main__":
    main()
