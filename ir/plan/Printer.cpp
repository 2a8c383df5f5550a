// SPDX-License-Identifier: Apache-2.0
// The text form of a plan: spaces, buffers with addresses and half-open lifetimes, tables, commands.
//   %5.w+256+rank*1024#2:f32[256]   an operand: buffer, bytes from its start, the rank's slice, which
//                                   content (Ref.version), type
//   wait e3(by 12)                  on the event that the command at position 12 signals
#include "ir/base/Tensor.h"
#include "ir/plan/Plan.h"
#include "ir/plan/Text.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

using namespace llvm;

namespace shardc {
namespace {

class Printer {
public:
  Printer(const plan::Plan &plan, raw_ostream &os) : plan_(plan), os_(os) {}

  void print() {
    os_ << "plan v" << plan_.version() << " ranks=" << plan_.ranks() << " zero=" << plan_.zero()
        << " batch=" << plan_.batch() << " accumulate=" << plan_.accumulate() << "\n";
    os_ << "model " << quoted(plan_.model().path()) << " opset=" << plan_.model().opset()
        << " hash=" << printable(plan_.model().hash()) << "\n";
    os_ << "options";
    printAttrs(plan_.options());
    os_ << "\n\n";
    for (int s = 0; s < plan_.spaces_size(); ++s)
      printSpace(s);
    for (int b = 0; b < plan_.buffers_size(); ++b)
      printBuffer(b);
    printTables();
    uint64_t position = 0;
    for (const plan::Program &program : plan_.programs())
      for (const plan::Command &command : program.commands()) {
        for (uint32_t event : command.signals())
          signallers_[event] = position;
        ++position;
      }
    position = 0;
    for (const plan::Program &program : plan_.programs()) {
      os_ << "\nprogram " << printable(program.name()) << " {\n";
      for (const plan::Command &command : program.commands())
        printCommand(command, position++);
      os_ << "}\n";
    }
  }

private:
  static std::string quoted(StringRef text) { return "\"" + printable(text) + "\""; }

  std::string bufferName(uint32_t b) const {
    return "%" + utostr(b) + "." + printable(plan_.buffers(b).name());
  }

  void printSpace(int index) {
    const plan::Space &space = plan_.spaces(index);
    os_ << "space " << index << ' ' << kindName(space.kind()) << " bytes=" << space.bytes()
        << " lower_bound=" << space.lower_bound();
    if (!space.method().empty())
      os_ << " method=" << quoted(space.method());
    os_ << "\n";
    for (const plan::Region &r : space.regions())
      os_ << "region s" << index << '[' << r.offset() << ", " << r.offset() + r.bytes() << ") " << quoted(r.name())
          << " lower_bound=" << r.lower_bound() << "\n";
  }

  void printBuffer(int index) {
    const plan::Buffer &b = plan_.buffers(index);
    os_ << "buffer " << left_justify(bufferName(index), 32) << " s" << b.space() << '['
        << b.offset() << ", " << b.offset() + b.bytes() << ") ";
    if (b.persistent())
      os_ << "persistent";
    else
      os_ << "live[" << b.first() << ", " << b.last() << ')';
    os_ << ' ' << kindName(b.kind());
    if (b.layer())
      os_ << " layer=" << quoted(plan_.strings(b.layer()));
    os_ << "\n";
  }

  void printTables() {
    for (const plan::Bucket &b : plan_.buckets()) {
      os_ << "bucket " << quoted(b.name()) << ' ' << toString(DType(b.dtype())) << '['
          << b.elements() << "] decay=[0, " << b.decay_end()
          << ")";
      if (b.parameter_buffer() >= 0)
        os_ << " parameters=" << bufferName(b.parameter_buffer());
      if (b.has_master_buffer())
        os_ << " master=" << bufferName(b.master_buffer());
      if (b.gradient_buffer() >= 0)
        os_ << " gradients=" << bufferName(b.gradient_buffer());
      if (b.has_gradient_dtype())
        os_ << ':' << toString(DType(b.gradient_dtype()));
      for (uint32_t state : b.state_buffers())
        os_ << " state=" << bufferName(state);
      os_ << "\n";
    }
    for (const plan::Parameter &p : plan_.parameters()) {
      os_ << "parameter " << quoted(p.name()) << ' ' << typeText(p.dtype(), p.dims())
          << " bucket=" << p.bucket() << '+' << p.offset();
      if (!p.trainable())
        os_ << " frozen";
      for (const std::string &tie : p.ties())
        os_ << " tie=" << quoted(tie);
      const plan::ValueSource &s = p.source();
      if (s.kind() == plan::ValueSource::FILE)
        os_ << " file=" << quoted(s.file()) << '[' << s.offset() << ", " << s.offset() + s.length()
            << ')' << (s.transposed() ? " transposed" : "");
      else
        os_ << (s.kind() == plan::ValueSource::ZERO ? " zero" : " absent");
      os_ << "\n";
    }
    for (const plan::Input &i : plan_.inputs()) {
      os_ << "input " << quoted(i.name()) << ' ' << typeText(i.dtype(), i.dims()) << ' '
          << bufferName(i.buffer());
      if (i.low() < i.high())
        os_ << " values=[" << i.low() << ", " << i.high() << ')';
      if (i.has_ignore())
        os_ << " ignore=" << i.ignore();
      os_ << "\n";
    }
    for (const plan::Output &o : plan_.outputs()) {
      os_ << "output " << printable(o.program()) << ' ' << quoted(o.name()) << ' ';
      printRef(o.ref());
      os_ << "\n";
    }
  }

  void printAttrs(const google::protobuf::RepeatedPtrField<plan::Attr> &attrs) {
    for (const plan::Attr &a : attrs) {
      os_ << ' ' << printable(a.name()) << '=';
      switch (a.value_case()) {
      case plan::Attr::kI:
        os_ << a.i();
        break;
      case plan::Attr::kF:
        os_ << formatDouble(a.f());
        break;
      case plan::Attr::kS:
        os_ << quoted(a.s());
        break;
      case plan::Attr::kInts: {
        os_ << '[';
        for (int i = 0; i < a.ints().v_size(); ++i)
          os_ << (i ? "," : "") << a.ints().v(i);
        os_ << ']';
        break;
      }
      case plan::Attr::VALUE_NOT_SET:
        break;
      }
    }
  }

  void printRef(const plan::Ref &ref) {
    if (ref.absent()) {
      os_ << '_';
      return;
    }
    os_ << bufferName(ref.buffer());
    if (ref.offset())
      os_ << '+' << ref.offset();
    if (ref.rank_stride())
      os_ << "+rank*" << ref.rank_stride();
    if (ref.version())
      os_ << '#' << ref.version();
    os_ << ':' << typeText(ref.dtype(), ref.dims());
    if (ref.strides_size()) {
      os_ << '{';
      for (int i = 0; i < ref.strides_size(); ++i)
        os_ << (i ? "," : "") << ref.strides(i);
      os_ << '}';
    }
  }

  void printList(const google::protobuf::RepeatedPtrField<plan::Ref> &refs) {
    for (int i = 0; i < refs.size(); ++i) {
      os_ << (i ? ", " : "");
      printRef(refs[i]);
    }
  }

  void printCommand(const plan::Command &c, uint64_t position) {
    os_ << format_decimal(int64_t(position), 5) << ' '
        << left_justify(streamName(c.stream()), 7) << ' ' << left_justify(printable(c.kernel()), 16) << ' ';
    printList(c.inputs());
    if (c.outputs_size())
      os_ << (c.inputs_size() ? " -> " : "-> ");
    printList(c.outputs());
    if (c.has_workspace() && !c.workspace().absent()) {
      os_ << " work ";
      printRef(c.workspace());
    }
    printAttrs(c.attrs());
    for (int i = 0; i < c.in_place_size(); ++i)
      if (c.in_place(i))
        os_ << " over=" << i << ':' << c.in_place(i) - 1;
    if (c.communicator())
      os_ << " communicator=" << c.communicator();
    for (uint32_t event : c.waits()) {
      os_ << " wait e" << event;
      if (auto from = signallers_.find(event); from != signallers_.end())
        os_ << "(by " << from->second << ')';
    }
    for (uint32_t event : c.signals())
      os_ << " signal e" << event;
    if (c.layer())
      os_ << " layer=" << quoted(plan_.strings(c.layer()));
    if (c.place())
      os_ << " @" << quoted(plan_.strings(c.place()));
    os_ << "\n";
  }

  const plan::Plan &plan_;
  raw_ostream &os_;
  DenseMap<uint32_t, uint64_t> signallers_; ///< position of the command by event
};

} // namespace

void printPlan(const plan::Plan &plan, raw_ostream &os) { Printer(plan, os).print(); }

} // namespace shardc
