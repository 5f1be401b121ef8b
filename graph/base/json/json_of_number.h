// Numbers in JSON.
#ifndef HALFTONE_GRAPH_BASE_JSON_JSON_OF_NUMBER_H_
#define HALFTONE_GRAPH_BASE_JSON_JSON_OF_NUMBER_H_

#include <cmath>

#include "graph/base/text.h"
#include "nlohmann/json.hpp"

namespace halftone {

// JSON has no nan or inf: they are strings, "nan", "inf", "-inf".
inline nlohmann::ordered_json JsonOfNumber(double value) {
  if (std::isfinite(value)) return value;
  return ExactDouble(value);
}

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_JSON_JSON_OF_NUMBER_H_
