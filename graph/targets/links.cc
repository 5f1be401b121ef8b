// The records of what is no target's own. Of GPUs the bandwidths are those of
// data sheets times what collectives were seen to reach of them, latencies
// those by which NCCL itself chooses (src/graph/tuning.cc of NCCL 2.12: start
// of a ring's "Simple" protocol 8.4 us; a step 3.4 us by NVLink, 5.7 by
// PCIe, 9.6 by InfiniBand; its "LL" protocol for small ones 3.6, 0.47, 1.0
// and 2.7 us at a quarter of the bandwidth). Nothing of ours has been timed on
// a GPU yet.
#include "graph/targets/links.h"

#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "graph/base/check.h"
#include "graph/base/error.h"
#include "graph/base/text.h"

namespace halftone {
namespace {

constexpr double kMicro = 1e-6, kGiga = 1e9;

Link ByNccl(const std::string& name, double bandwidth, double latency,
            double quick, const std::string& text) {
  return {name,         bandwidth,      8.4 * kMicro, latency * kMicro,
          3.6 * kMicro, quick * kMicro, 0.25,         text};
}

// What a target's record says of its own.
Link NvLink(const Target& target) {
  const DeviceLink& inside = target.inside;
  return ByNccl(inside.name, inside.reached * target.devices.back().link, 3.4,
                0.47, inside.text);
}

// 16 lanes of 16 or 32 GT/s, 128 of 130 bits data: 31.5 and 63 GB/s each way.
// NCCL takes 12 of the 15.75 GB/s of the third generation (src/graph/topo.h).
Link Pcie(const char* name, double gigatransfers, const char* text) {
  const double wire = gigatransfers * 16 / 8 * 128 / 130 * kGiga;
  return ByNccl(name, 12 / 15.75 * wire, 5.7, 1.0, text);
}

// HDR and NDR: 4 lanes of 50 and 100 Gbit/s; 0.95 of these is an estimate.
Link InfiniBand(const char* name, double gigabits, const char* text) {
  Link link = ByNccl(name, 0.95 * gigabits / 8 * kGiga, 9.6, 2.7, text);
  link.network = true;
  return link;
}

// Frames of 1,500 bytes carry 1,448 in 1,538 on the wire (IEEE 802.3, TCP with
// timestamps). A message from process to process by TCP in some 30 us: an
// estimate.
Link Ethernet(const char* name, double gigabits, const char* text) {
  const double bandwidth = gigabits / 8 * kGiga * 1448 / 1538;
  return {name, bandwidth, 10 * kMicro, 30 * kMicro, 0, 0, 0, text, true};
}

std::vector<Link> SharedLinks() {
  return {Pcie("pcie4", 16, "PCIe 4.0, 16 lanes"),
          Pcie("pcie5", 32, "PCIe 5.0, 16 lanes"),
          Ethernet("25gbe", 25, "25 Gbit/s Ethernet, TCP"),
          Ethernet("100gbe", 100, "100 Gbit/s Ethernet, TCP"),
          Ethernet("400gbe", 400, "400 Gbit/s Ethernet, TCP"),
          InfiniBand("hdr", 200, "InfiniBand HDR, 200 Gbit/s"),
          InfiniBand("ndr", 400, "InfiniBand NDR, 400 Gbit/s"),
          // Two ranks on two cores of an AMD EPYC 9004, tests/benchmarks/
          // collective_benchmark: 25 MiB take each of them 6.7 ms of its core,
          // 16 bytes 8 us. Over sockets 2.6 GB/s and half a millisecond a call.
          // Other machines: tests/benchmarks/link_benchmark.
          {"memory", 3.9 * kGiga, 8 * kMicro, 0, 0, 0, 0,
           "shared memory of CPU ranks"},
          {"loopback", 2.6 * kGiga, 500 * kMicro, 0, 0, 0, 0,
           "sockets of CPU ranks of one machine"}};
}

std::vector<Link> AllLinks() {
  std::vector<Link> links;
  for (const Target& target : Targets()) {
    if (target.inside.reached > 0) links.push_back(NvLink(target));
  }
  for (Link& link : SharedLinks()) links.push_back(std::move(link));
  return links;
}

const Link* FindLink(absl::string_view name) {
  for (const Link& link : Links()) {
    if (link.name == name) return &link;
  }
  return nullptr;
}

}  // namespace

const std::vector<Link>& Links() {
  static const auto* const links = new std::vector<Link>(AllLinks());
  return *links;
}

absl::StatusOr<Link> LinkNamed(absl::string_view name,
                               absl::string_view where) {
  int adapters = 1;
  absl::string_view one = name;
  const size_t times = name.find('x');
  int many = 0;
  if (times != name.npos && absl::SimpleAtoi(name.substr(0, times), &many) &&
      many >= 1 && many <= 64) {
    adapters = many;
    one = name.substr(times + 1);
  }
  if (const Link* found = FindLink(one)) {
    Link link = *found;
    link.name = std::string(name);
    link.bandwidth *= adapters;
    return link;
  }
  std::vector<std::string> names;
  for (const Link& link : Links()) names.push_back(link.name);
  return UsageError(where, name, ": no such link", NearestHint(one, names),
                    "; known: ", absl::StrJoin(names, ", "),
                    ", several as 8xhdr, or a file that "
                    "tests/benchmarks/link_benchmark wrote");
}

std::string LinkNames(bool networks) {
  std::vector<std::string> names;
  for (const Link& link : Links()) {
    if (link.network == networks) names.push_back(link.name);
  }
  return absl::StrJoin(names, ", ");
}

const Link& LinkInside(const Target& target) {
  const Link* found = FindLink(target.inside.name);
  HT_CHECK(found != nullptr, target.inside.name.c_str());
  return *found;
}

}  // namespace halftone
