#include "runtime/train/feeds.h"

#include <string>

#include "graph/base/check.h"
#include "graph/ir/shard_feed.h"
#include "graph/ir/well_known.h"
#include "graph/schema/op_schema.h"

namespace halftone {
namespace runtime {
namespace {

const Entry& MainEntry(const Program& program) {
  const Entry* entry = program.FindEntry(kTrainEntry);
  if (entry == nullptr) entry = program.FindEntry(kEvalEntry);
  HT_CHECK(entry != nullptr, "a compiled program trains or evaluates");
  return *entry;
}

// If the value is the label of a loss, which ones that takes. `block` may be a
// fusion's body, whose arguments stand for the fusion's inputs.
void FindClasses(const Block& block, ValueId value, FeedSpec* spec) {
  for (const Use& use : block.value(value).uses) {
    const Op& op = block.op(use.op);
    if (op.body != nullptr) {
      FindClasses(*op.body, op.body->Feeds()[use.position], spec);
      if (spec->classes > 0) return;
    }
    const int label = op.schema->FindInput("Label");
    const int logits = op.schema->FindInput("Logits");
    if (label < 0 || logits < 0 || op.in(label) != value) continue;
    const TensorType& type = block.type(op.in(logits));
    if (type.rank() == 0 || !type.dims.back().is_constant()) continue;
    spec->classes = type.dims.back().coefficient();
    if (op.schema->FindAttr("ignore_index") >= 0) {
      spec->ignored = AttrAs<int64_t>(op, "ignore_index");
    }
    return;
  }
}

template <typename T>
absl::Span<const uint8_t> BytesOf(const T& value) {
  return absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(&value),
                             sizeof(value));
}

absl::Span<const uint8_t> ImplicitBytes(absl::string_view name,
                                        const ImplicitFeeds& f) {
  if (name == kLargestCount) return BytesOf(f.largest_count);
  if (name == kFirstSample) return BytesOf(f.first_sample);
  if (name == kStop) return BytesOf(f.stop);
  if (name == kSeed) return BytesOf(f.seed);
  if (name == kSchedule) return BytesOf(f.schedule);
  if (name == kStepsPerEpoch) return BytesOf(f.steps_per_epoch);
  if (name == kShard) return BytesOf(f.shard);
  HT_CHECK(false, "an implicit feed that the trainer does not know");
  return {};
}

}  // namespace

std::vector<FeedSpec> FeedSpecsOf(const Program& program) {
  const Block& block = MainEntry(program).block();
  std::vector<FeedSpec> specs;
  for (ValueId feed : block.Feeds()) {
    const absl::string_view name = block.name(feed);
    if (name[0] == '@') continue;
    const TensorType& type = block.type(feed);
    FeedSpec spec;
    spec.name = std::string(name);
    spec.dtype = type.dtype;
    spec.whole = type.rank() == 0 || type.dims[0].is_constant();
    for (int d = spec.whole ? 0 : 1; d < type.rank(); ++d) {
      spec.dims.push_back(type.dims[d].coefficient());
    }
    FindClasses(block, feed, &spec);
    specs.push_back(std::move(spec));
  }
  return specs;
}

double LossElements(const Entry& entry, int64_t samples) {
  const Block& block = entry.block();
  const ValueId count = block.FindValue("@local_count");
  if (!count.valid() || !block.value(count).op().valid()) return 0;
  const Op& op = block.op(block.value(count).op());
  SymbolValues symbols{};
  symbols[0] = samples;
  const TensorType& counted = block.type(op.inputs.all()[0]);
  const bool along_axis = op.schema->FindAttr("axis") >= 0;
  const int64_t axis = along_axis ? AttrAs<int64_t>(op, "axis") : -1;
  const Dim dim = axis < 0 ? counted.Elements() : counted.dims[axis];
  return static_cast<double>(dim.Evaluate(symbols));
}

FeedList::FeedList(const Entry& entry, const std::vector<FeedSpec>& specs,
                   const ImplicitFeeds* implicit) {
  const Block& block = entry.block();
  for (ValueId feed : block.Feeds()) {
    const std::string name(block.name(feed));
    int spec = -1;
    for (size_t i = 0; i < specs.size(); ++i) {
      if (specs[i].name == name) spec = static_cast<int>(i);
    }
    feeds_.push_back({name, spec < 0 ? ImplicitBytes(name, *implicit)
                                     : absl::Span<const uint8_t>()});
    spec_of_.push_back(spec);
    whole_.push_back(spec < 0 || specs[spec].whole);
  }
}

absl::Span<const FeedData> FeedList::Point(const Batch& batch) {
  for (size_t i = 0; i < feeds_.size(); ++i) {
    if (spec_of_[i] >= 0) feeds_[i].bytes = batch.feeds[spec_of_[i]];
  }
  return feeds_;
}

absl::Span<const FeedData> FeedList::Point(const Batch& batch, int64_t begin,
                                           int64_t count) {
  Point(batch);
  const auto samples = static_cast<int64_t>(batch.share.indices.size());
  if (samples == 0) return feeds_;
  for (size_t i = 0; i < feeds_.size(); ++i) {
    if (whole_[i]) continue;
    const int64_t bytes =
        static_cast<int64_t>(feeds_[i].bytes.size()) / samples;
    feeds_[i].bytes = feeds_[i].bytes.subspan(begin * bytes, count * bytes);
  }
  return feeds_;
}

}  // namespace runtime
}  // namespace halftone
