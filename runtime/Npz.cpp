// SPDX-License-Identifier: Apache-2.0
#include "runtime/Npz.h"
#include "ir/base/Error.h"
#include "runtime/Npy.h"
#include <cstdlib>
#include <zip.h>

namespace shardc {
namespace {

// Deflate cannot pack better than 1032 to 1; a member that claims more lies, and its memory is not
// asked for.
constexpr uint64_t kMaxDeflateRatio = 1032;

struct CloseZip {
  void operator()(zip_t *zip) const { zip_discard(zip); }
};
struct CloseMember {
  void operator()(zip_file_t *file) const { zip_fclose(file); }
};
struct Free {
  void operator()(void *memory) const { std::free(memory); }
};
using Member = std::unique_ptr<zip_file_t, CloseMember>;

class NpzFile : public ArrayFile {
public:
  llvm::Error read(llvm::StringRef path);
  llvm::Expected<const uint8_t *> data(const FileArray &array) override;

private:
  std::string place(llvm::StringRef name) const { return path_ + "/" + name.str(); }
  llvm::Expected<Member> openMember(uint64_t index, llvm::StringRef name);
  /// Reads exactly `size` bytes.
  llvm::Error readBytes(zip_file_t *file, void *to, uint64_t size, llvm::StringRef name);
  llvm::Error readMember(uint64_t index, std::vector<FileArray> &arrays);

  std::unique_ptr<zip_t, CloseZip> zip_;
  std::vector<std::unique_ptr<uint8_t, Free>>
      unpacked_; // by member index; the whole member, header included
};

llvm::Expected<Member> NpzFile::openMember(uint64_t index, llvm::StringRef name) {
  Member file(zip_fopen_index(zip_.get(), index, 0));
  if (!file)
    return userError(place(name) + ": cannot be read: " + zip_strerror(zip_.get()));
  return file;
}

llvm::Error NpzFile::readBytes(zip_file_t *file, void *to, uint64_t size, llvm::StringRef name) {
  for (uint64_t done = 0; done < size;) {
    zip_int64_t n =
        zip_fread(file, static_cast<char *>(to) + done, std::min<uint64_t>(size - done, 1 << 30));
    if (n <= 0)
      return userError(place(name) +
                       ": cannot be read: " + (n < 0 ? zip_file_strerror(file) : "ends too early"));
    done += n;
  }
  return llvm::Error::success();
}

llvm::Error NpzFile::readMember(uint64_t index, std::vector<FileArray> &arrays) {
  zip_stat_t stat;
  constexpr uint64_t kNeeded =
      ZIP_STAT_NAME | ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD;
  if (zip_stat_index(zip_.get(), index, 0, &stat) != 0 || (stat.valid & kNeeded) != kNeeded)
    return userError(path_ + ": zip directory is damaged: " + zip_strerror(zip_.get()));
  llvm::StringRef name = stat.name;
  if (!name.consume_back(".npy"))
    return llvm::Error::success();
  if (stat.comp_method != ZIP_CM_STORE && stat.comp_method != ZIP_CM_DEFLATE)
    return userError(place(name) + ": unknown compression: got zip method " +
                         llvm::Twine(stat.comp_method) + ", wanted stored or deflated",
                     "write it with numpy.savez or numpy.savez_compressed");
  if (stat.size > stat.comp_size * kMaxDeflateRatio + 4096)
    return userError(place(name) + ": zip directory is damaged: got " + llvm::Twine(stat.size) +
                     " bytes from " + llvm::Twine(stat.comp_size) + " packed ones");

  auto file = openMember(index, name);
  if (!file)
    return file.takeError();
  std::string header(std::min<uint64_t>(kNpyPrelude, stat.size), '\0');
  if (llvm::Error error = readBytes(file->get(), header.data(), header.size(), name))
    return error;
  auto headerSize = npyHeaderSize(header, place(name));
  if (!headerSize)
    return headerSize.takeError();
  if (*headerSize > stat.size)
    return userError(place(name) + ": .npy header is damaged: longer than the array");
  header.resize(*headerSize);
  if (llvm::Error error =
          readBytes(file->get(), header.data() + kNpyPrelude, *headerSize - kNpyPrelude, name))
    return error;

  FileArray array;
  array.name = name.str();
  if (llvm::Error error = parseNpyHeader(header, place(name), array))
    return error;
  array.offset = index;
  array.numBytes = stat.size - *headerSize;
  if (array.dtype) {
    uint64_t wanted = *checkedNumElements(array.dims) * byteSize(*array.dtype);
    if (array.numBytes != wanted)
      return userError(place(name) + ": size does not fit the shape: got " +
                       llvm::Twine(array.numBytes) + " bytes, wanted " + llvm::Twine(wanted) +
                       " for " + array.typeName + " " + formatDims(array.dims));
  }
  arrays.push_back(std::move(array));
  return llvm::Error::success();
}

llvm::Error NpzFile::read(llvm::StringRef path) {
  path_ = path.str();
  int code = 0;
  zip_.reset(zip_open(path_.c_str(), ZIP_RDONLY, &code));
  if (!zip_) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    std::string why = zip_error_strerror(&error);
    zip_error_fini(&error);
    return userError(path_ + ": is no .npz file, or is cut off: " + why,
                     "is the download complete?");
  }
  std::vector<FileArray> arrays;
  zip_int64_t count = zip_get_num_entries(zip_.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i)
    if (llvm::Error error = readMember(i, arrays))
      return error;
  unpacked_.resize(count);
  return setArrays(std::move(arrays));
}

llvm::Expected<const uint8_t *> NpzFile::data(const FileArray &array) {
  zip_stat_t stat;
  if (zip_stat_index(zip_.get(), array.offset, 0, &stat) != 0)
    return userError(place(array.name) + ": cannot be read: " + zip_strerror(zip_.get()));
  std::unique_ptr<uint8_t, Free> &memory = unpacked_[array.offset];
  if (!memory) {
    auto file = openMember(array.offset, array.name);
    if (!file)
      return file.takeError();
    memory.reset(static_cast<uint8_t *>(std::malloc(stat.size)));
    if (!memory)
      return userError(place(array.name) + ": does not fit into memory: got " +
                           llvm::Twine(stat.size) + " bytes",
                       "use a .safetensors file, which is mapped");
    llvm::Error error = readBytes(file->get(), memory.get(), stat.size, array.name);
    char more;
    if (!error &&
        zip_fread(file->get(), &more, 1) != 0) // reading the end makes libzip check the CRC
      error = userError(place(array.name) + ": cannot be read: " + zip_file_strerror(file->get()));
    if (error) {
      memory.reset();
      return error;
    }
  }
  return memory.get() + (stat.size - array.numBytes);
}

} // namespace

llvm::Expected<std::unique_ptr<ArrayFile>> openNpz(llvm::StringRef path) {
  auto file = std::make_unique<NpzFile>();
  if (llvm::Error error = file->read(path))
    return error;
  return file;
}

} // namespace shardc
