#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "runtime/data/dataset.h"
#include "runtime/data/npy_file.h"
#include "runtime/data/npz.h"
#include "runtime/data/zip_archive.h"

namespace halftone {
namespace runtime {
namespace {

// The dtype whose elements these are, or the nearest that holds them.
DType DTypeOf(const NpyArray& array) {
  const auto is = [&array](char kind, int size) {
    return array.kind == kind && array.item_size == size;
  };
  if (array.kind == 'b') return DType::kBool;
  if (is('f', 2)) return DType::kF16;
  if (is('f', 4)) return DType::kF32;
  if (array.kind == 'f') return DType::kF64;
  if (is('u', 1)) return DType::kU8;
  return is('i', 4) ? DType::kI32 : DType::kI64;
}

}  // namespace

absl::StatusOr<std::vector<NpzArray>> ParseNpz(absl::string_view content,
                                               absl::string_view file) {
  HT_ASSIGN_OR_RETURN(const ZipArchive archive,
                      ZipArchive::Parse(content, file));
  std::vector<NpzArray> arrays;
  for (const ZipArchive::Member& member : archive.members()) {
    NpzArray made;
    made.name = std::string(absl::StripSuffix(member.name, ".npy"));
    const std::string place = absl::StrCat(file, ": ", made.name);
    std::string unpacked, note;
    HT_ASSIGN_OR_RETURN(const absl::string_view npy,
                        archive.Read(member, kMaxUnpack, &unpacked));
    HT_ASSIGN_OR_RETURN(const NpyArray array, ParseNpy(npy, place));
    made.dtype = DTypeOf(array);
    made.dims = array.dims;
    std::string converted;
    HT_ASSIGN_OR_RETURN(const absl::string_view bytes,
                        ElementsAs(array, made.dtype, &converted, &note));
    made.bytes = std::string(bytes);
    arrays.push_back(std::move(made));
  }
  return arrays;
}

}  // namespace runtime
}  // namespace halftone
