// SPDX-License-Identifier: Apache-2.0
// Rectangles, lines and text of an SVG picture; coordinates in pixels, one decimal.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"
#include "llvm/Support/raw_ostream.h"
#include <string>

namespace shardc::map {

struct Box {
  double x, y, width, height;
};

class SvgWriter {
public:
  explicit SvgWriter(llvm::raw_ostream &os) : os_(os) {}

  void begin(double width, double height);
  void end() { os_ << "</svg>\n"; }
  void rect(const Box &box, llvm::StringRef color);
  void line(double x0, double y0, double x1, double y1, llvm::StringRef color, bool dashed = false);
  /// All in one colour; what `addTo` and `stepsTo` made.
  void path(llvm::StringRef shapes, llvm::StringRef color);
  enum Anchor : uint8_t { Start, Middle, End };
  /// `y`: the baseline. `style`: classes of begin(): "b" bold, "s" small, "g" grey, "r" red, "t"
  /// title. `rest` follows in plain style.
  void text(double x, double y, const llvm::Twine &text, llvm::StringRef style = "",
            Anchor anchor = Start, const llvm::Twine &rest = "");

  /// Appends a closed rectangle to a path's shapes. Requires: corners as wanted in the file.
  static void addTo(std::string &shapes, double x0, double y0, double x1, double y1);

private:
  llvm::raw_ostream &os_;
};

/// "12.5", "12".
std::string pixels(double value);
/// About how wide text of a size is in the fonts that browsers take.
double textWidth(llvm::StringRef text, double size);
/// &, < and the like as entities; what XML cannot hold as U+FFFD.
std::string xmlEscaped(llvm::StringRef text);

} // namespace shardc::map
