#include "runtime/data/npz.h"

#include <zlib.h>

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "graph/base/check.h"
#include "graph/base/display.h"
#include "graph/base/dtype.h"
#include "graph/base/text.h"

namespace halftone {
namespace runtime {
namespace {

template <typename T>
void Put(T value, std::string* to) {
  to->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

// NumPy's name of a dtype in a file.
std::string Descr(DType dtype) {
  switch (dtype) {
    case DType::kBool:
      return "|b1";
    case DType::kU8:
      return "|u1";
    default:
      HT_CHECK(dtype != DType::kBF16, "NumPy has no bf16");
      return absl::StrCat("<", IsFloat(dtype) ? "f" : "i", SizeOf(dtype));
  }
}

// The .npy format 1.0: magic, version, a padded Python literal, the data.
std::string Npy(const NpzArray& array) {
  std::string header = absl::StrCat("{'descr': '", Descr(array.dtype),
                                    "', 'fortran_order': False, 'shape': (",
                                    absl::StrJoin(array.dims, ", "),
                                    array.dims.size() == 1 ? ",), }" : "), }");
  while ((10 + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string npy("\x93NUMPY\x01\x00", 8);
  Put(static_cast<uint16_t>(header.size()), &npy);
  npy += header;
  npy += array.bytes;
  return npy;
}

constexpr size_t kLongestName = 1000;  // zip has 16 bits for it
constexpr uint16_t kUtf8Names = 0x800;

// A folder or file of a path, so that it means itself; `readable`: all of the
// path is UTF-8 that shows what it is.
std::string Component(absl::string_view name, bool readable) {
  const bool dots = name == "." || name == "..";
  const auto is_plain = [&](char c) {
    return absl::ascii_isascii(c)
               ? absl::ascii_isprint(c) && c != '\\' && c != ':' && c != '%'
               : readable;
  };
  std::string safe;
  for (const char c : name) {
    if (is_plain(c) && !dots) {
      safe.push_back(c);
    } else {
      absl::StrAppendFormat(&safe, "%%%02X", static_cast<unsigned char>(c));
    }
  }
  return safe;
}

// What a local header and a central one have in common.
void PutCommon(absl::string_view name, absl::string_view content,
               std::string* to) {
  Put<uint16_t>(20, to);  // version needed
  const bool ascii = std::all_of(name.begin(), name.end(), absl::ascii_isascii);
  Put<uint16_t>(ascii ? 0 : kUtf8Names, to);
  Put<uint16_t>(0, to);     // stored
  Put<uint16_t>(0, to);     // time
  Put<uint16_t>(0x21, to);  // date: 1980-01-01, so that bytes are stable
  const auto* bytes = reinterpret_cast<const Bytef*>(content.data());
  Put<uint32_t>(crc32(0, bytes, static_cast<uInt>(content.size())), to);
  Put<uint32_t>(content.size(), to);
  Put<uint32_t>(content.size(), to);
  Put<uint16_t>(name.size(), to);
  Put<uint16_t>(0, to);  // extra field
}

}  // namespace

std::string MemberName(absl::string_view name) {
  const bool readable = PrintableName(name) == name;
  std::string safe;
  const std::vector<absl::string_view> parts = absl::StrSplit(name, '/');
  for (size_t i = 0; i < parts.size(); ++i) {
    // A slash that begins or ends the path, or follows another one.
    const bool odd = i > 0 && (parts[i - 1].empty() || parts[i].empty());
    absl::StrAppend(&safe,
                    i == 0 ? ""
                    : odd  ? "%2F"
                           : "/",
                    Component(parts[i], readable));
  }
  if (safe.size() <= kLongestName) return safe;
  return absl::StrCat("long-name-", Hex64(StableHash(name)));
}

NpzArray FloatArray(std::string name, std::vector<int64_t> dims,
                    absl::Span<const float> values) {
  return {std::move(name),
          DType::kF32,
          std::move(dims),
          {reinterpret_cast<const char*>(values.data()),
           values.size() * sizeof(float)}};
}

std::string SerializeNpz(absl::Span<const NpzArray> arrays) {
  std::string file, directory;
  std::set<std::string> names;
  for (const NpzArray& array : arrays) {
    const std::string name = MemberName(array.name) + ".npy";
    if (!names.insert(name).second) continue;
    const std::string content = Npy(array);
    const auto offset = static_cast<uint32_t>(file.size());
    file.append("PK\x03\x04", 4);
    PutCommon(name, content, &file);
    file += name;
    file += content;
    directory.append("PK\x01\x02", 4);
    Put<uint16_t>(20, &directory);  // made by
    PutCommon(name, content, &directory);
    Put<uint16_t>(0, &directory);  // comment
    Put<uint16_t>(0, &directory);  // disk
    Put<uint16_t>(0, &directory);  // internal attributes
    Put<uint32_t>(0, &directory);  // external attributes
    Put<uint32_t>(offset, &directory);
    directory += name;
  }
  const auto begin = static_cast<uint32_t>(file.size());
  file += directory;
  file.append("PK\x05\x06", 4);
  Put<uint32_t>(0, &file);  // disks
  Put<uint16_t>(names.size(), &file);
  Put<uint16_t>(names.size(), &file);
  Put<uint32_t>(directory.size(), &file);
  Put<uint32_t>(begin, &file);
  Put<uint16_t>(0, &file);  // comment
  return file;
}

}  // namespace runtime
}  // namespace halftone
