#include "graph/base/json/json_reader.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "graph/base/error.h"

namespace halftone {
namespace {

using Json = nlohmann::json;

// A value and its name are rarely shorter than this; short files may be of many
// small ones.
constexpr int64_t kBytesPerValue = 8;
constexpr int64_t kValuesOfShortFiles = 1024;

// nlohmann's events to ours, with the depth.
class Bridge : public nlohmann::json_sax<Json> {
 public:
  Bridge(absl::string_view file, JsonVisitor* visitor)
      : file_(file), visitor_(*visitor) {}

  const absl::Status& status() const { return status_; }
  bool ended() const { return ended_; }

  bool null() override { return GoOn(visitor_.Other(depth_)); }
  bool boolean(bool) override { return GoOn(visitor_.Other(depth_)); }
  bool number_integer(int64_t value) override {
    return GoOn(visitor_.Integer(value, depth_));
  }
  bool number_unsigned(uint64_t value) override {
    if (value > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return GoOn(visitor_.Other(depth_));
    }
    return GoOn(visitor_.Integer(static_cast<int64_t>(value), depth_));
  }
  bool number_float(double, const std::string&) override {
    return GoOn(visitor_.Other(depth_));
  }
  bool string(std::string& value) override {
    return GoOn(visitor_.Text(value, depth_));
  }
  bool binary(Json::binary_t&) override { return false; }
  bool key(std::string& value) override {
    return GoOn(visitor_.Key(value, depth_ - 1));
  }
  bool start_object(size_t) override { return Begin(/*object=*/true); }
  bool start_array(size_t) override { return Begin(/*object=*/false); }
  bool end_object() override { return End(/*object=*/true); }
  bool end_array() override { return End(/*object=*/false); }
  bool parse_error(size_t position, const std::string&,
                   const nlohmann::detail::exception&) override {
    status_ = ModelError(file_, ": no JSON at byte ", position);
    return false;
  }

 private:
  bool GoOn(bool on) {
    ended_ = !on;
    return on;
  }
  bool Begin(bool object) {
    if (depth_ == kMaxJsonDepth) {
      status_ = ModelError(file_, ": more than ", kMaxJsonDepth,
                           " arrays and objects in one another");
      return false;
    }
    return GoOn(visitor_.Begin(object, depth_++));
  }
  bool End(bool object) { return GoOn(visitor_.End(object, --depth_)); }

  absl::string_view file_;
  JsonVisitor& visitor_;
  absl::Status status_;
  bool ended_ = false;
  int depth_ = 0;
};

class Counter : public JsonVisitor {
 public:
  explicit Counter(int64_t most) : most_(most) {}
  bool too_many() const { return values_ > most_; }

  bool Key(const std::string&, int) override { return true; }
  bool Integer(int64_t, int) override { return Count(); }
  bool Text(const std::string&, int) override { return Count(); }
  bool Other(int) override { return Count(); }
  bool Begin(bool, int) override { return Count(); }
  bool End(bool, int) override { return true; }

 private:
  bool Count() { return ++values_ <= most_; }
  int64_t most_, values_ = 0;
};

}  // namespace

absl::Status ReadJson(absl::string_view text, absl::string_view file,
                      JsonVisitor& visitor) {
  Bridge bridge(file, &visitor);
  const bool whole = Json::sax_parse(text.begin(), text.end(), &bridge);
  if (whole || bridge.ended()) return absl::OkStatus();
  return bridge.status();
}

absl::StatusOr<Json> ParseJson(absl::string_view text, absl::string_view file) {
  const int64_t most =
      static_cast<int64_t>(text.size()) / kBytesPerValue + kValuesOfShortFiles;
  Counter counter(most);
  HT_RETURN_IF_ERROR(ReadJson(text, file, counter));
  if (counter.too_many()) {
    return ModelError(file, ": more than ", most, " values in ", text.size(),
                      " bytes");
  }
  return Json::parse(text.begin(), text.end(), nullptr,
                     /*allow_exceptions=*/false);
}

}  // namespace halftone
