#include "runtime/rendezvous/token.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/system/system_error.h"
#include "runtime/rendezvous/hmac.h"

namespace halftone {
namespace runtime {
namespace {

constexpr size_t kMaxTokenBytes = 4096;

// Up to the end of the first line.
absl::StatusOr<std::string> ReadTokenLine(int fd) {
  std::string text;
  char c = 0;
  while (text.size() < kMaxTokenBytes) {
    const ssize_t n = read(fd, &c, 1);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0 || c == '\n') break;
    text.push_back(c);
  }
  const std::string token(absl::StripAsciiWhitespace(text));
  if (token.empty()) return UsageError("token: standard input has none");
  return token;
}

}  // namespace

std::string NewToken() { return absl::BytesToHexString(RandomBytes(16)); }

absl::StatusOr<std::string> ReadTokenFile(const std::string& path) {
  if (path == "-") return ReadTokenLine(STDIN_FILENO);
  struct stat info;
  if (stat(path.c_str(), &info) == 0 &&
      ((info.st_mode & 077) != 0 ||
       (info.st_uid != geteuid() && info.st_uid != 0))) {
    return UsageError("token file ", path,
                      ": others can read or own it; chmod 600 it");
  }
  absl::StatusOr<std::string> text = ReadFile(path, kMaxTokenBytes);
  if (!text.ok()) {
    return Reclassified(Annotate(text.status(), "token file"),
                        ExitCode::kUsage);
  }
  const std::string token(absl::StripAsciiWhitespace(*text));
  if (token.empty()) return UsageError("token file ", path, " is empty");
  return token;
}

absl::StatusOr<std::string> FindToken(const Environment& env) {
  auto token = env.find(kTokenVariable);
  if (token != env.end() && !token->second.empty()) return token->second;
  auto file = env.find(kTokenFileVariable);
  if (file != env.end() && !file->second.empty()) {
    return ReadTokenFile(file->second);
  }
  return std::string();
}

}  // namespace runtime
}  // namespace halftone
