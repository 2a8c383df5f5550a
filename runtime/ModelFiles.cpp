// SPDX-License-Identifier: Apache-2.0
#include "runtime/ModelFiles.h"
#include "ir/base/Error.h"
#include "ir/base/FileHash.h"
#include "ir/base/Tensor.h"
#include "runtime/Convert.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

namespace shardc {

namespace path = llvm::sys::path;

ModelFiles::ModelFiles(const plan::Plan &plan, llvm::StringRef planPath,
                       llvm::StringRef replacement)
    : plan_(plan), model_(replacement.empty() ? plan.model().path() : replacement.str()),
      replaced_(!replacement.empty()) {
  if (!replaced_ && path::is_relative(model_) && !llvm::sys::fs::exists(model_)) {
    llvm::SmallString<128> beside(path::parent_path(planPath));
    path::append(beside, model_);
    if (llvm::sys::fs::exists(beside))
      model_ = std::string(beside);
  }
}

ModelFiles::~ModelFiles() = default;

std::string ModelFiles::placeOf(llvm::StringRef file) const {
  if (!replaced_ && path::is_absolute(file) && llvm::sys::fs::exists(file))
    return file.str();
  if (path::filename(file) == path::filename(plan_.model().path()))
    return model_;
  llvm::SmallString<128> beside(path::parent_path(model_));
  path::append(beside, path::is_absolute(file) ? path::filename(file) : file);
  return std::string(beside);
}

llvm::Expected<const llvm::MemoryBuffer *> ModelFiles::open(llvm::StringRef file) {
  std::string place = placeOf(file);
  std::unique_ptr<llvm::MemoryBuffer> &buffer = files_[place];
  if (buffer)
    return buffer.get();
  llvm::sys::fs::file_status status;
  std::error_code code = llvm::sys::fs::status(place, status);
  if (!code && !llvm::sys::fs::is_regular_file(status))
    return userError(place + ": is not a file");
  auto opened =
      llvm::MemoryBuffer::getFile(place, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (code || !opened)
    return userError(
        place + ": weights cannot be opened: " + (code ? code : opened.getError()).message(),
        "the plan takes them from the model: put the file back, or give --weights FILE");
  buffer = std::move(*opened);
  return buffer.get();
}

bool ModelFiles::has(const plan::Parameter &parameter) const {
  const plan::ValueSource &source = parameter.source();
  return !source.file().empty() && source.length() > 0 &&
         llvm::sys::fs::exists(placeOf(source.file()));
}

/// Offsets are worth nothing in another file than the one that the compiler read.
llvm::Error ModelFiles::checkModel() {
  if (checked_)
    return llvm::Error::success();
  checked_ = true;
  // A source inside the model tells where the model was; a model with external weights only may be
  // gone.
  std::string file = plan_.model().path();
  for (const plan::Parameter &parameter : plan_.parameters())
    if (path::filename(parameter.source().file()) == path::filename(file)) {
      file = parameter.source().file();
      break;
    }
  if (plan_.model().hash().empty() || !llvm::sys::fs::exists(placeOf(file)))
    return llvm::Error::success();
  auto buffer = open(file);
  if (!buffer)
    return buffer.takeError();
  if (fileHash((*buffer)->getBuffer()) != plan_.model().hash())
    return userError((*buffer)->getBufferIdentifier() +
                         ": the model file changed after the plan was made",
                     "compile the plan again, or give --weights FILE.safetensors");
  return llvm::Error::success();
}

llvm::Expected<ElementSource> ModelFiles::find(const plan::Parameter &parameter, DType dtype) {
  if (llvm::Error error = checkModel())
    return error;
  const plan::ValueSource &source = parameter.source();
  auto file = open(source.file());
  if (!file)
    return file.takeError();
  llvm::StringRef bytes = (*file)->getBuffer();
  std::string place = ((*file)->getBufferIdentifier() + "/" + parameter.name()).str();
  DType from = DType(source.dtype());
  Dims dims(parameter.dims().begin(), parameter.dims().end());
  int64_t count = numElements(dims);
  if (source.dtype() >= kNumDTypes || !isConvertible(from, dtype))
    return userError(place + ": wrong dtype of weights, wanted " + toString(dtype));
  if (source.length() != uint64_t(count) * byteSize(from))
    return userError(place + ": size of weights does not fit the shape: got " +
                     llvm::Twine(source.length()) + " bytes, wanted " +
                     llvm::Twine(count * byteSize(from)) + " for " + toString(from) + " " +
                     formatDims(dims));
  if (source.offset() > bytes.size() || source.length() > bytes.size() - source.offset())
    return userError(place + ": weights lie past the end of the file: got " +
                         llvm::Twine(bytes.size()) + " bytes, wanted at least " +
                         llvm::Twine(source.offset() + source.length()),
                     "the file changed after the plan was made: compile the plan again");
  ElementSource elements{bytes.bytes_begin() + source.offset(), from};
  if (!source.transposed())
    return elements;
  if (dims.size() != 2)
    return userError(place + ": only a matrix can be transposed: got " + formatDims(dims));
  elements.rows = dims[0];
  elements.columns = dims[1];
  return elements;
}

} // namespace shardc
