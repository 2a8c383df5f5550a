// SPDX-License-Identifier: Apache-2.0
#include "runtime/Ranks.h"
#include "runtime/comm/Communicator.h"
#include <optional>
#include <thread>
#include <vector>

namespace shardc {
namespace {

struct Failure {
  std::string text, hint;
  Exit code = Exit::BadInput;
};

/// Between a cause and what to do about it, where an error travels as one text.
constexpr llvm::StringLiteral kHint = "\nhint: ";

Failure failureOf(llvm::StringRef cause, llvm::StringRef hint, Exit code) {
  auto [text, more] = cause.split(kHint);
  return {text.str(), hint.empty() ? more.str() : hint.str(), code};
}

Failure take(llvm::Error error) {
  std::optional<Failure> first;
  llvm::handleAllErrors(
      std::move(error),
      [&](const UserError &mistake) {
        if (!first)
          first = failureOf(mistake.text(), mistake.hint(), mistake.code());
      },
      [&](const llvm::ErrorInfoBase &other) {
        if (!first)
          first = failureOf(other.message(), "", Exit::BadInput);
      });
  return *first;
}

llvm::Error errorOf(const Failure &failure) { return userError(failure.text, failure.hint, failure.code); }

std::string prefixOf(const Communicator &communicator) {
  return "rank " + std::to_string(communicator.rank()) + ": ";
}

std::string named(const Communicator &communicator, const std::string &text) {
  std::string prefix = prefixOf(communicator);
  return llvm::StringRef(text).starts_with(prefix) ? text : prefix + text;
}

bool isOwnCause(const Communicator &communicator) {
  return communicator.size() > 1 && llvm::StringRef(communicator.cause()).starts_with(prefixOf(communicator));
}

} // namespace

llvm::Error abortGroup(Communicator &communicator, llvm::Error error) {
  Failure failure = take(std::move(error));
  if (isOwnCause(communicator)) { // a kernel failed: only this rank knows of it
    failure.text = named(communicator, failure.text);
    return errorOf(failure);
  }
  std::string hint = failure.hint.empty() ? "" : kHint.str() + failure.hint;
  communicator.abort(named(communicator, failure.text) + hint);
  return errorOf(failure);
}

llvm::Error groupError(const Communicator &communicator, Exit code) {
  return errorOf(failureOf(communicator.cause(), "", code));
}

llvm::Error runRanks(llvm::ArrayRef<std::unique_ptr<Communicator>> group,
                     llvm::function_ref<llvm::Error(Communicator &)> body) {
  std::vector<std::optional<Failure>> failures(group.size());
  auto runOne = [&](size_t i) {
    if (llvm::Error error = body(*group[i]))
      failures[i] = take(abortGroup(*group[i], std::move(error)));
  };
  std::vector<std::thread> threads;
  for (size_t i = 1; i < group.size(); ++i)
    threads.emplace_back(runOne, i);
  runOne(0);
  for (std::thread &thread : threads)
    thread.join();

  // The others' errors only tell of the first one; the rank that the cause names has it in its own words.
  std::optional<size_t> first;
  for (size_t i = 0; i < group.size(); ++i)
    if (failures[i] && (!first || isOwnCause(*group[i])))
      first = i;
  if (!first)
    return llvm::Error::success();
  return errorOf(*failures[*first]);
}

llvm::Error waitForAll(Communicator &communicator) {
  auto any = anyRank(communicator, false);
  return any ? llvm::Error::success() : any.takeError();
}

llvm::Error comparePlans(Communicator &communicator, llvm::StringRef hash) {
  std::string first = hash.str();
  if (!communicator.broadcast(/*channel=*/0, first.data(), first.size(), /*root=*/0))
    return groupError(communicator);
  if (first != hash)
    return userError("plan: differs from that of rank 0: got hash " + hash + ", wanted " + first,
                     "start all ranks with one plan file");
  return waitForAll(communicator);
}

llvm::Expected<bool> anyRank(Communicator &communicator, bool wish) {
  double wishes = wish;
  if (!communicator.allReduce(/*channel=*/0, &wishes, 1, DType::F64))
    return groupError(communicator);
  return wishes > 0;
}

} // namespace shardc
