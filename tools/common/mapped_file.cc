#include "tools/common/mapped_file.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "graph/base/error.h"
#include "runtime/data/data_file.h"

namespace halftone {
namespace tools {

MappedFile::~MappedFile() {
  munmap(const_cast<char*>(bytes_.data()), bytes_.size());
}

absl::StatusOr<std::unique_ptr<MappedFile>> MappedFile::Open(
    const std::string& path) {
  HT_ASSIGN_OR_RETURN(const auto file, runtime::DataFile::Open(path));
  void* const at =
      mmap(nullptr, file->size(), PROT_READ, MAP_SHARED, file->descriptor(), 0);
  if (at == MAP_FAILED) {
    return ModelError(path, ": cannot be mapped: ", std::strerror(errno));
  }
  return std::unique_ptr<MappedFile>(new MappedFile(
      absl::string_view(static_cast<const char*>(at), file->size())));
}

}  // namespace tools
}  // namespace halftone
