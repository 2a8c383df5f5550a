// SPDX-License-Identifier: Apache-2.0
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "passes/Buckets.h"
#include <map>
#include <set>

namespace shardc {

llvm::StringRef moduleOfName(llvm::StringRef name) {
  size_t dot = name.rfind('.');
  return dot == llvm::StringRef::npos ? name : name.take_front(dot);
}

namespace {

/// "a.b" of "a.b.c" and "a.b.d"; "" if they have no component in common.
llvm::StringRef commonPath(llvm::ArrayRef<llvm::StringRef> names) {
  llvm::StringRef common = names.front();
  for (llvm::StringRef name : names)
    while (!common.empty() && name != common && !name.starts_with((common + ".").str()))
      common = common.contains('.') ? common.rsplit('.').first : "";
  return common;
}

std::string nameOf(llvm::ArrayRef<const Parameter *> members, const std::set<std::string> &layers) {
  llvm::SmallSetVector<llvm::StringRef, 4> modules;
  for (const Parameter *p : members)
    modules.insert(moduleOfName(p->name));
  llvm::StringRef common = commonPath(modules.getArrayRef()), first = modules.front();
  bool coversLayers =
      llvm::any_of(layers, [&](llvm::StringRef layer) { return layer.starts_with((common + ".").str()); });
  if (!common.empty() && !coversLayers)
    return common.str();
  return (first + "+" + (modules.size() == 2 ? modules[1] : "others")).str();
}

} // namespace

void nameGroups(Graph &graph) {
  std::map<std::string, llvm::SmallVector<const Parameter *>> groups;
  std::set<std::string> taken; // first of all by layers
  for (const Parameter &p : graph.parameters)
    if (llvm::StringRef(p.layer).starts_with(kNameless))
      groups[p.layer].push_back(&p);
    else
      taken.insert(p.layer);
  std::map<std::string, std::string> names;
  for (auto &[group, members] : groups) {
    std::string name = nameOf(members, taken);
    if (taken.contains(name))
      name = members.front()->name + (members.size() > 1 ? "+others" : "");
    taken.insert(name);
    names[group] = name;
  }
  for (Parameter &p : graph.parameters)
    if (auto found = names.find(p.layer); found != names.end())
      p.layer = found->second;
}

} // namespace shardc
