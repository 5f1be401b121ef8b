#include "runtime/launch/rank_output.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "absl/memory/memory.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "graph/base/display.h"
#include "graph/base/error.h"
#include "graph/base/retry.h"
#include "graph/base/system/system_error.h"

namespace halftone {
namespace runtime {
namespace {

constexpr size_t kTailLines = 12;
constexpr size_t kMaxLine = 64 << 10;  // a longer one is cut in pieces
// For the end of a line of rank 0, which may take its time.
constexpr absl::Duration kPatience = absl::Seconds(1);
constexpr size_t kMaxWaiting = 1 << 20;

// Returns why not all was written: errno, or 0.
int WriteAll(int fd, absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n >= 0) {
      bytes.remove_prefix(n);
    } else if (errno == EAGAIN) {
      pollfd wait = {fd, POLLOUT, 0};
      poll(&wait, 1, 1000);
    } else if (errno != EINTR) {
      return errno;  // nobody reads any more, or the disk is full: the run
    }                // goes on
  }
  return 0;
}

bool AreOneFile(int a, int b) {
  struct stat of_a, of_b;
  return fstat(a, &of_a) == 0 && fstat(b, &of_b) == 0 &&
         of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
}

}  // namespace

LaunchConsole::LaunchConsole(int out_fd, int err_fd)
    : out_fd_(out_fd),
      err_fd_(err_fd),
      colors_out_(out_fd == STDOUT_FILENO && MayColor(stdout)),
      colors_err_(err_fd == STDERR_FILENO && MayColor(stderr)),
      one_file_(AreOneFile(out_fd, err_fd)) {
  streams_[0].waits = isatty(out_fd) == 0;
  streams_[1].waits = isatty(err_fd) == 0;
}

void LaunchConsole::Raw(bool is_err, absl::string_view bytes) {
  Stream& stream = Of(is_err);
  const size_t end = bytes.find('\n');
  if (!stream.waiting.empty() && end != bytes.npos) {
    Write(is_err, bytes.substr(0, end + 1));
    ShowWaiting(stream);
    bytes.remove_prefix(end + 1);
  }
  Write(is_err, bytes);
}

void LaunchConsole::Write(bool is_err, absl::string_view bytes) {
  if (bytes.empty()) return;
  Of(is_err).at_line_start = bytes.back() == '\n';
  const int failed = WriteAll(is_err ? err_fd_ : out_fd_, bytes);
  // Who closes a pipe wants no more; a full disk is another matter.
  if (!is_err && failed != 0 && failed != EPIPE) out_errno_ = failed;
}

void LaunchConsole::Line(bool is_err, absl::string_view line) {
  Stream& stream = Of(is_err);
  if (stream.at_line_start || !stream.waits) {
    Write(is_err, absl::StrCat(stream.at_line_start ? "" : "\n", line, "\n"));
    return;
  }
  if (stream.waiting.empty()) stream.due = MonotonicTime::Now() + kPatience;
  stream.waiting.emplace_back(is_err, line);
  stream.waiting_bytes += line.size();
  if (stream.waiting_bytes > kMaxWaiting) ShowWaiting(stream);
}

void LaunchConsole::ShowWaiting(Stream& stream) {
  for (const auto& [is_err, line] : stream.waiting) {
    Write(is_err, absl::StrCat(stream.at_line_start ? "" : "\n", line, "\n"));
  }
  stream.waiting.clear();
  stream.waiting_bytes = 0;
  stream.due = MonotonicTime::InfiniteFuture();
}

void LaunchConsole::ShowWaiting(MonotonicTime now) {
  for (Stream& stream : streams_) {
    if (stream.due <= now) ShowWaiting(stream);
  }
}

MonotonicTime LaunchConsole::due() const {
  return std::min(streams_[0].due, streams_[1].due);
}

void LaunchConsole::Say(bool is_err, absl::string_view line) {
  const std::string shown = Printable(line);
  const bool colors = is_err ? colors_err_ : colors_out_;
  ShowWaiting(Of(is_err));
  Write(is_err, absl::StrCat(Of(is_err).at_line_start ? "" : "\n",
                             colors ? Highlighted(shown) : shown, "\n"));
}

void LaunchConsole::Message(absl::string_view text) {
  Say(true, absl::StrCat("launch   ", text));
}

absl::Status LaunchConsole::CheckOut() const {
  if (out_errno_ == 0) return absl::OkStatus();
  return ModelError("stdout cannot be written: ", std::strerror(out_errno_),
                    "; what was to be shown is lost");
}

bool IsAlarm(absl::string_view line) {
  line = absl::StripLeadingAsciiWhitespace(line);
  // Colours, "[", "***" and the like before the word.
  while (!line.empty() && !absl::ascii_isalpha(line[0])) {
    const size_t end = line[0] == '\x1b' ? line.find('m') : 0;
    line.remove_prefix(end == absl::string_view::npos ? line.size() : end + 1);
  }
  size_t length = 0;
  while (length < line.size() && absl::ascii_isalpha(line[length])) ++length;
  const std::string word = absl::AsciiStrToLower(line.substr(0, length));
  for (absl::string_view alarm : {"error", "warning", "warn", "fatal",
                                  "critical", "traceback", "panic"}) {
    if (word == alarm) return true;
  }
  for (absl::string_view mark :
       {"terminate called", "Sanitizer: ", "Check failed", "Assertion `",
        "FATAL:", ": error:", "Segmentation fault"}) {
    if (absl::StrContains(line, mark)) return true;
  }
  return false;
}

absl::StatusOr<std::unique_ptr<RankOutput>> RankOutput::Open(
    const std::string& path, int rank, bool is_err, Show show,
    LaunchConsole* console) {
  const int flags =
      O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NOFOLLOW | O_CLOEXEC;
  Socket file(Retried([&] { return open(path.c_str(), flags, 0644); }));
  if (!file.open()) {
    constexpr char kTodo[] = "choose another --log-dir";
    if (errno == ELOOP) {
      return ModelError("cannot write ", path,
                        ": it is a link, which is not followed; ", kTodo);
    }
    return SystemError(ExitCode::kModel, errno,
                       absl::StrCat("cannot write ", path), kTodo);
  }
  return absl::WrapUnique(
      new RankOutput(path, std::move(file), rank, is_err, show, console));
}

RankOutput::RankOutput(const std::string& path, Socket file, int rank,
                       bool is_err, Show show, LaunchConsole* console)
    : path_(path),
      file_(std::move(file)),
      rank_(rank),
      is_err_(is_err),
      show_(show),
      console_(console) {}

bool RankOutput::Pump(int from) {
  char buffer[16384];
  // A rank that prints without end must not keep the others waiting.
  for (int round = 0; round < 16; ++round) {
    const ssize_t n = read(from, buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN;
    if (n == 0) return false;
    Take(absl::string_view(buffer, n));
  }
  return true;
}

void RankOutput::Take(absl::string_view bytes) {
  WriteAll(file_.fd(), bytes);
  if (show_ == Show::kAll) console_->Raw(is_err_, bytes);
  for (char c : bytes) {
    if (c == '\n' || line_.size() >= kMaxLine) TakeLine();
    if (c == '\r') {
      line_.clear();  // what a terminal would show is what comes after
    } else if (c != '\n') {
      line_.push_back(c);
    }
  }
}

void RankOutput::TakeLine() {
  const bool shown =
      show_ == Show::kTee || (show_ == Show::kAlarms && IsAlarm(line_));
  if (shown) {
    console_->Line(is_err_, absl::StrCat("[", rank_, "] ", line_));
  }
  tail_.push_back(line_);
  if (tail_.size() > kTailLines) tail_.pop_front();
  line_.clear();
}

void RankOutput::Finish() {
  if (!line_.empty()) TakeLine();
}

}  // namespace runtime
}  // namespace halftone
