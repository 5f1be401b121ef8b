// Fields of protobuf messages, appended by number: for the few of TensorFlow's
// that TensorBoard reads. Field numbers up to 15, so that a key is one byte.
#ifndef HALFTONE_RUNTIME_LOG_PROTO_WRITER_H_
#define HALFTONE_RUNTIME_LOG_PROTO_WRITER_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace halftone {
namespace runtime {

template <typename T>
void AppendRaw(std::string* out, T value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

inline void AppendVarint(std::string* out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out->push_back(char(value | 0x80));
  out->push_back(static_cast<char>(value));
}

// A varint field: an integer, a bool or an enum.
inline void AppendNumber(std::string* out, int field, int64_t value) {
  out->push_back(static_cast<char>(field << 3 | 0));
  AppendVarint(out, static_cast<uint64_t>(value));
}

inline void AppendDouble(std::string* out, int field, double value) {
  out->push_back(static_cast<char>(field << 3 | 1));
  AppendRaw(out, value);
}

inline void AppendFloat(std::string* out, int field, float value) {
  out->push_back(static_cast<char>(field << 3 | 5));
  AppendRaw(out, value);
}

// A string, bytes or a message.
inline void AppendBytes(std::string* out, int field, absl::string_view bytes) {
  out->push_back(static_cast<char>(field << 3 | 2));
  AppendVarint(out, bytes.size());
  absl::StrAppend(out, bytes);
}

// A packed field.
inline void AppendDoubles(std::string* out, int field,
                          absl::Span<const double> values) {
  AppendBytes(out, field,
              absl::string_view(reinterpret_cast<const char*>(values.data()),
                                values.size() * sizeof(double)));
}

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_LOG_PROTO_WRITER_H_
