// SPDX-License-Identifier: Apache-2.0
#include "runtime/TrainLog.h"
#include "ir/base/File.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

namespace shardc {
namespace {

/// JSON in memory of its own.
class Line {
public:
  void text(const char *text) { append(text, std::strlen(text)); }
  void integer(const char *key, int64_t value) {
    name(key);
    size_ = std::to_chars(end(), limit(), value).ptr - data_;
  }
  /// `digits` significant ones; 0: the shortest text that reads back as the same number.
  void number(const char *key, double value, int digits = 0) {
    name(key);
    if (!std::isfinite(value))
      return text("null");
    auto done = digits ? std::to_chars(end(), limit(), value, std::chars_format::general, digits)
                       : std::to_chars(end(), limit(), value);
    size_ = done.ptr - data_;
  }
  const char *data() const { return data_; }
  size_t size() const { return size_; }

private:
  void name(const char *key) {
    text(size_ > 0 && data_[size_ - 1] != '{' && data_[size_ - 1] != ' ' ? ", \"" : "\"");
    text(key);
    text("\": ");
  }
  void append(const char *text, size_t size) {
    std::memcpy(end(), text, size);
    size_ += size;
  }
  char *end() { return data_ + size_; }
  char *limit() { return data_ + sizeof data_; }

  char data_[1024]; // ten numbers of at most 25 characters, with their keys
  size_t size_ = 0;
};

std::error_code lastError() { return std::error_code(errno, std::generic_category()); }

double rounded(double value, double digits) { return std::round(value * digits) / digits; }

} // namespace

TrainLog::~TrainLog() {
  if (fd_ >= 0)
    ::close(fd_);
}

llvm::Error TrainLog::open(llvm::StringRef folder, uint64_t reserve) {
  if (std::error_code code = llvm::sys::fs::create_directories(folder))
    return cannotWrite(folder, code);
  if (!llvm::sys::fs::is_directory(folder))
    return cannotWrite(folder, std::make_error_code(std::errc::not_a_directory));
  path_ = (folder + "/log.jsonl").str();
  if (llvm::Error error = checkWritable(path_, reserve))
    return error;
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
  return fd_ < 0 ? cannotWrite(path_, lastError()) : llvm::Error::success();
}

llvm::Error TrainLog::writeLine(const char *text, size_t size) {
  for (size_t done = 0; done < size;) {
    ssize_t n = ::write(fd_, text + done, size - done);
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0) {
      std::error_code reason = lastError();
      if (off_t end = ::lseek(fd_, 0, SEEK_END); end > 0) // a reader finds whole lines
        (void)!::ftruncate(fd_, end - off_t(done));
      return cannotWrite(path_, reason, Exit::Fault);
    }
    done += n;
  }
  return llvm::Error::success();
}

llvm::Error TrainLog::write(const StepReport &report) {
  if (fd_ < 0)
    return llvm::Error::success();
  Line line;
  line.text("{");
  line.integer("step", report.step);
  line.number("loss", report.loss, 9);
  line.number("learning_rate", report.learningRate);
  line.number("grad_norm", report.gradNorm, 9);
  if (report.lossScale) {
    line.number("loss_scale", *report.lossScale);
    line.integer("skipped", report.skipped);
  }
  line.number("step_ms", rounded(report.milliseconds, 1e3));
  line.number("samples_per_second", rounded(report.samplesPerSecond, 1e3));
  if (report.tokensPerSecond > 0)
    line.number("tokens_per_second", rounded(report.tokensPerSecond, 1e1));
  if (report.mfu > 0)
    line.number("mfu", rounded(report.mfu, 1e4));
  line.text("}\n");
  return writeLine(line.data(), line.size());
}

static void addEval(Line &line, const EvalReport &report) {
  line.number("eval_loss", report.loss, 9);
  if (report.accuracy)
    line.number("eval_accuracy", *report.accuracy, 9);
  line.number("eval_runtime", rounded(report.seconds, 1e4));
  line.number("eval_samples_per_second",
              rounded(double(report.samples) / std::max(report.seconds, 1e-9), 1e3));
}

llvm::Error TrainLog::write(int64_t step, const EvalReport &report) {
  if (fd_ < 0)
    return llvm::Error::success();
  Line line;
  line.text("{");
  line.integer("step", step);
  addEval(line, report);
  line.text("}\n");
  return writeLine(line.data(), line.size());
}

std::string formatResults(const TrainResults &results) {
  Line line;
  double seconds = std::max(results.seconds, 1e-9);
  line.text("{");
  line.number("epoch", rounded(results.epoch, 1e4));
  line.integer("global_step", results.steps);
  line.number("train_loss", results.loss, 9);
  line.number("train_runtime", rounded(results.seconds, 1e4));
  line.integer("train_samples", results.samples);
  line.number("train_samples_per_second", rounded(double(results.samples) / seconds, 1e3));
  line.number("train_steps_per_second", rounded(double(results.steps) / seconds, 1e3));
  if (results.eval)
    addEval(line, *results.eval);
  line.text("}\n");
  return std::string(line.data(), line.size());
}

llvm::Error checkWritable(llvm::StringRef path, uint64_t bytes) {
  if (path == "-")
    return userError("-: is the standard output, where results go: wanted a file", "choose a path");
  llvm::sys::fs::file_status status;
  bool exists = !llvm::sys::fs::status(path, status) && llvm::sys::fs::exists(status);
  if (exists && llvm::sys::fs::is_directory(status))
    return cannotWrite(path, std::make_error_code(std::errc::is_a_directory));
  if (exists && !llvm::sys::fs::is_regular_file(status)) // /dev/stdout, a pipe
    return llvm::Error::success();
  int fd = -1;
  llvm::SmallString<128> temporary;
  if (std::error_code code =
          llvm::sys::fs::createUniqueFile(path + ".%%%%%%%%.part", fd, temporary))
    return cannotWrite(path, code);
  ::close(fd);
  llvm::sys::fs::remove(temporary);
  llvm::StringRef folder = llvm::sys::path::parent_path(path);
  auto space = llvm::sys::fs::disk_space(folder.empty() ? "." : folder);
  if (space && space->available < bytes)
    return userError(path + ": disk full: got " + llvm::Twine(space->available) +
                         " free bytes, wanted " + llvm::Twine(bytes),
                     "free some space, or choose a path on another disk");
  return llvm::Error::success();
}

} // namespace shardc
