// SPDX-License-Identifier: Apache-2.0
// The plan file: what Plan.h says, byte for byte.
#include "ir/base/Error.h"
#include "ir/base/File.h"
#include "ir/plan/Plan.h"
#include "ir/plan/Text.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

using namespace llvm;

namespace shardc {
namespace {

constexpr StringLiteral kMagic = "SHARDCPL";
constexpr size_t kHeaderBytes = 8 + 4 + 8, kChecksumBytes = 32;
constexpr uint64_t kMaxFileBytes = uint64_t(1) << 30;
/// Plan > Program > Command > Attr > Ints is the deepest nesting.
constexpr int kMaxNesting = 8;

Error damaged(StringRef place, const Twine &what) {
  return userError(place + ": not a sound plan: " + what,
                   "compile the model again, or copy the file again");
}

} // namespace

std::string serializePlan(const plan::Plan &plan) {
  std::string body;
  {
    google::protobuf::io::StringOutputStream stream(&body);
    google::protobuf::io::CodedOutputStream coded(&stream);
    coded.SetSerializationDeterministic(true);
    plan.SerializeToCodedStream(&coded);
  }
  char header[12];
  support::endian::write32le(header, kPlanVersion);
  support::endian::write64le(header + 4, body.size());
  std::string bytes = (kMagic + StringRef(header, sizeof header) + body).str();
  SHA256 hash;
  hash.update(bytes);
  auto sum = hash.final();
  bytes.append(sum.begin(), sum.end());
  return bytes;
}

Error writePlan(const plan::Plan &plan, StringRef path) {
  if (plan.ByteSizeLong() > kMaxFileBytes - kHeaderBytes - kChecksumBytes) {
    uint64_t constants = 0;
    for (const plan::ConstantData &constant : plan.constants())
      constants += constant.data().size();
    return userError(path + ": the plan is too large for a file: got " + bytesText(plan.ByteSizeLong()) + ", of them " +
                         bytesText(constants) + " of constants, wanted at most " + bytesText(kMaxFileBytes),
                     "a smaller batch or shorter sequences: --batch, --dim");
  }
  return writeFileAtomically(path, [&](raw_ostream &os) {
    os << serializePlan(plan);
    return Error::success();
  });
}

Expected<plan::Plan> parsePlan(StringRef bytes, StringRef place) {
  if (!bytes.starts_with(kMagic)) // deserves a better word than a wrong checksum
    return userError(place + ": not a plan file: got other first bytes, wanted SHARDCPL", "shardc MODEL.onnx -o FILE.plan makes one");
  if (bytes.size() < kHeaderBytes + kChecksumBytes)
    return damaged(place, "truncated: got " + Twine(bytes.size()) + " bytes");
  if (bytes.size() > kMaxFileBytes)
    return damaged(place, "too large: got " + Twine(bytes.size()) + " bytes, wanted at most " +
                              Twine(kMaxFileBytes));
  StringRef covered = bytes.drop_back(kChecksumBytes);
  SHA256 hash;
  hash.update(covered);
  auto sum = hash.final();
  if (StringRef(reinterpret_cast<const char *>(sum.data()), sum.size()) !=
      bytes.take_back(kChecksumBytes))
    return damaged(place, "the checksum is wrong: truncated or damaged");
  uint32_t version = support::endian::read32le(bytes.data() + 8);
  if (version != kPlanVersion)
    return userError(place + ": plan of another version: got " + Twine(version) + ", wanted " +
                         Twine(kPlanVersion),
                     "compile the model again with this shardc");
  StringRef body = covered.drop_front(kHeaderBytes);
  uint64_t length = support::endian::read64le(bytes.data() + 12);
  if (length != body.size())
    return damaged(place, "length: got " + Twine(body.size()) + " bytes, wanted " + Twine(length));

  plan::Plan plan;
  google::protobuf::LogSilencer quiet; // our error says it
  google::protobuf::io::CodedInputStream stream(reinterpret_cast<const uint8_t *>(body.data()),
                                                int(body.size()));
  stream.SetRecursionLimit(kMaxNesting);
  if (!plan.ParseFromCodedStream(&stream) || !stream.ConsumedEntireMessage())
    return damaged(place, "cannot be decoded");
  if (plan.version() != version)
    return damaged(place, "version: got " + Twine(plan.version()) + ", wanted " + Twine(version));
  if (Error error = checkPlan(plan))
    return damaged(place, toString(std::move(error)));
  return plan;
}

Expected<plan::Plan> readPlan(StringRef path) {
  auto buffer = readFile(path, kMaxFileBytes);
  if (!buffer)
    return buffer.takeError();
  return parsePlan((*buffer)->getBuffer(), path);
}

} // namespace shardc
