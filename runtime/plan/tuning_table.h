// What was timed or asked of a library, as data: the chosen candidate per
// bound op, and what the device reaches. A file beside the .htc; the checkpoint
// holds its hash.
#ifndef HALFTONE_RUNTIME_PLAN_TUNING_TABLE_H_
#define HALFTONE_RUNTIME_PLAN_TUNING_TABLE_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "kernels/kernel.h"

namespace halftone {
namespace runtime {

struct TuningEntry {
  std::string candidate;
  int64_t workspace_bytes = 0;
  bool deterministic = true;
};

class TuningTable {
 public:
  // "conv2d(f16)@row_major|f16[32,1,28,28],...|{attrs}": everything that the
  // choice may depend on.
  static std::string KeyOf(const kernels::BoundOp& op);

  const TuningEntry* Find(const std::string& key) const;
  void Set(const std::string& key, TuningEntry entry);
  bool empty() const { return entries_.empty() && rates.memory == 0; }
  const std::map<std::string, TuningEntry>& entries() const { return entries_; }
  std::string device_description;  // what it was tuned on

  // What kernels reached there, per second: bytes read and written, operations
  // of 16-bit and of f32 products. `memory` is 0 where nothing was measured,
  // another where there is no such product. For predictions alone: no choice
  // depends on it.
  struct Rates {
    int64_t memory = 0, low = 0, f32 = 0;
  };
  Rates rates;

  std::string Serialize() const;  // JSON, sorted, one entry per line
  static absl::StatusOr<TuningTable> Parse(absl::string_view content,
                                           absl::string_view file);
  std::string Hash() const;  // 16 hex digits; of the entries

 private:
  std::map<std::string, TuningEntry> entries_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_PLAN_TUNING_TABLE_H_
