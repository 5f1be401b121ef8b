#include "runtime/rendezvous/variables.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "graph/base/error.h"

namespace halftone {
namespace runtime {
namespace {

// torchrun's own default.
constexpr int kDefaultPort = 29500;

}  // namespace

std::string Variables::Text(const std::string& name) const {
  auto it = env_.find(name);
  return it == env_.end() ? "" : it->second;
}

absl::StatusOr<std::optional<int>> Variables::Number(
    const std::string& name) const {
  const std::string text = Text(name);
  if (text.empty()) return {std::nullopt};
  int value = 0;
  if (!absl::SimpleAtoi(text, &value) || value < 0) {
    return UsageError("environment: ", name, "='", text,
                      "' is not a whole number of 0 or more");
  }
  return {std::optional<int>(value)};
}

absl::StatusOr<int> Variables::NumberOr(const std::string& name,
                                        int fallback) const {
  HT_ASSIGN_OR_RETURN(std::optional<int> value, Number(name));
  return value.value_or(fallback);
}

absl::StatusOr<int> Variables::PortOr(const std::string& name,
                                      int fallback) const {
  HT_ASSIGN_OR_RETURN(const int port, NumberOr(name, fallback));
  if (port > 65535) {
    return UsageError("environment: ", name, "=", port,
                      " is not a port (1 to 65535)");
  }
  return port;
}

absl::StatusOr<std::optional<Variables::Pair>> Variables::RankOf(
    const std::string& rank, const std::string& size,
    const std::string& launcher) const {
  HT_ASSIGN_OR_RETURN(std::optional<int> rank_value, Number(rank));
  HT_ASSIGN_OR_RETURN(std::optional<int> size_value, Number(size));
  if (!rank_value && !size_value) return {std::nullopt};
  if (!rank_value || !size_value) {
    const std::string& there = rank_value ? rank : size;
    const std::string& absent = rank_value ? size : rank;
    return UsageError("environment: ", there, "=", Text(there), " is set but ",
                      absent, " is not (", launcher,
                      " sets both): set it too, or unset ", there);
  }
  if (*rank_value >= *size_value) {
    return UsageError("environment: ", rank, "=", *rank_value, " is not below ",
                      size, "=", *size_value);
  }
  if (*size_value > kMostRanks) {
    return UsageError("environment: ", size, "=", *size_value,
                      " is more than a run has: expected up to ", kMostRanks);
  }
  return {Pair{*rank_value, *size_value}};
}

std::string Variables::Show(std::initializer_list<const char*> names) const {
  std::string text;
  for (const char* name : names) {
    if (!Has(name)) continue;
    absl::StrAppend(&text, text.empty() ? "" : " ", name, "=", Text(name));
  }
  return text;
}

std::string Explain(const std::string& what, const std::string& value,
                    const std::string& from) {
  return absl::StrFormat("%-11s %-22s %s", what, value, from);
}

absl::Status TakeMaster(const Variables& variables, const std::string& launcher,
                        RankPlacement& place) {
  const bool all_here = place.local_world_size == place.world_size;
  const std::string host = variables.Text("MASTER_ADDR");
  HT_ASSIGN_OR_RETURN(place.master.port, variables.PortOr("MASTER_PORT", 0));
  if (host.empty() && !all_here) {
    return UsageError(
        "environment: ", launcher, " placed ", place.world_size,
        " ranks on several machines, but MASTER_ADDR is not set: give the "
        "address of rank 0's machine in MASTER_ADDR (and a free port of it in "
        "MASTER_PORT)");
  }
  if (host.empty() && place.master.port == 0) {
    if (place.world_size > 1) {
      place.explanation.push_back(
          Explain("master", "on this machine",
                  "no MASTER_ADDR, and all ranks are here: over the loopback"));
    }
    return absl::OkStatus();
  }
  place.master.host = host.empty() ? "127.0.0.1" : host;
  if (place.master.port == 0) place.master.port = kDefaultPort;
  place.explanation.push_back(
      Explain("master", ToString(place.master),
              variables.Show({"MASTER_ADDR", "MASTER_PORT"})));
  return absl::OkStatus();
}

}  // namespace runtime
}  // namespace halftone
