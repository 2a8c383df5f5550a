// SPDX-License-Identifier: Apache-2.0
// The format: torch/utils/viz/MemoryViz.js, torch/cuda/_memory_viz.py. Traps of it: blocks have no addresses, so that
// they must tile their segment; categories work only if one of them is "unknown"; a free is two events, one behind the other;
// lines with "_start" in their name are not shown.
#include "ir/plan/MemoryViz.h"
#include "ir/plan/Peak.h"
#include "ir/plan/Pickle.h"
#include "ir/plan/Positions.h"
#include "ir/plan/Predict.h"
#include "ir/plan/Report.h"
#include "ir/plan/Text.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace shardc {
namespace {

class Writer {
public:
  Writer(const plan::Plan &plan, raw_ostream &os)
      : plan_(plan), positions_(plan), lives_(livesOf(plan)), times_(positionTimes(plan)), pickle_(os) {
    // Far apart, and below 2^53, above which the viewer's numbers are not exact.
    uint64_t address = kSpaceDistance;
    for (const plan::Space &space : plan.spaces()) {
      addresses_.push_back(address);
      address = alignTo(address + space.bytes() + 1, kSpaceDistance);
    }
  }

  void run() {
    pickle_.object([&] {
      pickle_.attributeList("segments", [&] {
        for (int s = 0; s < plan_.spaces_size(); ++s)
          for (const plan::Region &region : regionsOf(plan_.spaces(s)))
            pickle_.itemObject([&] { writeSegment(s, region); });
      });
      pickle_.attributeList("device_traces", [&] {
        for (int s = 0; s < plan_.spaces_size(); ++s)
          pickle_.itemList([&] { writeTrace(s); });
      });
    });
    pickle_.finish();
  }

private:
  static constexpr uint64_t kSpaceDistance = uint64_t(1) << 40;
  static constexpr double kLatest = 4e15; ///< microseconds: exact in the viewer, and a date

  bool lives(const plan::Buffer &b, int space) const {
    return int(b.space()) == space && b.bytes() && (b.persistent() || b.first() < b.last());
  }

  void writeFrame(StringRef file, uint64_t line, StringRef name) {
    std::string shown = name.str();
    for (size_t at = 0; (at = shown.find("_start", at)) != std::string::npos;)
      shown[at] = ' ';
    pickle_.itemObject([&] {
      pickle_.attribute("filename", file);
      pickle_.attribute("line", line);
      pickle_.attribute("name", shown);
    });
  }

  /// "train backward:731:matmul (decoder/lm_head/MatMul) reads it last"
  void writeCommandFrame(uint64_t position, StringRef what) {
    if (position == Life::kNone)
      return;
    const plan::Command &c = positions_.command(position);
    StringRef place = plan_.strings(c.place());
    const std::string &program = plan_.programs(positions_.programIndex(position)).name();
    StringRef phase = phaseName(c.phase());
    writeFrame(program == phase ? program : program + " " + phase.str(), position,
               c.kernel() + (place.empty() ? "" : " (" + place.str() + ")") + " " + what.str());
  }

  /// What hovering over a buffer says, as a stack of calls.
  void writeFrames(uint32_t buffer) {
    pickle_.attributeList("frames", [&] {
      writeFrame(kindName(plan_.buffers(buffer).kind()), buffer, fullName(plan_, plan_.buffers(buffer)));
      writeCommandFrame(lives_[buffer].producer, "writes it first");
      writeCommandFrame(lives_[buffer].lastReader, "reads it last");
    });
  }

  /// Those of the space, or all of it as one.
  static std::vector<plan::Region> regionsOf(const plan::Space &space) {
    std::vector<plan::Region> regions(space.regions().begin(), space.regions().end());
    if (regions.empty() && space.bytes()) {
      regions.emplace_back().set_name(kindName(space.kind()).str());
      regions.back().set_bytes(space.bytes());
    }
    return regions;
  }

  void writeRegionFrame(int space, const plan::Region &region) {
    pickle_.attributeList("frames", [&] { writeFrame("space", space, region.name()); });
  }

  /// The state at the end, from which the viewer goes back: what persists.
  void writeSegment(int space, const plan::Region &region) {
    uint64_t begin = region.offset(), end = begin + region.bytes(), active = 0;
    std::vector<uint32_t> kept;
    for (int b = 0; b < plan_.buffers_size(); ++b) {
      const plan::Buffer &buffer = plan_.buffers(b);
      if (!lives(buffer, space) || !buffer.persistent() || buffer.offset() < begin || buffer.offset() >= end)
        continue;
      kept.push_back(b);
      active += buffer.bytes();
    }
    llvm::sort(kept, [&](uint32_t a, uint32_t b) { return plan_.buffers(a).offset() < plan_.buffers(b).offset(); });
    pickle_.attribute("device", space);
    pickle_.attribute("address", addresses_[space] + begin);
    pickle_.attribute("total_size", region.bytes());
    pickle_.attribute("allocated_size", active);
    pickle_.attribute("active_size", active);
    pickle_.attribute("requested_size", active);
    pickle_.attribute("stream", 0);
    pickle_.attribute("segment_type", "large");
    pickle_.attributeList("segment_pool_id", [&] { // that of the allocator
      pickle_.item(0);
      pickle_.item(0);
    });
    writeRegionFrame(space, region);
    pickle_.attributeList("blocks", [&] {
      for (uint32_t b : kept) {
        const plan::Buffer &buffer = plan_.buffers(b);
        writeHole(space, begin, buffer.offset());
        begin = buffer.offset() + alignedBytes(buffer);
        pickle_.itemObject([&] {
          pickle_.attribute("address", addresses_[space] + buffer.offset());
          pickle_.attribute("size", alignedBytes(buffer));
          pickle_.attribute("requested_size", buffer.bytes());
          pickle_.attribute("state", "active_allocated");
          writeFrames(b);
        });
      }
      writeHole(space, begin, end);
    });
  }

  void writeHole(int space, uint64_t begin, uint64_t end) {
    if (begin == end)
      return;
    pickle_.itemObject([&] {
      pickle_.attribute("address", addresses_[space] + begin);
      pickle_.attribute("size", end - begin);
      pickle_.attribute("requested_size", end - begin);
      pickle_.attribute("state", "inactive");
      pickle_.attributeList("frames", [] {});
    });
  }

  void writeTrace(int space) {
    struct Event {
      uint64_t position;
      bool begins; // ends sort before begins
      uint32_t buffer;
      auto operator<=>(const Event &) const = default;
    };
    std::vector<Event> events;
    for (int b = 0; b < plan_.buffers_size(); ++b) {
      const plan::Buffer &buffer = plan_.buffers(b);
      if (!lives(buffer, space) || buffer.persistent())
        continue;
      events.push_back({buffer.first(), true, uint32_t(b)});
      events.push_back({buffer.last(), false, uint32_t(b)});
    }
    llvm::sort(events);
    for (const plan::Region &region : regionsOf(plan_.spaces(space)))
      writeEvent("segment_alloc", addresses_[space] + region.offset(), region.bytes(), 0, 0, [&] {
        pickle_.attribute("category", "unknown");
        writeRegionFrame(space, region);
      });
    for (int b = 0; b < plan_.buffers_size(); ++b)
      if (lives(plan_.buffers(b), space) && plan_.buffers(b).persistent())
        writeBufferEvent("alloc", b, 0);
    for (const Event &event : events) {
      if (event.begins) {
        writeBufferEvent("alloc", event.buffer, event.position);
      } else {
        writeBufferEvent("free_requested", event.buffer, event.position);
        writeBufferEvent("free_completed", event.buffer, event.position);
      }
    }
  }

  void writeBufferEvent(StringRef action, uint32_t index, uint64_t position) {
    const plan::Buffer &buffer = plan_.buffers(index);
    uint64_t producer = lives_[index].producer;
    uint32_t stream = producer == Life::kNone ? 0 : positions_.command(producer).stream();
    writeEvent(action, addresses_[buffer.space()] + buffer.offset(), alignedBytes(buffer), stream, position, [&] {
      pickle_.attribute("category", kindName(buffer.kind()));
      writeFrames(index);
    });
  }

  void writeEvent(StringRef action, uint64_t address, uint64_t bytes, uint32_t stream, uint64_t position,
                  function_ref<void()> more) {
    pickle_.itemObject([&] {
      pickle_.attribute("action", action);
      pickle_.attribute("addr", address);
      pickle_.attribute("size", bytes);
      pickle_.attribute("stream", stream);
      pickle_.attribute("time_us", uint64_t(std::min(times_[position], kLatest)));
      more();
    });
  }

  const plan::Plan &plan_;
  Positions positions_;
  std::vector<Life> lives_;
  std::vector<double> times_; ///< microseconds by position
  Pickle pickle_;
  std::vector<uint64_t> addresses_; ///< of spaces
};

} // namespace

void printMemoryViz(const plan::Plan &plan, raw_ostream &os) { Writer(plan, os).run(); }

} // namespace shardc
