// SPDX-License-Identifier: Apache-2.0
#include "ir/base/Json.h"
#include "ir/base/Error.h"

namespace shardc {

/// The number of names in the outermost object; nullopt: nested too deep.
static std::optional<size_t> countTopNames(llvm::StringRef json) {
  size_t names = 0;
  int depth = 0;
  bool inString = false;
  for (size_t i = 0; i < json.size(); ++i) {
    char c = json[i];
    if (inString) {
      if (c == '\\')
        ++i;
      else if (c == '"')
        inString = false;
    } else if (c == '"') {
      inString = true;
    } else if (c == '{' || c == '[') {
      if (++depth > 8)
        return std::nullopt;
    } else if (c == '}' || c == ']') {
      --depth;
    } else if (c == ':' && depth == 1) {
      ++names;
    }
  }
  return names;
}

llvm::Expected<llvm::json::Object> parseJsonObject(llvm::StringRef text) {
  std::optional<size_t> names = countTopNames(text);
  if (!names)
    return userError("nested too deep: got more than 8 levels, wanted at most 8");
  auto json = llvm::json::parse(text);
  if (!json)
    return userError("not JSON: " + llvm::toString(json.takeError()));
  llvm::json::Object *object = json->getAsObject();
  if (!object)
    return userError("got another JSON value, wanted an object");
  if (object->size() != *names)
    return userError("a name is there twice: got " + llvm::Twine(*names) + " entries with " + llvm::Twine(object->size()) + " names");
  return std::move(*object);
}

} // namespace shardc
