// Tar files, for tests.
#ifndef HALFTONE_RUNTIME_DATA_TAR_TESTING_H_
#define HALFTONE_RUNTIME_DATA_TAR_TESTING_H_

#include <string>

namespace halftone {
namespace runtime {

// POSIX ustar, one member; `type`: '0' is a file.
std::string TarMember(const std::string& name, const std::string& content,
                      char type = '0');

// What ends an archive.
std::string TarEnd();

// Headers' checksums as their bytes are now.
void FixTarSums(std::string* archive);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_DATA_TAR_TESTING_H_
