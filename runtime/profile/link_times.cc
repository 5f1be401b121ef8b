#include "runtime/profile/link_times.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"
#include "graph/base/file.h"
#include "graph/base/json/json_fields.h"
#include "graph/base/json/json_reader.h"
#include "nlohmann/json.hpp"

namespace halftone {
namespace runtime {
namespace {

constexpr double kNano = 1e-9;
constexpr int64_t kSecond = 1'000'000'000;
constexpr int64_t kMostLinkBytes = 1 << 16;  // of a file

// One way to send: what it starts with, and of the links' bandwidths so much.
struct Way {
  double start, inside, between, share;
};

double RingSeconds(const Way& way, int passes, double bytes,
                   const Topology& topology, double bandwidth) {
  const double others = topology.ranks - 1;
  const double crossings = topology.machines() - 1;
  return way.start +
         passes * ((others - crossings) * way.inside + crossings * way.between +
                   others / topology.ranks * bytes / (way.share * bandwidth));
}

double TreeSeconds(const Way& way, double bytes, const Topology& topology,
                   double bandwidth) {
  const double depth = std::ceil(std::log2(topology.machines()));
  return way.start +
         2 * ((topology.per_machine - 1) * way.inside + depth * way.between +
              bytes / (way.share * bandwidth));
}

}  // namespace

double CollectiveSeconds(Step::Kind kind, double bytes,
                         const Topology& topology) {
  if (topology.ranks < 2) return 0;
  const bool sums = kind == Step::Kind::kAllReduce;
  const bool crosses = topology.machines() > 1;
  if (sums && crosses && topology.by_nodes && topology.per_machine > 1) {
    const Topology machine = {topology.per_machine, topology.per_machine,
                              topology.inside, topology.inside};
    const Topology machines = {topology.machines(), 1, topology.between,
                               topology.between};
    return 2 * CollectiveSeconds(Step::Kind::kAllGather, bytes, machine) +
           CollectiveSeconds(kind, bytes, machines);
  }
  const Link& inside = topology.inside;
  const Link& between = topology.between;
  double bandwidth = inside.bandwidth;
  if (crosses) {
    bandwidth = topology.per_machine > 1
                    ? std::min(bandwidth, between.bandwidth)
                    : between.bandwidth;
  }
  const Link& slow = crosses ? between : inside;
  double least = HUGE_VAL;
  const auto try_way = [&](const Way& way) {
    least = std::min(
        least, RingSeconds(way, sums ? 2 : 1, bytes, topology, bandwidth));
    if (sums && crosses) {
      least = std::min(least, TreeSeconds(way, bytes, topology, bandwidth));
    }
  };
  try_way({slow.start, inside.latency, between.latency, 1});
  if (slow.quick_share > 0) {
    try_way({slow.quick_start, inside.quick_latency, between.quick_latency,
             slow.quick_share});
  }
  return least;
}

double CollectiveSeconds(const Step& collective, const Topology& topology) {
  double bytes = 0;
  for (const Slice& slice : collective.outputs) {
    bytes += static_cast<double>(slice.bytes);
  }
  return CollectiveSeconds(collective.kind, bytes, topology);
}

std::string PrintLink(const Link& link) {
  const nlohmann::ordered_json json = {
      {"schema", 1},
      {"name", link.name},
      {"bandwidth", std::llround(link.bandwidth)},
      {"start_ns", std::llround(link.start / kNano)},
      {"latency_ns", std::llround(link.latency / kNano)}};
  return json.dump() + "\n";
}

absl::StatusOr<Link> ParseLink(absl::string_view content,
                               absl::string_view file) {
  HT_ASSIGN_OR_RETURN(const nlohmann::json json, ParseJson(content, file));
  if (!json.is_object()) {
    return ModelError(file,
                      ": expected a link, {\"schema\": 1, \"name\": ...}");
  }
  JsonFields fields(json, file);
  int64_t schema = 1, bandwidth = 0, start = 0, latency = 0;
  Link link;
  fields.Integer("schema", 1, 1, &schema);
  fields.Text("name", &link.name);
  fields.Integer("bandwidth", 1, kMaxExactInteger, &bandwidth);
  fields.Integer("start_ns", 0, kSecond, &start);
  fields.Integer("latency_ns", 0, kSecond, &latency);
  HT_RETURN_IF_ERROR(fields.status());
  link.bandwidth = static_cast<double>(bandwidth);
  link.start = kNano * static_cast<double>(start);
  link.latency = kNano * static_cast<double>(latency);
  link.text = absl::StrCat("as in ", file);
  return link;
}

absl::StatusOr<Link> FindLinkOrRead(const std::string& word,
                                    absl::string_view flag) {
  absl::StatusOr<Link> known = LinkNamed(word, absl::StrCat(flag, " "));
  const bool is_file =
      word.find('.') != word.npos || word.find('/') != word.npos;
  if (known.ok() || !is_file) return known;
  HT_ASSIGN_OR_RETURN(const std::string content,
                      ReadFile(word, kMostLinkBytes));
  return ParseLink(content, word);
}

}  // namespace runtime
}  // namespace halftone
