// Slurm's variables and its short form for lists.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "graph/base/error.h"
#include "runtime/rendezvous/variables.h"

namespace halftone {
namespace runtime {
namespace {

constexpr size_t kMaxNodes = 100000;

absl::Status BadList(absl::string_view list) {
  return UsageError("environment: cannot read the node list '", list,
                    "'; expected a form like node[01-03,07],other5");
}

// "01-03" with prefix "node" and a suffix -> three names.
bool AppendRange(absl::string_view prefix, absl::string_view range,
                 absl::string_view suffix, std::vector<std::string>& names) {
  const std::vector<absl::string_view> ends = absl::StrSplit(range, '-');
  int64_t first = 0;
  int64_t last = 0;
  if (ends.size() > 2 || !absl::SimpleAtoi(ends[0], &first) ||
      !absl::SimpleAtoi(ends.back(), &last) || first < 0 || last < first ||
      last - first >= static_cast<int64_t>(kMaxNodes)) {
    return false;
  }
  const int width = static_cast<int>(ends[0].size());
  for (int64_t i = first; i <= last; ++i) {
    names.push_back(absl::StrFormat("%s%0*d%s", prefix, width, i, suffix));
  }
  return names.size() <= kMaxNodes;
}

// One item: a name with at most one bracket.
bool AppendItem(absl::string_view item, std::vector<std::string>& names) {
  const size_t open = item.find('[');
  if (open == absl::string_view::npos) {
    names.emplace_back(item);
    return !item.empty() && !absl::StrContains(item, ']');
  }
  const size_t close = item.find(']', open);
  if (close == absl::string_view::npos) return false;
  const absl::string_view suffix = item.substr(close + 1);
  if (absl::StrContains(suffix, '[')) return false;
  for (absl::string_view range :
       absl::StrSplit(item.substr(open + 1, close - open - 1), ',')) {
    if (!AppendRange(item.substr(0, open), range, suffix, names)) return false;
  }
  return true;
}

// "2(x3),1" -> the count of node `index`; nothing if it is not there.
std::optional<int> TasksOfNode(absl::string_view list, int index) {
  for (absl::string_view item : absl::StrSplit(list, ',')) {
    const std::vector<absl::string_view> parts = absl::StrSplit(item, "(x");
    int tasks = 0;
    int nodes = 1;
    if (!absl::SimpleAtoi(parts[0], &tasks)) return std::nullopt;
    if (parts.size() == 2 &&
        !absl::SimpleAtoi(parts[1].substr(0, parts[1].find(')')), &nodes)) {
      return std::nullopt;
    }
    if (index < nodes) return tasks;
    index -= nodes;
  }
  return std::nullopt;
}

// The step's value where there is one: a step may use a part of the job.
std::string StepOrJob(const Variables& v, const std::string& step,
                      const std::string& job) {
  return v.Has(step) ? v.Text(step) : v.Text(job);
}

absl::StatusOr<Variables::Pair> LocalRank(const Variables& v,
                                          const RankPlacement& place,
                                          int nodes) {
  Variables::Pair local = {place.rank, place.world_size};
  HT_ASSIGN_OR_RETURN(local.rank, v.NumberOr("SLURM_LOCALID", place.rank));
  HT_ASSIGN_OR_RETURN(int node, v.NumberOr("SLURM_NODEID", 0));
  const std::optional<int> listed = TasksOfNode(
      StepOrJob(v, "SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"), node);
  // Without a list: spread evenly.
  const int even = (place.world_size + nodes - 1) / nodes;
  local.size = std::max(listed.value_or(even), local.rank + 1);
  local.size = std::min(local.size, place.world_size);
  return local;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ExpandNodeList(
    absl::string_view list) {
  std::vector<std::string> names;
  size_t start = 0;
  int depth = 0;
  for (size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[') ++depth;
    if (i < list.size() && list[i] == ']') --depth;
    if (i < list.size() && (list[i] != ',' || depth > 0)) continue;
    if (!AppendItem(list.substr(start, i - start), names)) return BadList(list);
    start = i + 1;
  }
  return names;
}

absl::StatusOr<std::optional<RankPlacement>> FromSlurm(const Variables& v) {
  // A shell of salloc has SLURM_NTASKS alone, and is no rank.
  if (!v.Has("SLURM_PROCID")) return {std::nullopt};
  const bool step = v.Has("SLURM_STEP_NUM_TASKS");
  HT_ASSIGN_OR_RETURN(
      std::optional<Variables::Pair> world,
      v.RankOf("SLURM_PROCID", step ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS",
               "Slurm"));
  RankPlacement place;
  place.source = "Slurm";
  place.rank = world->rank;
  place.world_size = world->size;
  place.explanation.push_back(
      Explain("rank", absl::StrCat(place.rank, " of ", place.world_size),
              absl::StrCat(v.Show({"SLURM_PROCID", step ? "SLURM_STEP_NUM_TASKS"
                                                        : "SLURM_NTASKS"}),
                           " (Slurm)")));
  const std::string list =
      StepOrJob(v, "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST");
  std::vector<std::string> nodes;
  if (!list.empty()) {
    HT_ASSIGN_OR_RETURN(nodes, ExpandNodeList(list));
  }
  const int count = std::max<int>(nodes.size(), 1);
  HT_ASSIGN_OR_RETURN(Variables::Pair local, LocalRank(v, place, count));
  if (count == 1) local.size = place.world_size;
  place.local_rank = local.rank;
  place.local_world_size = local.size;
  place.explanation.push_back(Explain(
      "local rank", absl::StrCat(local.rank, " of ", local.size),
      v.Show({"SLURM_LOCALID", "SLURM_NODEID", "SLURM_STEP_TASKS_PER_NODE"})));
  HT_ASSIGN_OR_RETURN(int job, v.NumberOr("SLURM_JOB_ID", 0));
  const std::string step_id = StepOrJob(v, "SLURM_STEP_ID", "SLURM_STEPID");
  place.job_id = absl::StrCat("slurm ", job, ".", step_id);
  if (count == 1 || v.Has("MASTER_ADDR")) {
    HT_RETURN_IF_ERROR(TakeMaster(v, "srun", place));
    return {std::move(place)};
  }
  // The same on all ranks, and rarely the same for two jobs on a node.
  HT_ASSIGN_OR_RETURN(place.master.port, v.PortOr("MASTER_PORT", 0));
  int step_number = 0;
  (void)absl::SimpleAtoi(step_id, &step_number);
  if (place.master.port == 0) {
    place.master.port = 10000 + (int64_t{job} * 7 + step_number) % 20000;
  }
  place.master.host = nodes[0];
  place.explanation.push_back(Explain(
      "master", ToString(place.master),
      absl::StrCat("first node of ", list, ", port from the job's number")));
  return {std::move(place)};
}

}  // namespace runtime
}  // namespace halftone
