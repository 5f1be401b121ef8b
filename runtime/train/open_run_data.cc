#include "runtime/train/open_run_data.h"

#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "graph/base/error.h"
#include "runtime/train/feeds.h"
#include "runtime/train/long_work.h"

namespace halftone {
namespace runtime {
namespace {

// A line for each broken sample: 1 if it is of --eval-data, 1 if it is of the
// test split, its position, what is wrong.
std::string EncodeData(const RunData& data) {
  std::string lines;
  for (const OpenedData* const opened : {&data.opened, &data.opened_for_eval}) {
    for (const BrokenSample& sample : opened->broken) {
      absl::StrAppend(&lines, opened == &data.opened ? "0 " : "1 ",
                      sample.test ? "1 " : "0 ", sample.index, " ",
                      absl::CHexEscape(sample.why), "\n");
    }
  }
  return lines;
}

absl::Status DecodeData(absl::string_view lines, RunData* data) {
  for (const absl::string_view line :
       absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> parts =
        absl::StrSplit(line, absl::MaxSplits(' ', 3));
    BrokenSample sample;
    if (parts.size() != 4 || !absl::SimpleAtoi(parts[2], &sample.index) ||
        !absl::CUnescape(parts[3], &sample.why)) {
      return CommunicationError("a rank sent a damaged list of samples");
    }
    sample.test = parts[1] == "1";
    OpenedData& opened = parts[0] == "1" ? data->opened_for_eval : data->opened;
    opened.broken.push_back(std::move(sample));
  }
  return absl::OkStatus();
}

// What all processes have found.
absl::Status LeaveOutAll(const std::vector<std::string>& found, RunData* data) {
  OpenedData* const both[] = {&data->opened, &data->opened_for_eval};
  for (OpenedData* const opened : both) opened->broken.clear();
  for (const std::string& lines : found) {
    HT_RETURN_IF_ERROR(DecodeData(lines, data));
  }
  for (OpenedData* const opened : both) HT_RETURN_IF_ERROR(LeaveOut(opened));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RunData> OpenRunData(const Program& program,
                                    const TrainConfig& config, bool trained_on,
                                    int process, int processes) {
  RunData data;
  const proto::Train& train = config.strategy.train();
  DataOptions options;
  options.feed_map = config.feed_map;
  options.seed = train.seed();
  options.max_unpack = config.max_unpack;
  options.augment = train.augment();
  options.augmented = trained_on;
  options.skip_broken = train.broken_samples() == "skip";
  options.process = process;
  options.processes = processes;
  options.workers = config.readers;
  data.specs = FeedSpecsOf(program);
  HT_ASSIGN_OR_RETURN(data.opened, OpenData(config.data, data.specs, options));
  data.train = data.opened.train.get();
  data.test = data.opened.test.get();
  if (!config.eval_data.empty()) {
    options.augmented = false;
    options.whole = true;
    options.classes = data.opened.classes;
    HT_ASSIGN_OR_RETURN(data.opened_for_eval,
                        OpenData(config.eval_data, data.specs, options));
    data.test = data.opened_for_eval.test != nullptr
                    ? data.opened_for_eval.test.get()
                    : data.opened_for_eval.train.get();
  }
  if (!trained_on && data.test == nullptr) data.test = data.train;
  return data;
}

absl::Status OpenDataTogether(const Program& program, const TrainConfig& config,
                              bool trained_on, int ranks_of_process,
                              Communicator& communicator,
                              absl::StatusOr<RunData>* data) {
  const auto open = [&] {
    *data = OpenRunData(program, config, trained_on,
                        communicator.rank() / ranks_of_process,
                        communicator.world_size() / ranks_of_process);
    if (data->ok() && trained_on) {
      const auto hash = (*data)->train->ContentHash();
      if (hash.ok()) {
        (*data)->content_hash = *hash;
      } else {
        *data = hash.status();
      }
    }
    return absl::OkStatus();
  };
  if (data == nullptr) {
    HT_RETURN_IF_ERROR(DoLongWork(communicator, nullptr));
  } else {
    HT_RETURN_IF_ERROR(DoLongWork(communicator, open));
  }
  const bool opened = data != nullptr && data->ok();
  HT_ASSIGN_OR_RETURN(const std::vector<std::string> found,
                      communicator.AllGather(opened ? EncodeData(**data) : ""));
  if (opened) {
    const absl::Status left = LeaveOutAll(found, &**data);
    if (!left.ok()) {
      *data = left;
    } else if (trained_on) {
      (*data)->marks = (*data)->train->Marks();
    }
  }
  return communicator.Barrier();
}

}  // namespace runtime
}  // namespace halftone
