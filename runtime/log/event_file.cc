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
#include "runtime/log/proto_writer.h"

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

// Field numbers of tensorflow.Event, SessionLog, Summary, Summary.Value,
// HistogramProto, TensorProto and SummaryMetadata.
enum Event { kWallTime = 1, kStep, kFileVersion, kGraphDef, kSummary };
constexpr int kSessionLog = 7, kStatus = 1, kStart = 1;
constexpr int kValue = 1;
enum Value { kTag = 1, kSimpleValue, kHisto = 5, kTensor = 8, kMetadata };
enum Histo { kMin = 1, kMax, kNum, kSum, kSumSquares, kLimits, kCounts };
constexpr int kDtype = 1, kStringVal = 8, kDtString = 7;
constexpr int kPlugin = 1, kPluginName = 1;

std::string EventAt(int64_t step) {
  std::string event;
  AppendDouble(&event, kWallTime,
               absl::ToDoubleSeconds(absl::Now() - absl::UnixEpoch()));
  // As in every proto3 message, 0 is left out.
  if (step != 0) AppendNumber(&event, kStep, step);
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
  AppendBytes(&event, kFileVersion, "brain.Event:2");
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
  std::string summary_value;
  AppendBytes(&summary_value, kTag, tag);
  AppendFloat(&summary_value, kSimpleValue, value);
  Add(step, summary_value);
}

void EventFile::AddHistogram(absl::string_view tag, int64_t step,
                             const EventHistogram& histogram) {
  double num = 0, sum = 0, squares = 0, low = histogram.min;
  for (size_t i = 0; i < histogram.counts.size(); ++i) {
    const double count = histogram.counts[i];
    const double middle = (low + histogram.limits[i]) / 2;
    num += count;
    sum += count * middle;
    squares += count * middle * middle;
    low = histogram.limits[i];
  }
  std::string histo, value;
  AppendDouble(&histo, kMin, histogram.min);
  AppendDouble(&histo, kMax, histogram.max);
  AppendDouble(&histo, kNum, num);
  AppendDouble(&histo, kSum, sum);
  AppendDouble(&histo, kSumSquares, squares);
  AppendDoubles(&histo, kLimits, histogram.limits);
  AppendDoubles(&histo, kCounts, histogram.counts);
  AppendBytes(&value, kTag, tag);
  AppendBytes(&value, kHisto, histo);
  Add(step, value);
}

// As its text plugin reads it: a tensor of one string, of no dims.
void EventFile::AddText(absl::string_view tag, int64_t step,
                        absl::string_view text) {
  std::string plugin, metadata, tensor, value;
  AppendBytes(&plugin, kPluginName, "text");
  AppendBytes(&metadata, kPlugin, plugin);
  AppendNumber(&tensor, kDtype, kDtString);
  AppendBytes(&tensor, kStringVal, text);
  AppendBytes(&value, kTag, tag);
  AppendBytes(&value, kTensor, tensor);
  AppendBytes(&value, kMetadata, metadata);
  Add(step, value);
}

void EventFile::AddGraph(absl::string_view graph_def) {
  if (buffer_.size() > kMaxPending) return;
  std::string event = EventAt(0);
  AppendBytes(&event, kGraphDef, graph_def);
  AppendRecord(&buffer_, event);
}

// TensorBoard drops those events when it comes to a SessionLog that starts.
void EventFile::AddRestart(int64_t step) {
  std::string log, event = EventAt(step);
  AppendNumber(&log, kStatus, kStart);
  AppendBytes(&event, kSessionLog, log);
  AppendRecord(&buffer_, event);
}

void EventFile::Add(int64_t step, absl::string_view value) {
  if (buffer_.size() > kMaxPending) return;
  std::string summary;
  AppendBytes(&summary, kValue, value);
  std::string event = EventAt(step);
  AppendBytes(&event, kSummary, summary);
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
