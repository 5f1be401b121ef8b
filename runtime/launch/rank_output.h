// What ranks print: to their log files, and what of it the console shows.
#ifndef HALFTONE_RUNTIME_LAUNCH_RANK_OUTPUT_H_
#define HALFTONE_RUNTIME_LAUNCH_RANK_OUTPUT_H_

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/base/time/monotonic_time.h"
#include "runtime/rendezvous/socket.h"

namespace halftone {
namespace runtime {

// stdout and stderr of the launcher. Whole lines do not land inside a line of
// rank 0 that is not finished: where a terminal shows it, it is ended;
// elsewhere they wait for its end, for a program writes blocks that end
// anywhere there.
class LaunchConsole {
 public:
  LaunchConsole(int out_fd, int err_fd);

  // A program's own output, which is between it and its user: as it comes.
  void Raw(bool is_err, absl::string_view bytes);
  // Of another rank; it waits for up to a second.
  void Line(bool is_err, absl::string_view line);
  // What the launcher says, whoever it quotes: nothing in it that a terminal
  // would obey (graph/base/display.h), and coloured as reports are. At once.
  void Say(bool is_err, absl::string_view line);
  // Says "launch   " and the text, on stderr.
  void Message(absl::string_view text);
  // When lines have waited for long enough.
  MonotonicTime due() const;
  // Shows what has waited until `now`.
  void ShowWaiting(MonotonicTime now);
  // Error (kModel) if what was to be shown on stdout is lost.
  absl::Status CheckOut() const;

 private:
  // A file that is written to, by stdout, stderr or both.
  struct Stream {
    bool waits = false;  // it is no terminal
    bool at_line_start = true;
    std::vector<std::pair<bool, std::string>> waiting;  // is_err, line
    size_t waiting_bytes = 0;
    MonotonicTime due = MonotonicTime::InfiniteFuture();
  };
  Stream& Of(bool is_err) { return streams_[one_file_ || !is_err ? 0 : 1]; }
  void Write(bool is_err, absl::string_view bytes);
  void ShowWaiting(Stream& stream);

  int out_fd_;
  int err_fd_;
  bool colors_out_;
  bool colors_err_;
  bool one_file_;
  Stream streams_[2];
  int out_errno_ = 0;
};

// Whether a line of stderr is a warning or an error: its first word says so, or
// it is what a crash leaves.
bool IsAlarm(absl::string_view line);

// One stream of one rank.
class RankOutput {
 public:
  enum class Show : uint8_t {
    kAll,     // as it comes
    kTee,     // every line, after "[R] "
    kAlarms,  // lines that are alarms, after "[R] "
    kNothing,
  };

  // Writes to a new file `path`.
  static absl::StatusOr<std::unique_ptr<RankOutput>> Open(
      const std::string& path, int rank, bool is_err, Show show,
      LaunchConsole* console);

  // Takes what can be read from `from` now; false at the end of the stream.
  bool Pump(int from);
  // The stream has ended: a last line without an end is a line too.
  void Finish();

  const std::string& path() const { return path_; }
  // The last lines.
  const std::deque<std::string>& tail() const { return tail_; }

 private:
  RankOutput(const std::string& path, Socket file, int rank, bool is_err,
             Show show, LaunchConsole* console);
  void Take(absl::string_view bytes);
  void TakeLine();

  std::string path_;
  Socket file_;
  int rank_;
  bool is_err_;
  Show show_;
  LaunchConsole* console_;
  std::string line_;  // not finished yet
  std::deque<std::string> tail_;
};

}  // namespace runtime
}  // namespace halftone

#endif  // HALFTONE_RUNTIME_LAUNCH_RANK_OUTPUT_H_
