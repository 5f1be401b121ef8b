// The run's shared secret. It travels by the environment or by a file that
// only its owner can read, never on a command line.
#ifndef HALFTONE_RUNTIME_RENDEZVOUS_TOKEN_H_
#define HALFTONE_RUNTIME_RENDEZVOUS_TOKEN_H_

#include <string>

#include "absl/status/statusor.h"
#include "runtime/rendezvous/environment.h"

namespace halftone {
namespace runtime {

// 32 random hexadecimal digits.
std::string NewToken();

// The content of a token file without white space at the ends. An error
// (kUsage) if others can read it, or it is empty.
absl::StatusOr<std::string> ReadTokenFile(const std::string& path);

// HALFTONE_TOKEN, else the file that HALFTONE_TOKEN_FILE names, else empty.
absl::StatusOr<std::string> FindToken(const Environment& env);

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_RENDEZVOUS_TOKEN_H_
