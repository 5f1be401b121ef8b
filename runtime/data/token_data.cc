// Files of token ids, cut into blocks.
//
// FILE holds u16 numbers as they lie in memory (nanoGPT's train.bin), or u32
// numbers if it ends in .u32. The last twentieth, in whole blocks, is the test
// split; a file val.bin or val.u32 beside train.bin or train.u32 is it instead.
// Feeds, i64[B,T] unless said otherwise:
//   input_ids        T tokens
//   label            the token that follows each of them (GPT)
// and of a model that has an attention_mask, as BERT's pre-training has:
//   attention_mask   ones
//   token_type_ids   zeros
//   label            the token where it was hidden, -100 elsewhere
// Devlin et al., "BERT" (2019): 15 % of the tokens are hidden, of which 80 %
// become [MASK] (id 103), 10 % any token, 10 % stay.
#include <algorithm>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "graph/base/dtype.h"
#include "graph/base/error.h"
#include "graph/base/philox.h"
#include "graph/base/text.h"
#include "runtime/data/data_format.h"
#include "runtime/data/mapped_file.h"

namespace halftone {
namespace runtime {
namespace {

constexpr int64_t kIgnored = -100;
constexpr int64_t kMaskToken = 103;

enum class Column { kIds, kNext, kHidden, kOnes, kZeros };

struct Blocks {
  absl::string_view bytes;
  int64_t length = 0;  // T
  int width = 2;       // bytes of a token

  int64_t tokens() const { return static_cast<int64_t>(bytes.size()) / width; }
  // The last block's last token has one that follows it.
  int64_t count() const { return (tokens() - 1) / length; }
};

class TokenDataset : public Dataset {
 public:
  TokenDataset(std::shared_ptr<const MappedFile> file, Blocks blocks,
               std::vector<Column> columns, int64_t words, int64_t seed)
      : file_(std::move(file)),
        blocks_(blocks),
        columns_(std::move(columns)),
        words_(words),
        seed_(seed),
        hides_(std::count(columns_.begin(), columns_.end(), Column::kHidden) >
               0) {}

  int64_t size() const override { return blocks_.count(); }
  absl::Status Read(const SampleId& sample, int feed,
                    absl::Span<uint8_t> out) const override;
  std::string Description() const override {
    return absl::StrCat("tokens, ", WithCommas(blocks_.tokens()),
                        " in blocks of ", WithCommas(blocks_.length));
  }

 private:
  struct Hidden {
    bool is = false;
    int64_t becomes = 0;
  };
  Hidden Hide(const SampleId& sample, int64_t i, int64_t id) const;

  std::shared_ptr<const MappedFile> file_;
  Blocks blocks_;
  std::vector<Column> columns_;
  int64_t words_, seed_;
  bool hides_;
};

TokenDataset::Hidden TokenDataset::Hide(const SampleId& sample, int64_t i,
                                        int64_t id) const {
  const uint64_t key = PhiloxKey(static_cast<uint64_t>(seed_), 0x70cec500u);
  const Philox4 draw =
      PhiloxDraw(key, static_cast<uint64_t>(sample.epoch),
                 static_cast<uint64_t>(sample.index), static_cast<uint32_t>(i));
  if (ToUniform(draw.x[0]) >= 0.15f) return {};
  const float kind = ToUniform(draw.x[1]);
  if (kind < 0.8f) return {true, kMaskToken};
  if (kind >= 0.9f || words_ == 0) return {true, id};
  return {true, static_cast<int64_t>((uint64_t{draw.x[2]} * words_) >> 32)};
}

// Ids as they lie in the file to i64; the largest of them.
template <typename Id>
int64_t Widen(const char* from, int64_t n, int64_t* out) {
  Id largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    Id id;
    std::memcpy(&id, from + i * sizeof(id), sizeof(id));
    out[i] = id;
    largest = std::max(largest, id);
  }
  return largest;
}

absl::Status TokenDataset::Read(const SampleId& sample, int feed,
                                absl::Span<uint8_t> out) const {
  const Column column = columns_[feed];
  const int64_t n = blocks_.length;
  auto* const ids = reinterpret_cast<int64_t*>(out.data());
  if (column == Column::kOnes || column == Column::kZeros) {
    std::fill_n(ids, n, column == Column::kOnes ? 1 : 0);
    return absl::OkStatus();
  }
  const int64_t first = sample.index * n + (column == Column::kNext ? 1 : 0);
  const char* from = &blocks_.bytes[first * blocks_.width];
  const int64_t largest = blocks_.width == 2 ? Widen<uint16_t>(from, n, ids)
                                             : Widen<uint32_t>(from, n, ids);
  if (words_ > 0 && largest >= words_) {
    const int64_t at = std::find(ids, ids + n, largest) - ids;
    const int64_t begin =
        (blocks_.bytes.data() - file_->bytes().data()) / blocks_.width;
    return ModelError(file_->path(), ": token ", begin + first + at, " is ",
                      largest, ": expected 0 to ", words_ - 1,
                      ", the words of the model; take a file of its tokenizer");
  }
  if (!hides_) return absl::OkStatus();
  for (int64_t i = 0; i < n; ++i) {
    const Hidden hidden = Hide(sample, i, ids[i]);
    if (column == Column::kHidden && !hidden.is) ids[i] = kIgnored;
    if (column == Column::kIds && hidden.is) ids[i] = hidden.becomes;
  }
  return absl::OkStatus();
}

struct TokenFeeds {
  std::vector<Column> columns;
  int64_t length = 0, words = 0;
};

absl::StatusOr<TokenFeeds> MatchTokenFeeds(
    Feeds feeds, absl::Span<const std::string> feed_map) {
  std::vector<std::string> names = {"input_ids", "label", "attention_mask",
                                    "token_type_ids"};
  const std::vector<std::string> known = names;
  for (const std::string& item : feed_map) {
    const size_t equals = item.find('=');
    const auto at =
        std::find(known.begin(), known.end(), item.substr(0, equals));
    if (at == known.end() || equals == item.npos) {
      return UsageError("--feed ", item, ": expected NAME=FEED with one of ",
                        absl::StrJoin(known, ", "),
                        NearestHint(item.substr(0, equals), known));
    }
    names[at - known.begin()] = item.substr(equals + 1);
  }
  bool masked = false;
  for (const FeedSpec& feed : feeds) masked |= feed.name == names[2];
  const Column columns[] = {Column::kIds,
                            masked ? Column::kHidden : Column::kNext,
                            Column::kOnes, Column::kZeros};
  TokenFeeds match;
  for (const FeedSpec& feed : feeds) {
    const auto at = std::find(names.begin(), names.end(), feed.name);
    if (at == names.end()) {
      return ModelError("tokens feed ", absl::StrJoin(names, ", "),
                        "; the model's feed ", feed.name, " is none of them",
                        NearestHint(feed.name, names),
                        "; map it with --feed NAME=", feed.name);
    }
    const bool first = match.length == 0;
    if (feed.dtype != DType::kI64 || feed.whole || feed.dims.size() != 1 ||
        feed.dims[0] < 1 || (!first && feed.dims[0] != match.length)) {
      return ModelError("feed ", feed.name, ": tokens are i64[B,",
                        first ? std::string("T") : absl::StrCat(match.length),
                        "], the model expects ", Describe(feed));
    }
    match.length = feed.dims[0];
    match.words = std::max(match.words, feed.classes);
    match.columns.push_back(columns[at - names.begin()]);
  }
  if (match.length == 0) {
    return ModelError("tokens feed ", absl::StrJoin(names, ", "),
                      "; the model has no feeds");
  }
  if (masked && match.words > 0 && match.words <= kMaskToken) {
    return ModelError("tokens: hidden ones become ", kMaskToken,
                      ": expected a model of more words, found ", match.words,
                      "; take one with BERT's vocabulary");
  }
  return match;
}

absl::StatusOr<std::unique_ptr<Dataset>> MakeDataset(
    std::shared_ptr<const MappedFile> file, absl::string_view bytes, int width,
    const TokenFeeds& match, int64_t seed) {
  const Blocks blocks = {bytes, match.length, width};
  if (blocks.count() < 1) {
    return ModelError(file->path(), ": ", blocks.tokens(), " tokens: expected ",
                      match.length + 1, " or more, a block and the one after");
  }
  return std::make_unique<TokenDataset>(std::move(file), blocks, match.columns,
                                        match.words, seed);
}

absl::StatusOr<std::shared_ptr<const MappedFile>> OpenFile(
    const std::string& path, int width) {
  HT_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file,
                      MappedFile::Open(path));
  if (file->bytes().size() % width != 0) {
    return ModelError(path, ": ", file->bytes().size(),
                      " bytes: expected a multiple of ", width, ", u",
                      8 * width, " numbers; take a file of those",
                      width == 2 ? ", or one of u32 numbers called .u32" : "");
  }
  return file;
}

}  // namespace

absl::StatusOr<OpenedData> OpenTokens(const std::string& place, Feeds feeds,
                                      const DataOptions& options) {
  HT_ASSIGN_OR_RETURN(const TokenFeeds match,
                      MatchTokenFeeds(feeds, options.feed_map));
  const int width = absl::EndsWith(place, ".u32") ? 4 : 2;
  HT_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> file,
                      OpenFile(place, width));
  absl::string_view train = file->bytes();
  const std::filesystem::path path(place);
  const std::filesystem::path beside =
      path.parent_path() / absl::StrCat("val", path.extension().string());
  OpenedData data;
  std::error_code error;
  if (path.stem() == "train" && std::filesystem::exists(beside, error)) {
    HT_ASSIGN_OR_RETURN(std::shared_ptr<const MappedFile> val,
                        OpenFile(beside.string(), width));
    HT_ASSIGN_OR_RETURN(
        data.test, MakeDataset(val, val->bytes(), width, match, options.seed));
  } else {
    constexpr int64_t kTestShare = 20;
    const int64_t all = Blocks{train, match.length, width}.count();
    if (all >= 2) {
      const int64_t kept = all - std::max<int64_t>(1, all / kTestShare);
      const int64_t split = kept * match.length * width;
      HT_ASSIGN_OR_RETURN(data.test, MakeDataset(file, train.substr(split),
                                                 width, match, options.seed));
      // With the token that follows its last one.
      train = train.substr(0, split + width);
    }
  }
  HT_ASSIGN_OR_RETURN(data.train, MakeDataset(std::move(file), train, width,
                                              match, options.seed));
  return data;
}

}  // namespace runtime
}  // namespace halftone
