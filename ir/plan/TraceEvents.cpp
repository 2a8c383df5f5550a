// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/TraceEvents.h"
#include "ir/plan/Positions.h"
#include "ir/plan/Text.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace shardc {

/// JSON takes UTF-8 only; names come out of files.
/// Plans of tests have no strings.
static StringRef textAt(const plan::Plan &plan, uint32_t index) {
  return index < uint32_t(plan.strings_size()) ? StringRef(plan.strings(int(index))) : "";
}

TraceEvents::TraceEvents(raw_ostream &os) : os_(os), json_(os) {
  json_.objectBegin();
  json_.attribute("displayTimeUnit", "ms");
  json_.attributeBegin("traceEvents");
  json_.arrayBegin();
}

void TraceEvents::finish() {
  json_.arrayEnd();
  json_.attributeEnd();
  json_.objectEnd();
  os_ << '\n';
}

void TraceEvents::name(const char *what, int64_t process, int64_t track, StringRef name) {
  json_.object([&] {
    json_.attribute("ph", "M");
    json_.attribute("name", what);
    json_.attribute("pid", process);
    json_.attribute("tid", track);
    json_.attributeObject("args", [&] { json_.attribute("name", utf8(name)); });
  });
}

void TraceEvents::nameProcess(int64_t process, StringRef text) { name("process_name", process, 0, text); }

void TraceEvents::nameTrack(int64_t process, int64_t track, StringRef text) {
  name("thread_name", process, track, text);
}

void TraceEvents::at(const char *phase, TracePoint point) {
  json_.attribute("ph", phase);
  json_.attribute("pid", point.process);
  json_.attribute("tid", point.track);
  json_.attribute("ts", point.us);
}

void TraceEvents::command(const plan::Plan &plan, const plan::Command &command, int64_t process, double start,
                          double end) {
  StringRef place = textAt(plan, command.place());
  json_.object([&] {
    json_.attribute("name", utf8(place.empty() ? StringRef(command.kernel()) : place));
    json_.attribute("cat", phaseName(command.phase()));
    at("X", {process, command.stream(), start});
    json_.attribute("dur", end - start);
    json_.attributeObject("args", [&] {
      json_.attribute("kernel", utf8(command.kernel()));
      json_.attribute("layer", utf8(textAt(plan, command.layer())));
      json_.attribute("phase", phaseName(command.phase()));
      json_.attribute("predicted_us", command.predicted_us());
      json_.attribute("flops", command.flops());
      json_.attribute("bytes", command.moved_bytes());
    });
  });
}

void TraceEvents::slice(TracePoint point, double duration, StringRef name, StringRef detail) {
  json_.object([&] {
    json_.attribute("name", utf8(name));
    at("X", point);
    json_.attribute("dur", duration);
    json_.attributeObject("args", [&] { json_.attribute("detail", utf8(detail)); });
  });
}

void TraceEvents::arrow(TracePoint from, TracePoint to) {
  ++arrows_;
  for (const char *phase : {"s", "f"})
    json_.object([&] {
      json_.attribute("name", "event");
      json_.attribute("cat", "event");
      json_.attribute("id", arrows_);
      at(phase, *phase == 's' ? from : to);
      if (*phase == 'f')
        json_.attribute("bp", "e"); // the slice around it, not the next one
    });
}

void TraceEvents::counter(int64_t process, StringRef name, double us, uint64_t value) {
  json_.object([&] {
    json_.attribute("name", name);
    json_.attribute("ph", "C");
    json_.attribute("pid", process);
    json_.attribute("ts", us);
    json_.attributeObject("args", [&] { json_.attribute("bytes", value); });
  });
}

} // namespace shardc
