// SPDX-License-Identifier: Apache-2.0
#include "tools/inspect/Files.h"
#include "ir/base/Error.h"
#include "ir/base/File.h"
#include "ir/plan/MemoryViz.h"
#include "ir/plan/PlanTrace.h"
#include "ir/plan/map/Map.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace shardc {

Error writeMap(const plan::Plan &plan, StringRef path) {
  StringRef ending = sys::path::extension(path);
  if (ending != ".svg" && ending != ".html")
    return userError("--map: got '" + path + "', wanted FILE.svg or FILE.html",
                     "the ending says which of the two is written");
  return writeFileAtomically(path, [&](raw_ostream &os) {
    ending == ".svg" ? printMapSvg(plan, os) : printMapHtml(plan, os);
    return Error::success();
  });
}

Error writeCsv(const plan::Plan &plan, StringRef path) {
  for (int space = 0; space < plan.spaces_size(); ++space) {
    if (space && plan.spaces(space).bytes() == 0)
      continue;
    SmallString<128> file(path);
    if (space)
      sys::path::replace_extension(file, "." + Twine(space) + sys::path::extension(path));
    if (Error error = writeFileAtomically(file, [&](raw_ostream &os) {
          printCsv(plan, uint32_t(space), os);
          return Error::success();
        }))
      return error;
  }
  return Error::success();
}

static Error write(StringRef path, const plan::Plan &plan, void (*print)(const plan::Plan &, raw_ostream &)) {
  return writeFileAtomically(path, [&](raw_ostream &os) {
    print(plan, os);
    return Error::success();
  });
}

Error writeMemoryViz(const plan::Plan &plan, StringRef path) { return write(path, plan, printMemoryViz); }
Error writeTrace(const plan::Plan &plan, StringRef path) { return write(path, plan, printTrace); }

} // namespace shardc
