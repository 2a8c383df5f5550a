// SPDX-License-Identifier: Apache-2.0
#include "tools/train/Spawn.h"
#include "ir/base/Error.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <optional>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

extern char **environ;

namespace shardc {
namespace {

using Clock = std::chrono::steady_clock;

/// What torchrun would say, in place of what is said already.
std::vector<std::string> environmentOf(unsigned rank, unsigned ranks) {
  std::pair<const char *, std::string> own[] = {
      {"RANK", std::to_string(rank)},
      {"LOCAL_RANK", std::to_string(rank)},
      {"WORLD_SIZE", std::to_string(ranks)},
      {"LOCAL_WORLD_SIZE", std::to_string(ranks)},
      {"TORCHELASTIC_RUN_ID", "shardc-" + std::to_string(getpid())}};
  auto isOwn = [&](llvm::StringRef entry) {
    return llvm::any_of(
        own, [&](const auto &variable) { return entry.split('=').first == variable.first; });
  };
  std::vector<std::string> all;
  for (char **entry = environ; *entry; ++entry)
    if (!isOwn(*entry))
      all.push_back(*entry);
  for (const auto &[name, value] : own)
    all.push_back(name + ("=" + value));
  return all;
}

std::vector<char *> pointersTo(const std::vector<std::string> &texts) {
  std::vector<char *> pointers;
  for (const std::string &text : texts)
    pointers.push_back(const_cast<char *>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

int severity(int code) {
  switch (Exit(code)) {
  case Exit::Done:
    return 0;
  case Exit::Interrupted:
    return 1;
  case Exit::BadInput:
    return 2;
  case Exit::DoesNotFit:
    return 3;
  default:
    return 4;
  }
}

class Ranks {
public:
  explicit Ranks(const SpawnOptions &options) : options_(options) {
    sigemptyset(&awaited_);
    for (int signal : {SIGINT, SIGTERM, SIGCHLD})
      sigaddset(&awaited_, signal);
    sigprocmask(SIG_BLOCK, &awaited_, &before_); // none comes between a check and the wait
  }
  ~Ranks() {
    tellAll(SIGKILL);
    for (pid_t pid : running_)
      waitpid(pid, nullptr, 0);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
  }

  llvm::Error start() {
    std::vector<char *> arguments(options_.arguments.size());
    std::transform(options_.arguments.begin(), options_.arguments.end(), arguments.begin(),
                   [](const char *text) { return const_cast<char *>(text); });
    arguments.push_back(nullptr);
    for (unsigned rank = 0; rank < options_.ranks; ++rank) {
      std::vector<std::string> environment = environmentOf(rank, options_.ranks);
      std::vector<char *> pointers = pointersTo(environment);
      const pid_t parent = getpid(), pid = fork();
      if (pid < 0)
        return userError("--ranks: cannot start rank " + llvm::Twine(rank) + ": " +
                             std::strerror(errno),
                         "end other processes, or start the ranks by torchrun");
      if (pid == 0)
        become(arguments.data(), pointers.data(), parent);
      running_.push_back(pid);
    }
    return llvm::Error::success();
  }

  int wait() {
    if (options_.stop && *options_.stop) { // before they were there
      asked_ = true;
      tellAll(SIGINT);
    }
    while (!running_.empty()) {
      siginfo_t info = {};
      timespec limit = {1, 0};
      int signal = sigtimedwait(&awaited_, &info, &limit);
      // From a terminal it has reached the ranks as well, and a second one would end them at once.
      const bool asked = signal == SIGINT || signal == SIGTERM;
      asked_ |= asked;
      if (asked && info.si_code != SI_KERNEL)
        tellAll(signal);
      collect();
      if (failed_ && Clock::now() > *failed_ + std::chrono::duration<double>(options_.patience))
        tellAll(SIGKILL);
    }
    return worst_;
  }

private:
  /// What asks to stop stays blocked until the program lets it in: before, it would end this rank at
  /// once, and the others would wait for it.
  [[noreturn]] void become(char **arguments, char **environment, pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
      _exit(int(Exit::Fault));
    sigset_t blocked = before_;
    sigaddset(&blocked, SIGINT);
    sigaddset(&blocked, SIGTERM);
    sigprocmask(SIG_SETMASK, &blocked, nullptr);
    execve(options_.program.c_str(), arguments, environment);
    _exit(127);
  }

  void collect() {
    for (size_t i = 0; i < running_.size();) {
      int status = 0;
      if (waitpid(running_[i], &status, WNOHANG) != running_[i]) {
        ++i;
        continue;
      }
      running_.erase(running_.begin() + i);
      const bool stopped = WIFSIGNALED(status) && (WTERMSIG(status) == SIGINT || WTERMSIG(status) == SIGTERM);
      int code = WIFEXITED(status)    ? WEXITSTATUS(status)
                 : asked_ && stopped ? int(Exit::Interrupted)
                                      : int(Exit::Fault);
      if (severity(code) > severity(worst_))
        worst_ = code;
      if (code != 0 && code != int(Exit::Interrupted) && !failed_)
        failed_ = Clock::now();
    }
  }

  void tellAll(int signal) {
    for (pid_t pid : running_)
      kill(pid, signal);
  }

  const SpawnOptions &options_;
  sigset_t awaited_, before_;
  std::vector<pid_t> running_;
  bool asked_ = false; ///< to stop
  std::optional<Clock::time_point> failed_;
  int worst_ = 0;
};

} // namespace

llvm::Expected<int> spawnRanks(const SpawnOptions &options) {
  Ranks ranks(options);
  if (llvm::Error error = ranks.start())
    return error;
  return ranks.wait();
}

llvm::Expected<int> spawnSelf(llvm::ArrayRef<const char *> arguments, unsigned ranks,
                              const std::atomic<bool> *stop) {
  SpawnOptions options;
  options.program =
      llvm::sys::fs::getMainExecutable(arguments[0], reinterpret_cast<void *>(&spawnSelf));
  options.arguments = arguments;
  options.ranks = ranks;
  options.stop = stop;
  return spawnRanks(options);
}

void admitSignals() {
  sigset_t stops;
  sigemptyset(&stops);
  sigaddset(&stops, SIGINT);
  sigaddset(&stops, SIGTERM);
  sigprocmask(SIG_UNBLOCK, &stops, nullptr);
}

} // namespace shardc
