// What a program does about a bug of its own that HT_CHECK (check.h) has met,
// before it aborts.
#ifndef HALFTONE_GRAPH_BASE_FAILED_CHECK_H_
#define HALFTONE_GRAPH_BASE_FAILED_CHECK_H_

#include <functional>
#include <string>

namespace halftone {

// While it lives, an HT_CHECK that fails on this thread calls `act` with
// "file.cc:12: condition: message"; if that returns, the process aborts as it
// would without. Of several the innermost is called. A check that fails within
// `act` aborts at once.
class OnFailedCheck {
 public:
  explicit OnFailedCheck(std::function<void(const std::string& what)> act);
  ~OnFailedCheck();
  OnFailedCheck(const OnFailedCheck&) = delete;
  OnFailedCheck& operator=(const OnFailedCheck&) = delete;

 private:
  static void Act(const char* file, int line, const char* begin,
                  const char* prefix_end, const char* end);

  std::function<void(const std::string&)> act_;
  OnFailedCheck* const outer_;
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_FAILED_CHECK_H_
