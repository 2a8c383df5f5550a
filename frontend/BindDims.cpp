// SPDX-License-Identifier: Apache-2.0
#include "frontend/BindDims.h"
#include "frontend/OnnxTensor.h"
#include "frontend/Quoted.h"
#include "ir/base/Error.h"
#include "llvm/ADT/MapVector.h"

namespace shardc {
namespace {

struct Symbol {
  std::optional<int64_t> value;
  std::string from;                    ///< flag that gave the value
  llvm::SmallVector<std::string> uses; ///< "input_ids dim 1"
  bool needed = false;
  bool rowsOnly = true; ///< no input has it but as dim 0
};

class Binder {
public:
  Binder(const OnnxModel &model, const ImportOptions &options, const llvm::StringSet<> &needed)
      : model_(model), options_(options), needed_(needed) {}
  llvm::Expected<BoundInputs> run();
  std::string batchFlags(int64_t batch);

private:
  llvm::Error collect();
  llvm::Error bindFlags();
  llvm::Error bindShapes();
  llvm::Error bind(const std::string &key, int64_t value, const std::string &flag);
  llvm::Expected<BoundInputs> build();
  llvm::Error unbound() const;
  void findAsked();
  bool isBatch(const std::string &key, int64_t value) const;

  struct Input {
    std::string name;
    DType dtype;
    llvm::SmallVector<std::string, 4> keys; ///< symbol of the dim; "" for a fixed one
    Dims fixed;
    bool needed;
  };
  const OnnxModel &model_;
  const ImportOptions &options_;
  const llvm::StringSet<> &needed_;
  std::vector<Input> inputs_;
  std::optional<int64_t> asked_; ///< the batch that the flags say
  llvm::MapVector<std::string, Symbol, std::map<std::string, unsigned>> symbols_;
};

llvm::Error Binder::collect() {
  for (const onnx::ValueInfoProto &info : model_.graph().input()) {
    bool needed = needed_.contains(info.name());
    std::string place = (model_.path() + ": input " + quoted(info.name())).str();
    if (!info.type().has_tensor_type() || !info.type().tensor_type().has_shape()) {
      if (needed)
        return userError(place + ": got a type without dims, wanted a tensor of known rank");
      continue;
    }
    const auto &type = info.type().tensor_type();
    auto dtype = onnxDType(type.elem_type());
    if (!dtype) {
      if (needed)
        return userError(place + ": element type: got " + onnxTypeName(type.elem_type()) +
                         ", wanted FLOAT, DOUBLE, FLOAT16, BFLOAT16, INT32, INT64, UINT8 or BOOL");
      continue;
    }
    Input input{info.name(), *dtype, {}, {}, needed};
    for (int i = 0; i < type.shape().dim_size(); ++i) {
      const auto &dim = type.shape().dim(i);
      std::string key;
      if (dim.has_dim_value()) {
        if (needed && (dim.dim_value() < 0 || (dim.dim_value() == 0 && options_.loss != "none")))
          return userError(place + ": dim " + llvm::Twine(i) + ": got " +
                           llvm::Twine(dim.dim_value()) + ", wanted a number from 1 on");
      } else {
        // A dim without a name can be bound by --input-shape alone; the blank keeps it apart from
        // names.
        key = dim.has_dim_param() && !dim.dim_param().empty()
                  ? dim.dim_param()
                  : " " + info.name() + " " + std::to_string(i);
        Symbol &symbol = symbols_[key];
        symbol.uses.push_back(info.name() + " dim " + std::to_string(i));
        symbol.needed |= needed;
        symbol.rowsOnly &= i == 0;
      }
      input.keys.push_back(key);
      input.fixed.push_back(dim.has_dim_value() ? dim.dim_value() : 0);
    }
    inputs_.push_back(std::move(input));
  }
  return llvm::Error::success();
}

void Binder::findAsked() {
  asked_ = options_.batch;
  if (inputs_.empty() || inputs_[0].keys.empty())
    return;
  for (auto &[name, value] : options_.dims)
    if (name == inputs_[0].keys[0])
      asked_ = value;
  for (auto &[name, dims] : options_.inputShapes)
    if (name == inputs_[0].name && !dims.empty())
      asked_ = dims[0];
}

/// What the first input's dim 0 is called; or a name that other inputs have for theirs (exporters make up one for each), where it was given
/// the same size.
bool Binder::isBatch(const std::string &key, int64_t value) const {
  if (key.empty() || inputs_.empty() || inputs_[0].keys.empty())
    return false;
  auto symbol = symbols_.find(key);
  return key == inputs_[0].keys[0] ||
         (symbol != symbols_.end() && symbol->second.rowsOnly && value == asked_);
}

llvm::Error Binder::bind(const std::string &key, int64_t value, const std::string &flag) {
  if (value < 1)
    return userError(flag + ": got " + llvm::Twine(value) + ", wanted a number from 1 on");
  if (options_.batchInstead && isBatch(key, value))
    value = *options_.batchInstead;
  Symbol &symbol = symbols_[key];
  if (symbol.value && *symbol.value != value)
    return userError(flag + ": dimension " + quoted(key) + " is bound twice: got " +
                     llvm::Twine(value) + ", and " + llvm::Twine(*symbol.value) + " from " +
                     symbol.from + ", wanted one value",
                     "say it once");
  symbol.value = value;
  symbol.from = flag;
  return llvm::Error::success();
}

llvm::Error Binder::bindFlags() {
  for (auto &[name, value] : options_.dims) {
    if (!symbols_.count(name)) {
      std::string known;
      for (auto &[key, symbol] : symbols_)
        if (key[0] != ' ')
          known += (known.empty() ? "" : ", ") + quoted(key);
      return userError(
          "--dim: unknown dimension: got " + quoted(name) + ", wanted " +
              (known.empty() ? "none: the model's inputs have no named dimension" : "one of " + known),
          known.empty() ? "leave --dim out; --input-shape NAME=8x128 binds dimensions without a name"
                        : "names are the model's; --input-shape NAME=8x128 binds by position");
    }
    if (auto error = bind(name, value, "--dim " + name))
      return error;
  }
  std::optional<int64_t> batch = options_.batchInstead ? options_.batchInstead : options_.batch;
  if (!batch)
    return llvm::Error::success();
  if (inputs_.empty() || inputs_[0].keys.empty())
    return userError("--batch: the model's first input has no dim 0", "leave the flag out");
  if (!inputs_[0].keys[0].empty())
    return bind(inputs_[0].keys[0], *batch, "--batch");
  if (inputs_[0].fixed[0] != *batch)
    return userError("--batch: got " + llvm::Twine(*batch) + ", wanted " +
                         llvm::Twine(inputs_[0].fixed[0]) + ": dim 0 of input " +
                         quoted(inputs_[0].name) + " is fixed in the model",
                     "export the model with a symbolic batch dimension");
  return llvm::Error::success();
}

llvm::Error Binder::bindShapes() {
  for (auto &[name, dims] : options_.inputShapes) {
    auto input = llvm::find_if(inputs_, [&](const Input &i) { return i.name == name; });
    if (input == inputs_.end()) {
      std::string known;
      for (const Input &i : inputs_)
        known += (known.empty() ? "" : ", ") + quoted(i.name);
      return userError("--input-shape: unknown input: got " + quoted(name) + ", wanted one of " +
                           known,
                       "names are the model's");
    }
    std::string flag = "--input-shape " + name;
    if (dims.size() != input->keys.size())
      return userError(flag + ": number of dims: got " + llvm::Twine(dims.size()) + " (" +
                       formatDims(dims) + "), wanted " + llvm::Twine(input->keys.size()),
                       "give the size of each dimension: " + flag + "=" + std::string(input->keys.size() > 1 ? "8x128" : "8"));
    for (size_t i = 0; i < dims.size(); ++i) {
      if (!input->keys[i].empty()) {
        if (auto error = bind(input->keys[i], dims[i], flag))
          return error;
      } else if (input->fixed[i] != dims[i]) {
        return userError(flag + ": dim " + llvm::Twine(i) + ": got " + llvm::Twine(dims[i]) +
                         ", wanted " + llvm::Twine(input->fixed[i]) + ", which the model fixes");
      }
    }
  }
  return llvm::Error::success();
}

llvm::Error Binder::unbound() const {
  std::string list, example;
  for (auto &[key, symbol] : symbols_) {
    if (!symbol.needed || symbol.value)
      continue;
    bool named = key[0] != ' ';
    list += (list.empty() ? "" : ", ") + (named ? quoted(key) + " (" : "") +
            llvm::join(symbol.uses, ", ") + (named ? ")" : " (no name)");
    if (named)
      example += (example.empty() ? "--dim " : ",") + key + "=N";
  }
  if (list.empty())
    return llvm::Error::success();
  return userError(model_.path() + ": dimensions are not bound: got no value for " + list,
                   example.empty() ? "give the whole shape: --input-shape NAME=8x128"
                                   : "add " + example);
}

llvm::Expected<BoundInputs> Binder::build() {
  BoundInputs result;
  auto dimOf = [&](const Input &input, size_t i) {
    return input.keys[i].empty() ? input.fixed[i] : symbols_[input.keys[i]].value.value_or(0);
  };
  // The batch is what dim 0 of the first input is called, or its size where that has no name.
  std::string batchKey;
  if (!inputs_.empty() && !inputs_[0].keys.empty()) {
    batchKey = inputs_[0].keys[0];
    result.batch = std::max<int64_t>(dimOf(inputs_[0], 0), 1);
  }
  bool bySize = batchKey.empty() || batchKey[0] == ' ';
  for (const Input &input : inputs_) {
    if (!input.needed)
      continue;
    BoundInput bound{input.name, Type(input.dtype, {}), false};
    for (size_t i = 0; i < input.keys.size(); ++i)
      bound.type.dims.push_back(dimOf(input, i));
    if (!checkedNumElements(bound.type.dims))
      return userError(model_.path() + ": input " + quoted(input.name) + " is too large: got " +
                           formatDims(bound.type.dims) + ", wanted at most 2^63 - 1 elements",
                       "check --dim, --batch and --input-shape");
    if (!input.keys.empty())
      bound.batchMajor = bySize || (input.keys[0] != batchKey && !input.keys[0].empty() && symbols_[input.keys[0]].rowsOnly)
                             ? bound.type.dims[0] == result.batch
                             : input.keys[0] == batchKey;
    result.inputs.push_back(std::move(bound));
  }
  return result;
}

llvm::Expected<BoundInputs> Binder::run() {
  if (auto error = collect())
    return error;
  findAsked();
  if (auto error = bindFlags())
    return error;
  if (auto error = bindShapes())
    return error;
  if (auto error = unbound())
    return error;
  return build();
}

std::string Binder::batchFlags(int64_t batch) {
  llvm::cantFail(collect()); // which complains about needed inputs only
  findAsked();
  std::string size = std::to_string(batch), dims, shapes;
  for (auto &[name, value] : options_.dims)
    if (isBatch(name, value))
      dims += (dims.empty() ? "--dim " : ",") + name + "=" + size;
  for (auto &[name, old] : options_.inputShapes) {
    auto input = llvm::find_if(inputs_, [&name = name](const Input &i) { return i.name == name; });
    if (input == inputs_.end() || old.empty() || input->keys.empty() || !isBatch(input->keys[0], old[0]))
      continue;
    Dims now = old;
    now[0] = batch;
    shapes += (shapes.empty() ? "--input-shape " : ",") + name + "=" + formatDims(now);
  }
  if (dims.empty() && (shapes.empty() || options_.batch))
    dims = "--batch " + size;
  return dims + (dims.empty() || shapes.empty() ? "" : " ") + shapes;
}

} // namespace

std::string batchFlags(const OnnxModel &model, const ImportOptions &options, int64_t batch) {
  llvm::StringSet<> none;
  return Binder(model, options, none).batchFlags(batch);
}

llvm::Expected<BoundInputs> bindDims(const OnnxModel &model, const ImportOptions &options,
                                     const llvm::StringSet<> &needed) {
  return Binder(model, options, needed).run();
}

} // namespace shardc
