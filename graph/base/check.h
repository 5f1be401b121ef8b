// CHECKs are for Halftone's own bugs alone; what a user, file, peer or driver
// can cause is an absl::Status (error.h).
#ifndef HALFTONE_GRAPH_BASE_CHECK_H_
#define HALFTONE_GRAPH_BASE_CHECK_H_

#include <cstdlib>

#include "absl/base/internal/raw_logging.h"
#include "absl/base/optimization.h"

// Aborts with the condition and `message` (a C string) if it does not hold.
#define HT_CHECK(condition, message)                       \
  do {                                                     \
    if (ABSL_PREDICT_FALSE(!(condition))) {                \
      ABSL_RAW_LOG(FATAL, "%s: %s", #condition, message);  \
      std::abort(); /* done, but the compiler must know */ \
    }                                                      \
  } while (false)

#endif  // HALFTONE_GRAPH_BASE_CHECK_H_
