// SPDX-License-Identifier: Apache-2.0
#include "tools/compile/Compiler.h"
#include "frontend/BindDims.h"
#include "tools/common/CommandLine.h"

using namespace llvm;

namespace shardc {

Expected<std::unique_ptr<Compiler>> Compiler::open(const Flags &flags) {
  auto model = OnnxModel::open(flags.model, {flags.externalDataRoot});
  if (!model)
    return model.takeError();
  for (StringRef note : (*model)->notes())
    notes() << "note: " << note << "\n";
  return std::unique_ptr<Compiler>(new Compiler(flags, std::move(*model)));
}

static plan::Model describe(const OnnxModel &model) {
  plan::Model m;
  m.set_path(model.path().str());
  m.set_hash(model.hash().str());
  m.set_ir_version(model.irVersion());
  m.set_opset(model.opset());
  m.set_producer(model.producer());
  return m;
}

Expected<std::shared_ptr<const Graph>> Compiler::import(std::optional<int64_t> batch) {
  if (std::lock_guard lock(mutex_); graph_ && batch == batch_)
    return graph_;
  ImportOptions options = flags_.import;
  options.batchInstead = batch;
  std::vector<std::string> importNotes;
  auto imported = importOnnx(*model_, options, &importNotes);
  if (!imported)
    return imported.takeError();
  std::shared_ptr<const Graph> graph = std::move(*imported);
  std::lock_guard lock(mutex_);
  if (!std::exchange(noted_, true))
    for (StringRef note : importNotes)
      notes() << "note: " << note << "\n";
  graph_ = graph;
  batch_ = graph->attrs.getInt("batch", 1);
  return graph;
}

Expected<int64_t> Compiler::batch() {
  auto graph = import(std::nullopt);
  if (!graph)
    return graph.takeError();
  return (*graph)->attrs.getInt("batch", 1);
}

Expected<Compilation> Compiler::compile(const DebugOptions &debug, std::optional<Setting> setting) {
  CompileOptions options = flags_.compile;
  if (setting) {
    options.ranks = setting->ranks;
    options.zero = setting->zero;
    options.accumulate = setting->accumulate;
    if (!flags_.machineGiven)
      options.machine = defaultMachine(options.target, options.ranks);
  }
  auto graph = import(setting ? std::optional(setting->batch) : std::nullopt);
  if (!graph)
    return graph.takeError();
  return shardc::compile((*graph)->clone(), describe(*model_), options, debug);
}

Expected<plan::Plan> Compiler::plan(const Setting &setting) {
  auto result = compile({}, setting);
  if (!result)
    return result.takeError();
  return std::move(*result->plan);
}

std::string Compiler::batchFlags(int64_t batch) const {
  return shardc::batchFlags(*model_, flags_.import, batch);
}

} // namespace shardc
