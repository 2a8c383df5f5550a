// SPDX-License-Identifier: Apache-2.0
#include "tools/common/CommandLine.h"
#include "ir/base/Error.h"
#include "ir/base/Screen.h"
#include "tools/common/Help.h"
#include "tools/common/Report.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

using namespace llvm;

namespace shardc {
namespace {

cl::OptionCategory generalCategory("General");
cl::opt<bool> verboseFlag("v", cl::desc("say more on stderr"), cl::cat(generalCategory));
cl::opt<bool> quietFlag("quiet", cl::desc("no notes and no progress on stderr"),
                        cl::cat(generalCategory));

int savedStderr = -1; ///< where it is while another file stands for it

void restoreStderr() {
  if (savedStderr < 0)
    return;
  errs().flush();
  ::dup2(savedStderr, STDERR_FILENO);
  ::close(std::exchange(savedStderr, -1));
}

/// llvm::cl prints some mistakes of values straight to stderr, whatever stream it is given: while
/// one of these lives, stderr is a file in memory.
class CapturedStderr {
public:
  CapturedStderr() : memory_(::memfd_create("stderr", MFD_CLOEXEC)) {
    if (memory_ < 0)
      return;
    savedStderr = ::fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    if (savedStderr >= 0)
      ::dup2(memory_, STDERR_FILENO);
  }
  /// Puts stderr back and gives what was written.
  std::string finish() {
    restoreStderr();
    std::string text;
    char part[512];
    ::lseek(memory_, 0, SEEK_SET);
    for (ssize_t n; (n = ::read(memory_, part, sizeof part)) > 0;)
      text.append(part, size_t(n));
    ::close(memory_);
    return text;
  }

private:
  int memory_;
};

/// "shardc: for the --ranks option: ..." -> "for the --ranks option: ..."
StringRef withoutProgram(StringRef line, StringRef program) {
  line.consume_front(program);
  line.consume_front(": ");
  return line.trim();
}

/// "for the --ranks option: 'x' value invalid for uint argument" -> "--ranks: got 'x', wanted a whole number from 0"; "" for what does
/// not begin so.
std::string mistakeInFlag(StringRef message) {
  if (!message.consume_front("for the "))
    return "";
  auto [flag, what] = message.split(" option: ");
  auto [got, kind] = what.split(" value invalid for ");
  std::string said = what.str();
  if (kind.starts_with("u"))
    said = (got + ", wanted a whole number from 0").str();
  else if (kind.starts_with("floating"))
    said = (got + ", wanted a number").str();
  else if (!kind.empty())
    said = (got + ", wanted a whole number").str();
  else if (what.contains(" is invalid value for boolean"))
    said = (what.split(" is ").first + ", wanted true or false").str();
  else if (what.starts_with("requires a value"))
    said = "none, wanted a value";
  else
    return (flag + ": " + said).str();
  return (flag + ": got " + said).str();
}

/// The first line is the mistake; the rest (did you mean) helps.
Error usageError(StringRef printed, StringRef program) {
  SmallVector<StringRef> lines;
  printed.split(lines, '\n', -1, /*KeepEmpty=*/false);
  if (lines.empty())
    return userError("command line: cannot be parsed", "see " + program + " --help");
  auto [message, seeHelp] = withoutProgram(lines[0], program).split("  Try:");
  std::string hint = ("see " + program + " --help").str();
  message = message.rtrim().rtrim(".!");
  if (std::string ofFlag = mistakeInFlag(message); !ofFlag.empty())
    return userError(ofFlag, hint);
  std::string text = message.str();
  if (message.starts_with("Unknown command line argument")) {
    StringRef flag = message.split("argument ").second;
    text = ("unknown flag: got " + flag).str();
    StringRef more = lines.size() > 1 ? withoutProgram(lines[1], program) : "";
    auto [likely, end] = more.split('?');
    if (likely.consume_front("Did you mean ") && likely.edit_distance(flag) <= flag.size() / 3)
      hint = ("Did you mean " + likely + "? " + hint).str();
  } else if (message.starts_with("Not enough positional")) {
    text = "file: got none, wanted one";
  } else if (message.starts_with("Too many positional")) {
    text = "files: got more than one, wanted one";
  }
  return userError("command line: " + text, hint);
}

/// A file that we open must not become stdin, stdout or stderr because those were closed: what we
/// print would end up in it. What goes to these still fails.
void holdStandardDescriptors() {
  for (int fd = ::open("/dev/null", O_RDONLY); fd >= 0; fd = ::open("/dev/null", O_RDONLY))
    if (fd > STDERR_FILENO) {
      ::close(fd);
      return;
    }
}

/// Called before outs() and errs() are destroyed, which abort where they have an error. Notes that
/// nobody can read are no failure; a result is, also of --help, which ends inside of llvm::cl.
void settleStreams() {
  restoreStderr();
  if (int code = reportAndExitCode(Error::success()))
    std::_Exit(code);
  errs().clear_error();
}

void printVersion(raw_ostream &os) { os << "shardc " << SHARDC_VERSION << '\n'; }

} // namespace

void parseCommandLine(int argc, char **argv, const ToolHelp &help) {
  SmallVector<const cl::OptionCategory *> shown(help.categories.begin(), help.categories.end());
  shown.push_back(&generalCategory);
  cl::HideUnrelatedOptions(shown);
  cl::SetVersionPrinter(printVersion);
  winsize terminal;
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &terminal) == 0)
    fitTerminal(terminal.ws_col);
  const size_t columns = onTerminal() ? screenColumns() : SIZE_MAX;
  wrapHelp(columns);
  std::string examples = "\nEXAMPLES:\n\n";
  for (StringRef rest = help.examples.trim(); !rest.empty();) {
    auto [line, next] = rest.split('\n');
    examples += "  " + wrapped(line.trim(), columns - 8, " \\\n      ") + "\n"; // 6 spaces and a backslash
    rest = next;
  }
  cl::extrahelp afterOptions(examples);

  holdStandardDescriptors();
  std::signal(SIGXFSZ, SIG_IGN); // a file that grows too large is an error of the write
  (void)outs(), (void)errs();
  std::atexit(settleStreams);

  CapturedStderr captured;
  std::string printed;
  raw_string_ostream stream(printed);
  bool parsed = cl::ParseCommandLineOptions(argc, argv, wrapped(help.overview, columns), &stream);
  printed = captured.finish() + printed;
  if (!parsed)
    std::exit(reportAndExitCode(usageError(printed, sys::path::filename(argv[0]))));
  errs() << printed;
}

raw_ostream &notes() { return quietFlag ? nulls() : errs(); }
raw_ostream &details() { return verboseFlag && !quietFlag ? errs() : nulls(); }
bool isQuiet() { return quietFlag; }
bool isVerbose() { return verboseFlag && !quietFlag; }

} // namespace shardc
