#include "runtime/collective/gloo_store.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "gloo/common/error.h"

namespace halftone {
namespace runtime {
namespace {

std::string Prefixed(const std::string& key) {
  return absl::StrCat("gloo/", key);
}

void ThrowIfError(const absl::Status& status) {
  if (!status.ok()) throw gloo::IoException(std::string(status.message()));
}

}  // namespace

void GlooStore::set(const std::string& key, const std::vector<char>& data) {
  ThrowIfError(
      client_.Set(Prefixed(key), absl::string_view(data.data(), data.size())));
}

std::vector<char> GlooStore::get(const std::string& key) {
  const std::string value = Await({key}, timeout_)[0];
  return std::vector<char>(value.begin(), value.end());
}

void GlooStore::wait(const std::vector<std::string>& keys) {
  Await(keys, timeout_);
}

void GlooStore::wait(const std::vector<std::string>& keys,
                     const std::chrono::milliseconds& timeout) {
  Await(keys, absl::FromChrono(timeout));
}

std::vector<std::string> GlooStore::Await(const std::vector<std::string>& keys,
                                          absl::Duration timeout) {
  std::vector<std::string> prefixed;
  for (const std::string& key : keys) prefixed.push_back(Prefixed(key));
  absl::StatusOr<WaitResult> result = client_.Wait(prefixed, timeout);
  ThrowIfError(result.status());
  if (!result->missing.empty()) {
    throw gloo::IoException(
        absl::StrCat("nobody set ", absl::StrJoin(result->missing, ", "),
                     " within ", absl::FormatDuration(timeout)));
  }
  return result->values;
}

}  // namespace runtime
}  // namespace halftone
