// SPDX-License-Identifier: Apache-2.0
// What the command lines of all tools share: parsing, --help with examples, --version, -v and
// --quiet.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/Error.h"

namespace shardc {

/// What --help says of a tool. Flags of other categories are hidden.
struct ToolHelp {
  llvm::StringRef overview; ///< one or two lines
  llvm::StringRef examples; ///< command lines, one a line
  llvm::ArrayRef<llvm::cl::OptionCategory *> categories;
};

/// Fills the llvm::cl options. Ends the process: with 0 after --help and --version, with 1 after
/// `shardc: error: command line: ...` for anything that cannot be parsed. From here on standard
/// descriptors that were closed are held, a file that grows too large is an error of the write
/// (SIGXFSZ is ignored), and an exit with 0 becomes 1 where stdout could not be written.
void parseCommandLine(int argc, char **argv, const ToolHelp &help);

/// Notes and progress, on stderr. With --quiet they go nowhere; details only come with -v.
llvm::raw_ostream &notes();
llvm::raw_ostream &details();
bool isQuiet();
bool isVerbose();

/// "24GiB" -> 25769803776. Takes B KiB MiB GiB TiB KB MB GB TB, a bare number of bytes, and
/// fractions ("1.5GiB").
llvm::Expected<int64_t> parseSize(llvm::StringRef text);

/// "1.50 GiB": three digits, binary units; below 1 KiB "512 B".
std::string formatSize(int64_t bytes);

/// `cl::opt<Size>`: a flag that takes a size. Zero unless given.
struct Size {
  int64_t bytes = 0;
};

} // namespace shardc

template <> class llvm::cl::parser<shardc::Size> final : public basic_parser<shardc::Size> {
public:
  using basic_parser::basic_parser;
  bool parse(Option &option, StringRef name, StringRef text, shardc::Size &value);
  StringRef getValueName() const override { return "SIZE"; }
  void printOptionDiff(const Option &option, shardc::Size value, OptVal, size_t width) const;
};
