// SPDX-License-Identifier: Apache-2.0
#include "passes/PassRunner.h"
#include "ir/base/Error.h"
#include "ir/base/File.h"
#include "ir/graph/Text.h"
#include "ir/graph/Verify.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"

namespace shardc {

PassRunner::~PassRunner() {
  if (!debug_.timePasses)
    return;
  double total = 0;
  for (auto &[name, seconds] : seconds_) {
    llvm::errs() << llvm::format("%10.3f ms  ", seconds * 1e3) << name << "\n";
    total += seconds;
  }
  llvm::errs() << llvm::format("%10.3f ms  ", total * 1e3) << "all passes\n";
}

static llvm::Error writeText(const llvm::Twine &path, llvm::StringRef text) {
  return writeFileAtomically(path.str(), [&](llvm::raw_ostream &os) {
    os << text;
    return llvm::Error::success();
  });
}

void PassRunner::addTime(llvm::StringRef name, std::chrono::steady_clock::time_point start) {
  seconds_.emplace_back(name, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

void PassRunner::operator()(llvm::StringRef name, Pass pass) {
  if (stopped_)
    return;
  bool printChanged = debug_.printAfter == "changed";
  std::string before = printChanged || !debug_.reproducer.empty() ? toString(graph_) : "";

  auto start = std::chrono::steady_clock::now();
  error_ = pass(graph_, options_);
  addTime(name, start);

  if (!error_ && debug_.verifyEach)
    if (llvm::Error broken = verify(graph_))
      error_ = userError("after pass " + name + ": " + llvm::toString(std::move(broken)));
  ++number_;
  if (debug_.printAfter == "all" || debug_.printAfter == name) {
    llvm::errs() << "// after " << name << "\n";
    printGraph(graph_, llvm::errs());
  } else if (printChanged) {
    std::string after = toString(graph_);
    llvm::errs() << "// after " << name << (after == before ? " (unchanged)\n" : "\n" + after);
  }
  if (!error_ && !debug_.dumpDir.empty()) {
    if (std::error_code code = llvm::sys::fs::create_directories(debug_.dumpDir))
      error_ = userError(debug_.dumpDir + ": cannot make the folder: " + code.message());
    else
      error_ = writeText(debug_.dumpDir + "/" + (number_ < 10 ? "0" : "") + llvm::Twine(number_) + "-" + name + ".ir",
                         toString(graph_));
  }
  if (error_) {
    stopped_ = true;
    if (!debug_.reproducer.empty())
      saveReproducer(before, name);
  }
  stopped_ |= debug_.stopAfter == name;
}

void PassRunner::saveReproducer(llvm::StringRef before, llvm::StringRef pass) {
  std::string text = ("// RUN: shardc-opt %s --pass=" + pass + " --verify-each\n" + before).str();
  if (llvm::Error failed = writeText(debug_.reproducer, text))
    error_ = llvm::joinErrors(std::move(error_), std::move(failed));
}

} // namespace shardc
