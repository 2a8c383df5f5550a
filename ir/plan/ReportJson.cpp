// SPDX-License-Identifier: Apache-2.0
#include "ir/base/Tensor.h"
#include "ir/plan/Groups.h"
#include "ir/plan/Peak.h"
#include "ir/plan/Positions.h"
#include "ir/plan/Report.h"
#include "ir/plan/Text.h"
#include "ir/plan/map/Scene.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace shardc {
namespace {

class Writer {
public:
  Writer(const plan::Plan &plan, raw_ostream &os)
      : plan_(plan), positions_(plan), json_(os, /*IndentSize=*/2) {}

  void run() {
    json_.object([&] {
      text("compiler", plan_.compiler());
      json_.attribute("version", plan_.version());
      json_.attributeObject("model", [&] { writeModel(); });
      json_.attributeObject("options", [&] { writeOptions(); });
      json_.attribute("ranks", plan_.ranks());
      json_.attribute("zero", plan_.zero());
      json_.attribute("batch", plan_.batch());
      json_.attribute("accumulate", plan_.accumulate());
      json_.attribute("peak_bytes", arenaBytes(plan_));
      json_.attribute("lower_bound_bytes", lowerBoundBytes(plan_));
      json_.attribute("gap_percent", gapPercent(plan_));
      json_.attribute("floor_bytes", plan_.floor_bytes());
      json_.attributeArray("spaces", [&] { writeSpaces(); });
      json_.attributeObject("peak", [&] {
        for (const KindBytes &kind : memoryByKind(plan_))
          json_.attribute(kindName(kind.kind), kind.atPeak);
      });
      json_.attributeObject("largest", [&] {
        for (const KindBytes &kind : memoryByKind(plan_))
          json_.attribute(kindName(kind.kind), kind.largest);
      });
      writeWire();
      writeWork();
      json_.attributeArray("parameters", [&] { writeParameters(); });
      json_.attributeArray("buckets", [&] { writeBuckets(); });
      json_.attributeArray("inputs", [&] { writeInputs(); });
      json_.attributeArray("outputs", [&] { writeOutputs(); });
      json_.attributeArray("layers", [&] { writeLayers(); });
      json_.attributeArray("buffer_table", [&] { writeBuffers(); });
      json_.attributeArray("command_table", [&] { writeCommands(); });
    });
  }

private:
  void text(StringRef key, StringRef value) { json_.attribute(key, utf8(value)); }

  void dims(StringRef key, const google::protobuf::RepeatedField<int64_t> &list) {
    json_.attributeArray(key, [&] {
      for (int64_t dim : list)
        json_.value(dim);
    });
  }

  void dtype(StringRef key, uint32_t value) { json_.attribute(key, toString(DType(value))); }

  void writeModel() {
    const plan::Model &m = plan_.model();
    text("path", m.path());
    text("hash", m.hash());
    json_.attribute("file_bytes", m.file_bytes());
    json_.attribute("ir_version", m.ir_version());
    json_.attribute("opset", m.opset());
    text("producer", m.producer());
  }

  void writeOptions() {
    for (const plan::Attr &attr : plan_.options())
      switch (attr.value_case()) {
      case plan::Attr::kI:
        json_.attribute(attr.name(), attr.i());
        break;
      case plan::Attr::kF:
        json_.attribute(attr.name(), attr.f());
        break;
      case plan::Attr::kS:
        text(attr.name(), attr.s());
        break;
      case plan::Attr::kInts:
        dims(attr.name(), attr.ints().v());
        break;
      case plan::Attr::VALUE_NOT_SET:
        break;
      }
  }

  void writeSpaces() {
    for (int s = 0; s < plan_.spaces_size(); ++s)
      json_.object([&] {
        json_.attribute("kind", kindName(plan_.spaces(s).kind()));
        json_.attribute("bytes", plan_.spaces(s).bytes());
        json_.attribute("lower_bound_bytes", plan_.spaces(s).lower_bound());
        Peak peak = findPeak(plan_, s);
        json_.attribute("peak_position", peak.position);
        if (peak.position < positions_.size())
          json_.attributeObject("peak_command", [&] {
            writeWhere(peak.position);
            text("part", map::Scene(plan_, s).story.part);
          });
        json_.attributeArray("peak_buffers", [&] {
          for (uint32_t buffer : peak.buffers)
            json_.value(buffer);
        });
        text("method", plan_.spaces(s).method());
        json_.attributeArray("regions", [&] { writeRegions(plan_.spaces(s)); });
      });
  }

  void writeRegions(const plan::Space &space) {
    for (const plan::Region &r : space.regions())
      json_.object([&] {
        text("name", r.name());
        json_.attribute("offset", r.offset());
        json_.attribute("bytes", r.bytes());
        json_.attribute("lower_bound_bytes", r.lower_bound());
      });
  }

  void writeWhere(uint64_t position) {
    const plan::Command &c = positions_.command(position);
    text("program", plan_.programs(positions_.programIndex(position)).name());
    text("kernel", c.kernel());
    text("phase", phaseName(c.phase()));
    text("layer", plan_.strings(c.layer()));
    text("place", plan_.strings(c.place()));
  }

  /// Live bytes at the peaks of all spaces.
  void writeLayers() {
    for (const LayerGroup &layer : singleLayersOf(plan_, buffersAtPeak(plan_)))
      json_.object([&] {
        text("name", layer.name);
        json_.attribute("peak_bytes", layer.bytes);
        json_.attribute("persistent_bytes", layer.persistent);
      });
  }

  void position(StringRef key, uint64_t value) {
    json_.attribute(key, value == Life::kNone ? json::Value(nullptr) : json::Value(value));
  }

  void writeBuffers() {
    std::vector<Life> lives = livesOf(plan_);
    map::Parts parts = map::partsOf(plan_, lives);
    for (auto [buffer, life, part] : zip_equal(plan_.buffers(), lives, parts.ofBuffer))
      json_.object([&, &b = buffer, &life = life, &part = part] {
        text("name", b.name());
        text("layer", parts.names[part]);
        json_.attribute("kind", kindName(b.kind()));
        json_.attribute("space", b.space());
        json_.attribute("offset", b.offset());
        json_.attribute("bytes", b.bytes());
        json_.attribute("persistent", b.persistent());
        json_.attribute("first", b.first());
        json_.attribute("last", b.last());
        position("producer", life.producer);
        position("last_reader", life.lastReader);
      });
  }

  void refs(StringRef key, const google::protobuf::RepeatedPtrField<plan::Ref> &list) {
    json_.attributeArray(key, [&] {
      for (const plan::Ref &ref : list)
        json_.value(ref.absent() ? json::Value(nullptr) : json::Value(ref.buffer()));
    });
  }

  void writeCommands() {
    for (uint64_t at = 0; at < positions_.size(); ++at)
      json_.object([&] {
        const plan::Command &c = positions_.command(at);
        writeWhere(at);
        json_.attribute("stream", streamName(c.stream()));
        json_.attribute("flops", c.flops());
        json_.attribute("moved_bytes", c.moved_bytes());
        json_.attribute("predicted_us", c.predicted_us());
        refs("reads", c.inputs());
        refs("writes", c.outputs());
        if (c.has_workspace() && !c.workspace().absent())
          json_.attribute("workspace", c.workspace().buffer());
      });
  }

  /// Collectives of buckets in an update step; those of scalars, and of evaluation, apart.
  void writeWire() {
    std::vector<WireUse> uses = wireUses(plan_);
    WireBytes wire = wireBytesPerStep(plan_);
    auto list = [&](StringRef key, auto wanted) {
      json_.attributeArray(key, [&] {
        for (const WireUse &use : uses)
          if (wanted(use))
            json_.object([&] {
              text("op", use.op);
              text("program", use.program);
              text("bucket", use.bucket);
              json_.attribute("count", use.count);
              json_.attribute("bytes", use.bytes);
              json_.attribute("wire_bytes", use.sent);
            });
      });
    };
    json_.attribute("wire_bytes_per_step", wire.buckets);
    json_.attribute("scalar_wire_bytes_per_step", wire.scalars);
    list("collectives", [](const WireUse &use) { return use.perStep() && !use.isScalar(); });
    list("scalar_collectives", [](const WireUse &use) { return use.perStep() && use.isScalar(); });
    list("eval_collectives", [](const WireUse &use) { return !use.perStep(); });
  }

  void writeWork() {
    uint64_t commands = 0;
    for (const plan::Program &p : plan_.programs())
      commands += p.commands_size();
    json_.attribute("commands", commands);
    json_.attribute("buffers", plan_.buffers_size());
    json_.attribute("forward_ops", plan_.forward_ops());
    json_.attribute("backward_ops", plan_.backward_ops());
    json_.attribute("predicted_ms", plan_.predicted_ms());
    json_.attribute("exposed_ms", plan_.exposed_ms());
    json_.attribute("exposed_ms_without_prefetch", plan_.exposed_ms_without_prefetch());
    json_.attributeArray("programs", [&] {
      for (const plan::Program &p : plan_.programs())
        json_.object([&] {
          double flops = 0, moved = 0, us = 0, linkUs = 0;
          for (const plan::Command &c : p.commands())
            if (c.communicator()) {
              linkUs += c.predicted_us();
            } else {
              flops += c.flops();
              moved += c.moved_bytes();
              us += c.predicted_us();
            }
          text("name", p.name());
          json_.attribute("runs_per_step", runsPerStep(plan_, p));
          json_.attribute("commands", p.commands_size());
          json_.attribute("flops", flops);
          json_.attribute("moved_bytes", moved);
          json_.attribute("compute_ms", us / 1e3);
          json_.attribute("communication_ms", linkUs / 1e3);
        });
    });
  }

  void writeParameters() {
    for (const plan::Parameter &p : plan_.parameters())
      json_.object([&] {
        text("name", p.name());
        dims("shape", p.dims());
        dtype("dtype", p.dtype());
        json_.attribute("bucket", p.bucket());
        json_.attribute("offset", p.offset());
        json_.attribute("trainable", p.trainable());
        json_.attributeArray("tie", [&] {
          for (const std::string &tie : p.ties())
            json_.value(utf8(tie));
        });
        json_.attributeObject("source", [&] {
          constexpr const char *kKinds[] = {"absent", "file", "zero"};
          const plan::ValueSource &s = p.source();
          json_.attribute("kind", kKinds[s.kind()]);
          if (s.kind() != plan::ValueSource::FILE)
            return;
          text("file", s.file());
          json_.attribute("offset", s.offset());
          json_.attribute("length", s.length());
          json_.attribute("transposed", s.transposed());
        });
      });
  }

  void writeBuckets() {
    for (const plan::Bucket &b : plan_.buckets())
      json_.object([&] {
        text("name", b.name());
        json_.attribute("elements", b.elements());
        json_.attribute("decay_end", b.decay_end());
        dtype("dtype", b.dtype());
        json_.attribute("trained", b.gradient_buffer() >= 0);
        dtype("gradient_dtype", b.has_gradient_dtype() ? b.gradient_dtype() : b.dtype());
        json_.attribute("master", b.has_master_buffer());
        json_.attribute("state_arrays", b.state_buffers_size());
      });
  }

  void writeInputs() {
    for (const plan::Input &i : plan_.inputs())
      json_.object([&] {
        text("name", i.name());
        dtype("dtype", i.dtype());
        dims("shape", i.dims());
      });
  }

  void writeOutputs() {
    for (const plan::Output &o : plan_.outputs())
      json_.object([&] {
        text("name", o.name());
        text("program", o.program());
        dtype("dtype", o.ref().dtype());
        dims("shape", o.ref().dims());
      });
  }

  const plan::Plan &plan_;
  Positions positions_;
  json::OStream json_;
};

} // namespace

void printJson(const plan::Plan &plan, raw_ostream &os) {
  Writer(plan, os).run();
  os << '\n';
}

} // namespace shardc
