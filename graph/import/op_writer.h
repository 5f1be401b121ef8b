// Ops of ours on their way into a model, whichever front end writes them.
#ifndef HALFTONE_GRAPH_IMPORT_OP_WRITER_H_
#define HALFTONE_GRAPH_IMPORT_OP_WRITER_H_

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "graph/ir/attr.h"
#include "graph/ir/type.h"

namespace halftone {

// Numbers of places are computed in f32: so many can be told apart.
inline constexpr int64_t kMostPlaces = int64_t{1} << 24;

class OpWriter {
 public:
  // A slot that stands there twice has a list.
  using Slots = std::initializer_list<std::pair<const char*, std::string>>;
  using Attrs = std::initializer_list<std::pair<const char*, AttrValue>>;

  virtual ~OpWriter() = default;
  // Adds an op and returns the name of its first result.
  virtual std::string Add(const char* type, Slots in, Attrs attrs = {}) = 0;

  // Its value in dims, of which one may be unknown here.
  virtual std::string Reshaped(const std::string& value, const Dims& dims) = 0;

  std::string Of(const char* type, const std::string& x) {
    return Add(type, {{"X", x}});
  }
  // X and Y; what is written within the braces is written in that order.
  std::string Binary(const char* type, const std::array<std::string, 2>& xy) {
    return Add(type, {{"X", xy[0]}, {"Y", xy[1]}});
  }
  // factor * X + bias.
  std::string Scaled(const std::string& x, double factor, double bias = 0) {
    return Add("scale", {{"X", x}}, {{"scale", factor}, {"bias", bias}});
  }
  // x and, where `ids` name its slices along an axis, sums of `updates`.
  std::string AddedAt(const std::string& x, const std::string& ids,
                      const std::string& updates, int64_t axis = 0) {
    const std::string none = Of("fill_zeros_like", x);
    const std::string sums =
        Add("scatter", {{"X", none}, {"Ids", ids}, {"Updates", updates}},
            {{"axis", axis}, {"overwrite", false}});
    return Binary("elementwise_add", {x, sums});
  }
  // A scalar.
  std::string Number(double value) {
    return Add("fill_constant", {}, {{"value", value}});
  }
};

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IMPORT_OP_WRITER_H_
