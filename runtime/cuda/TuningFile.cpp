// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/TuningFile.h"
#include "ir/base/Error.h"
#include "ir/base/File.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "runtime/cuda/Executor.h"

namespace shardc::cuda {

/// The first line begins with what makes it ours, in any version; another version is as if it were empty.
constexpr llvm::StringLiteral kOurs = "shardc tuning ";
constexpr llvm::StringLiteral kTitle = "shardc tuning 1\n";
/// Between key and algorithm, which is in hexadecimal digits.
constexpr llvm::StringLiteral kBetween = " = ";
constexpr uint64_t kMostBytes = 1 << 28;

Tuning Tuning::parse(llvm::StringRef text) {
  Tuning tuning;
  if (!text.consume_front(kTitle))
    return tuning;
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    text = rest;
    auto [key, digits] = line.rsplit(kBetween);
    std::string bytes;
    AlgorithmBytes algorithm;
    if (key.empty() || digits.size() != 2 * algorithm.size() || !llvm::tryGetFromHex(digits, bytes))
      continue;
    std::copy(bytes.begin(), bytes.end(), algorithm.begin());
    tuning.set(key, algorithm);
  }
  return tuning;
}

Tuning Tuning::read(llvm::StringRef path) {
  auto file = readFile(path, kMostBytes);
  if (file)
    return parse((*file)->getBuffer());
  llvm::consumeError(file.takeError());
  return Tuning();
}

std::string Tuning::text() const {
  std::string text = kTitle.str();
  for (auto &[key, algorithm] : byKey_)
    text += key + kBetween.str() + llvm::toHex(algorithm, /*LowerCase=*/true) + "\n";
  return text;
}

std::optional<AlgorithmBytes> Tuning::find(llvm::StringRef key) const {
  auto found = byKey_.find(std::string_view(key));
  return found == byKey_.end() ? std::nullopt : std::optional(found->second);
}

void Tuning::set(llvm::StringRef key, const AlgorithmBytes &algorithm) {
  byKey_.insert_or_assign(key.str(), algorithm);
}

void Tuning::add(const Tuning &other) {
  for (auto &[key, algorithm] : other.byKey_)
    set(key, algorithm);
}

llvm::Error Tuning::mergeInto(llvm::StringRef path) const {
  llvm::StringRef folder = llvm::sys::path::parent_path(path);
  if (!folder.empty())
    llvm::sys::fs::create_directories(folder); // if not, the write says so
  Tuning all;
  auto before = readFile(path, kMostBytes);
  if (!before) {
    llvm::consumeError(before.takeError()); // not there yet; or the write says what is wrong
  } else {
    llvm::StringRef text = (*before)->getBuffer();
    if (!text.empty() && !text.starts_with(kOurs))
      return userError(path + ": is no tuning file: got other first bytes, wanted '" + kOurs.rtrim() + "'",
                       "give --tuning another path, or off");
    all = parse(text);
  }
  all.add(*this);
  return writeFileAtomically(path, [&](llvm::raw_ostream &os) {
    os << all.text();
    return llvm::Error::success();
  });
}

std::string defaultTuningFile() {
  llvm::SmallString<128> path;
  if (!llvm::sys::path::cache_directory(path))
    return "";
  llvm::sys::path::append(path, "shardc", "tuning.txt");
  return path.str().str();
}

} // namespace shardc::cuda
