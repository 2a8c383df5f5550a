// SPDX-License-Identifier: Apache-2.0
#include "passes/LimitedOrder.h"
#include "passes/Accumulator.h"

namespace shardc {

static bool isStart(const Op &op) { return op.def().collective == Collective::Start; }

/// Nothing is computed by it.
static bool movesData(const Op &op) { return op.is(kPack) || isStart(op); }

static Order withoutFree(const Order &order) {
  Order list;
  llvm::copy_if(order, std::back_inserter(list), [](const Op *op) { return !isFree(*op); });
  return list;
}

std::vector<uint64_t> liveProfile(const Order &order, LiveBytes &live) {
  std::vector<uint64_t> profile;
  profile.reserve(order.size());
  live.restart();
  for (const Op *op : order) {
    profile.push_back(live.next(*op).during);
    live.run(*op);
  }
  return profile;
}

LimitedOrder::LimitedOrder(const Graph &graph, const Order &given, LiveBytes &live)
    : given_(given), list_(withoutFree(given)), live_(live), profile_(liveProfile(list_, live)),
      needs_(list_.size()), users_(list_.size()) {
  floor_ = live_.now();
  live_.restart();
  floor_ = std::max(floor_, live_.now());
  for (auto [i, op] : llvm::enumerate(list_))
    index_[op] = i;
  for (unsigned i = 0; i < list_.size(); ++i)
    findNeeds(i);
  keepStates(graph);
  for (unsigned i = 0; i < list_.size(); ++i)
    for (unsigned need : needs_[i])
      users_[need].push_back(i);
  findFirstUses();
}

void LimitedOrder::need(unsigned i, const Op *before) {
  auto found = index_.find(before);
  if (found != index_.end() && found->second < i)
    needs_[i].push_back(found->second);
}

/// All others must have read what is overwritten.
void LimitedOrder::needReaders(unsigned i, Value *overwritten) {
  forEachReader(rootOf(overwritten), [&](Op *reader) { need(i, reader); });
}

void LimitedOrder::findNeeds(unsigned i) {
  const Op &op = *list_[i];
  for (Value *operand : op.operands())
    if (operand)
      need(i, rootOf(operand)->op());
  if (isStart(op)) {
    auto [last, isFirst] = lastStart_.try_emplace(&op.def(), i);
    if (!isFirst)
      needs_[i].push_back(std::exchange(last->second, i));
  }
  for (const InPlace &pair : op.def().inPlace)
    if (op.def().inPlaceRequired && op.operand(pair.operand))
      needReaders(i, op.operand(pair.operand));
  if (op.attrs.getInt("in_place", 0))
    needReaders(i, op.operand(0));
}

/// What the program leaves in a state comes after the readers of what it found there.
void LimitedOrder::keepStates(const Graph &graph) {
  llvm::StringMap<Value *> found;
  for (Op *op : given_)
    if (op->is(kInput))
      found[op->attrs.getString("name")] = op->result();
  for (auto &[name, value] : graph.outputs())
    if (Value *before = found.lookup(name))
      if (auto writer = index_.find(rootOf(value)->op()); writer != index_.end())
        needReaders(writer->second, before);
}

/// Is what `i` makes the array that `user` adds to?
bool LimitedOrder::addsTo(unsigned user, unsigned i) const {
  std::optional<unsigned> sum = accumulatorOf(list_[user]->def());
  Value *operand = sum ? list_[user]->operand(*sum) : nullptr;
  return operand && rootOf(operand)->op() == list_[i];
}

void LimitedOrder::findFirstUses() {
  firstUse_.assign(list_.size(), list_.size());
  for (unsigned i = list_.size(); i-- > 0;)
    for (unsigned user : users_[i])
      firstUse_[i] =
          std::min(firstUse_[i], movesData(*list_[user]) || addsTo(user, i) ? firstUse_[user] : user);
}

uint64_t LimitedOrder::schedule(uint64_t limit, bool collectives) {
  limit_ = limit;
  peak_ = 0;
  collectives_ = collectives;
  scheduled_.clear();
  waiting_.clear();
  onTheWay_.clear();
  ran_.assign(list_.size(), false);
  live_.restart();
  for (unsigned i = 0; i < list_.size(); ++i)
    visit(i);
  while (!waiting_.empty())
    force(waiting_.front(), list_.size());
  return peak_;
}

bool LimitedOrder::isReady(unsigned i) const {
  return llvm::all_of(needs_[i], [&](unsigned need) { return ran_[need]; });
}

/// Does what it adds fit, now and in all that comes until it is used?
bool LimitedOrder::fits(unsigned i, unsigned at) const {
  LiveBytes::Live live = live_.next(*list_[i]);
  return live.during <= limit_ && (live.grows <= 0 || profile_.of(at, firstUse_[i]) <= limit_);
}

bool LimitedOrder::mayWait(unsigned i) const {
  const Op &op = *list_[i];
  if (!isReady(i))
    return movesData(op) ||
           llvm::any_of(needs_[i], [&](unsigned need) { return !ran_[need] && addsTo(i, need); });
  return op.def().collective != Collective::Done && firstUse_[i] > i + 1 &&
         (collectives_ || !op.is(kAllGatherStart)) && !fits(i, i);
}

void LimitedOrder::visit(unsigned i) {
  endPhasesBefore(list_[i]->phase);
  runWaiting(i);
  if (ran_[i])
    return;
  if (mayWait(i))
    waiting_.push_back(i);
  else
    force(i, i);
}

void LimitedOrder::runWaiting(unsigned at) {
  for (size_t k = 0; k < waiting_.size();) {
    const unsigned i = waiting_[k];
    if (isReady(i) && fits(i, at))
      run(i, at);
    k += k < waiting_.size() && waiting_[k] == i;
  }
}

/// Collectives and packs may go on waiting.
void LimitedOrder::endPhasesBefore(Phase phase) {
  auto mustRun = [&](unsigned i) { return list_[i]->phase < phase && !movesData(*list_[i]); };
  for (auto next = llvm::find_if(waiting_, mustRun); next != waiting_.end();
       next = llvm::find_if(waiting_, mustRun))
    force(*next, *next);
}

void LimitedOrder::force(unsigned i, unsigned at) {
  for (unsigned need : needs_[i])
    if (!ran_[need])
      force(need, at);
  if (collectives_)
    for (unsigned done : std::vector<unsigned>(onTheWay_))
      if (done != i && !ran_[done] && live_.next(*list_[i]).during > limit_ &&
          live_.next(*list_[done]).after < live_.now())
        run(done, at);
  run(i, at);
}

void LimitedOrder::run(unsigned i, unsigned at) {
  const Op &op = *list_[i];
  peak_ = std::max(peak_, live_.next(op).during);
  live_.run(op);
  ran_[i] = true;
  scheduled_.push_back(list_[i]);
  llvm::erase(waiting_, i);
  llvm::erase(onTheWay_, i);
  for (unsigned user : users_[i]) {
    const Op &next = *list_[user];
    if (ran_[user])
      continue;
    if (next.def().collective == Collective::Done && op.is(kReduceScatterStart))
      onTheWay_.push_back(user);
    bool early = next.def().collective == Collective::None && next.phase == op.phase && user > at &&
                 isReady(user) && live_.next(next).after < live_.now() && profile_.of(at, user) > limit_;
    if (early)
      run(user, at);
  }
}

Order LimitedOrder::made() const {
  OrderBuilder out(given_.size());
  auto canStand = [&](const Op *op) {
    return isFree(*op) &&
           llvm::all_of(op->operands(), [&](const Value *v) { return !v || out.has(v->op()); });
  };
  size_t at = 0, reached = 0; // in given_, in list_
  for (Op *op : scheduled_) {
    for (reached = std::max<size_t>(reached, index_.lookup(op)); given_[at] != list_[reached]; ++at)
      if (canStand(given_[at]))
        out.add(given_[at]);
    out.add(op);
  }
  for (Op *op : given_)
    out.add(op);
  return out.take();
}

} // namespace shardc
