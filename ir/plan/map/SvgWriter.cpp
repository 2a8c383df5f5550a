// SPDX-License-Identifier: Apache-2.0
#include "ir/plan/map/SvgWriter.h"
#include "ir/plan/Table.h"
#include "ir/plan/Text.h"
#include <cmath>
#include <cstdio>

using namespace llvm;

namespace shardc::map {

std::string pixels(double value) {
  char text[32];
  int length = std::snprintf(text, sizeof text, "%.1f", value);
  StringRef number(text, size_t(length));
  number.consume_back(".0");
  return number == "-0" ? "0" : number.str();
}

double textWidth(StringRef text, double size) { return 0.56 * size * columnsOf(text); }

std::string xmlEscaped(StringRef text) {
  std::string out;
  for (char c : utf8(text)) {
    switch (c) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '"':
      out += "&quot;";
      break;
    default:
      out += static_cast<unsigned char>(c) < 0x20 ? "\xef\xbf\xbd" : std::string(1, c);
    }
  }
  return out;
}

void SvgWriter::begin(double width, double height) {
  os_ << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" << pixels(width) << "\" height=\""
      << pixels(height) << "\" viewBox=\"0 0 " << pixels(width) << ' ' << pixels(height) << "\">\n"
      << "<style>text{font:12px "
         "Helvetica,Arial,sans-serif;fill:#20262c}.b{font-weight:bold}.s{font-size:10px}"
         ".p{font-weight:normal}.g{fill:#66707a}.r{fill:#b3001b}.t{font-size:18px}</style>\n";
  rect({0, 0, width, height}, "#fff");
}

void SvgWriter::rect(const Box &box, StringRef color) {
  os_ << "<rect x=\"" << pixels(box.x) << "\" y=\"" << pixels(box.y) << "\" width=\""
      << pixels(box.width) << "\" height=\"" << pixels(box.height) << "\" fill=\"" << color
      << "\"/>\n";
}

void SvgWriter::line(double x0, double y0, double x1, double y1, StringRef color, bool dashed) {
  os_ << "<path d=\"M" << pixels(x0) << ' ' << pixels(y0) << 'L' << pixels(x1) << ' ' << pixels(y1)
      << "\" stroke=\"" << color << '"' << (dashed ? " stroke-dasharray=\"5 3\"" : "") << "/>\n";
}

void SvgWriter::path(StringRef shapes, StringRef color) {
  if (!shapes.empty())
    os_ << "<path fill=\"" << color << "\" d=\"" << shapes << "\"/>\n";
}

void SvgWriter::text(double x, double y, const Twine &text, StringRef style, Anchor anchor,
                     const Twine &rest) {
  constexpr const char *kAnchors[] = {"", " text-anchor=\"middle\"", " text-anchor=\"end\""};
  os_ << "<text x=\"" << pixels(x) << "\" y=\"" << pixels(y) << '"' << kAnchors[anchor];
  if (!style.empty())
    os_ << " class=\"" << style << '"';
  os_ << '>' << xmlEscaped(text.str());
  if (std::string more = rest.str(); !more.empty())
    os_ << "<tspan class=\"p\" xml:space=\"preserve\">" << xmlEscaped(more) << "</tspan>";
  os_ << "</text>\n";
}

void SvgWriter::addTo(std::string &shapes, double x0, double y0, double x1, double y1) {
  shapes += "M" + pixels(x0) + " " + pixels(y0) + "H" + pixels(x1) + "V" + pixels(y1) + "H" +
            pixels(x0) + "z";
}

} // namespace shardc::map
