#include "runtime/log/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/retry.h"
#include "graph/base/system/system_error.h"

namespace halftone {
namespace runtime {
namespace {

constexpr size_t kMaxPending = 16 << 20;

// CRC-32C (Castagnoli), reflected polynomial 0x82f63b78; RFC 3720, B.4.
std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table;
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) {
      crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
    }
    table[i] = crc;
  }
  return table;
}

// As records hold it: rotated and offset, so that the CRC of bytes that
// contain a CRC is no special case.
uint32_t MaskedCrc(absl::string_view bytes) {
  static const std::array<uint32_t, 256> table = MakeTable();
  uint32_t crc = 0xffffffff;
  for (const char c : bytes) {
    crc = table[(crc ^ static_cast<uint8_t>(c)) & 0xff] ^ (crc >> 8);
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

template <typename T>
void AppendRaw(std::string* out, T value) {
  out->append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void AppendVarint(std::string* out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out->push_back(char(value | 0x80));
  out->push_back(static_cast<char>(value));
}

// Field numbers and wire types of tensorflow.Event and tensorflow.Summary.
constexpr char kWallTime = 1 << 3 | 1;     // double
constexpr char kStep = 2 << 3 | 0;         // varint
constexpr char kFileVersion = 3 << 3 | 2;  // string
constexpr char kSummary = 5 << 3 | 2;      // message
constexpr char kValue = 1 << 3 | 2;        // of Summary, message
constexpr char kTag = 1 << 3 | 2;          // of Value, string
constexpr char kSimpleValue = 2 << 3 | 5;  // of Value, float
constexpr char kTensor = 8 << 3 | 2;       // of Value, message
constexpr char kMetadata = 9 << 3 | 2;     // of Value, message
constexpr char kDtype = 1 << 3 | 0;        // of Tensor, varint
constexpr char kStringVal = 8 << 3 | 2;    // of Tensor, bytes
constexpr char kPlugin = 1 << 3 | 2;       // of Metadata, message
constexpr char kPluginName = 1 << 3 | 2;   // of Plugin, string
constexpr char kDtString = 7;

void AppendField(std::string* out, char key, absl::string_view bytes) {
  out->push_back(key);
  AppendVarint(out, bytes.size());
  absl::StrAppend(out, bytes);
}

std::string EventAt(int64_t step) {
  std::string event(1, kWallTime);
  AppendRaw(&event, absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()));
  if (step != 0) {  // as in every proto3 message, 0 is left out
    event.push_back(kStep);
    AppendVarint(&event, static_cast<uint64_t>(step));
  }
  return event;
}

void AppendRecord(std::string* out, absl::string_view event) {
  std::string length;
  AppendRaw(&length, uint64_t{event.size()});
  absl::StrAppend(out, length);
  AppendRaw(out, MaskedCrc(length));
  absl::StrAppend(out, event);
  AppendRaw(out, MaskedCrc(event));
}

}  // namespace

EventFile::EventFile(std::string path, int fd)
    : path_(std::move(path)), fd_(fd) {
  std::string event = EventAt(0);
  AppendField(&event, kFileVersion, "brain.Event:2");
  AppendRecord(&buffer_, event);
}

EventFile::~EventFile() { close(fd_); }

absl::StatusOr<std::unique_ptr<EventFile>> EventFile::Create(
    const std::string& directory) {
  HT_RETURN_IF_ERROR(MakeDirectories(directory));
  char host[256] = "localhost";
  gethostname(host, sizeof(host) - 1);
  // TensorBoard orders files of one directory by name: resumed runs write one
  // each, and two within a second must not share one.
  for (int64_t second = absl::ToUnixSeconds(absl::Now());; ++second) {
    const std::string path =
        absl::StrCat(directory, "/events.out.tfevents.", second, ".", host);
    const int fd = Retried([&] {
      return open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    });
    if (fd >= 0) return absl::WrapUnique(new EventFile(path, fd));
    if (errno == EEXIST) continue;
    return SystemError(ExitCode::kModel, errno,
                       absl::StrCat(path, ": cannot be written"));
  }
}

void EventFile::AddScalar(absl::string_view tag, int64_t step, float value) {
  if (buffer_.size() > kMaxPending) return;
  std::string summary_value;
  AppendField(&summary_value, kTag, tag);
  summary_value.push_back(kSimpleValue);
  AppendRaw(&summary_value, value);
  Add(step, summary_value);
}

// As its text plugin reads it: a tensor of one string, of no dims.
void EventFile::AddText(absl::string_view tag, int64_t step,
                        absl::string_view text) {
  if (buffer_.size() > kMaxPending) return;
  std::string plugin, metadata, tensor, value;
  AppendField(&plugin, kPluginName, "text");
  AppendField(&metadata, kPlugin, plugin);
  tensor.push_back(kDtype);
  tensor.push_back(kDtString);
  AppendField(&tensor, kStringVal, text);
  AppendField(&value, kTag, tag);
  AppendField(&value, kTensor, tensor);
  AppendField(&value, kMetadata, metadata);
  Add(step, value);
}

void EventFile::Add(int64_t step, absl::string_view value) {
  std::string summary;
  AppendField(&summary, kValue, value);
  std::string event = EventAt(step);
  AppendField(&event, kSummary, summary);
  AppendRecord(&buffer_, event);
}

absl::Status EventFile::Flush() {
  size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t n = write(fd_, buffer_.data() + done, buffer_.size() - done);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += n;
  }
  buffer_.erase(0, done);
  if (buffer_.empty()) return absl::OkStatus();
  return SystemError(ExitCode::kModel, errno,
                     absl::StrCat(path_, ": cannot be written"));
}

}  // namespace runtime
}  // namespace halftone
