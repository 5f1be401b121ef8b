// What ranks send each other their parts through, as data: for times that are
// predicted (`plan --timeline`). Apart from target.h, which kernels are
// compiled with.
#ifndef HALFTONE_GRAPH_TARGETS_LINKS_H_
#define HALFTONE_GRAPH_TARGETS_LINKS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "graph/targets/target.h"

namespace halftone {

// A collective over it takes `start`, `latency` for each step of its ring or
// tree and the bytes that a rank sends over `bandwidth`. Inside a machine it is
// a rank's own, between machines that of all adapters of one.
struct Link {
  std::string name;
  double bandwidth = 0;  // bytes per second each way, as collectives reach
  double start = 0;      // seconds
  double latency = 0;    // seconds
  // What small ones are sent by, of `quick_share` of the bandwidth; 0: nothing.
  double quick_start = 0, quick_latency = 0, quick_share = 0;
  std::string text;      // what it is, for people
  bool network = false;  // from machine to machine
};

// Those of the targets' records, of networks, and of CPU ranks of one machine.
const std::vector<Link>& Links();
// "100gbe"; "8xhdr": eight adapters. Errors (kUsage) begin with `where` and
// list what there is.
absl::StatusOr<Link> LinkNamed(absl::string_view name, absl::string_view where);
// "25gbe, 100gbe": those that are networks or those that are not.
std::string LinkNames(bool networks);
// By which ranks of one machine reach each other.
const Link& LinkInside(const Target& target);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_TARGETS_LINKS_H_
