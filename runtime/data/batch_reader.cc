#include "runtime/data/batch_reader.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "graph/base/error.h"
#include "graph/base/out_of_memory.h"

namespace halftone {
namespace runtime {
namespace {

// A ring of slots: slot k holds the batch of tick k, k + slots, ... Workers
// take the next tick in order and fill its slot once the consumer is done
// with what was there.
class Reader : public BatchReader {
 public:
  Reader(const Dataset* data, std::vector<FeedSpec> feeds,
         const SamplerOptions& sampler, const ReaderOptions& options)
      : data_(data),
        feeds_(std::move(feeds)),
        sampler_options_(sampler),
        options_(options),
        steps_(Sampler(sampler).steps_per_epoch()),
        first_(options.first_epoch * steps_ + options.first_step),
        end_(options.epochs * steps_),
        next_to_fill_(first_),
        next_to_take_(first_),
        // One slot for the batch in use, one for the one before it.
        slots_(std::max(options.prefetch, 1) + 2) {
    Reserve();
    work_.workers = std::max(options.workers, 1);
    for (int w = 0; w < work_.workers; ++w) {
      workers_.emplace_back([this] { Fill(); });
    }
  }

  ~Reader() override {
    {
      std::lock_guard<std::mutex> lock(mutex_);
      stop_ = true;
    }
    changed_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  absl::StatusOr<const Batch*> Next() override {
    const auto since = std::chrono::steady_clock::now();
    std::unique_lock<std::mutex> lock(mutex_);
    if (next_to_take_ >= end_) return nullptr;
    Slot& slot = SlotOf(next_to_take_);
    changed_.wait(lock, [&] { return slot.filled == next_to_take_; });
    // The error stays in its slot: good batches before it are given first.
    if (!slot.status.ok()) return slot.status;
    ++next_to_take_;
    waited_ +=
        std::chrono::duration<double>(std::chrono::steady_clock::now() - since)
            .count();
    lock.unlock();
    changed_.notify_all();
    return &slot.batch;
  }

  double waited_seconds() const override { return waited_; }
  Work work() const override {
    const std::lock_guard<std::mutex> lock(mutex_);
    return work_;
  }

 private:
  struct Slot {
    Batch batch;
    int64_t filled = -1;  // the tick that is in it
    absl::Status status;  // of reading it
  };
  // Room for the largest batch in every slot: workers take nothing from the
  // heap but the order of the samples, once.
  void Reserve() {
    const std::vector<int64_t> counts = Sampler(sampler_options_).Counts();
    const int64_t most = counts.empty() ? 0 : counts.front();
    for (Slot& slot : slots_) {
      slot.batch.feeds.resize(feeds_.size());
      for (size_t f = 0; f < feeds_.size(); ++f) {
        const int64_t samples = feeds_[f].whole ? 1 : most;
        slot.batch.feeds[f].reserve(feeds_[f].bytes() * samples);
      }
    }
  }

  Slot& SlotOf(int64_t tick) { return slots_[tick % slots_.size()]; }

  // The batch before the last one taken may still be in use.
  bool MayFill(int64_t tick) const {
    return tick - next_to_take_ + 2 < static_cast<int64_t>(slots_.size());
  }

  void Fill() {
    const Doing doing("reading the data");
    const Sampler sampler(sampler_options_);
    while (true) {
      int64_t tick;
      {
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [this] {
          return stop_ || next_to_fill_ >= end_ || MayFill(next_to_fill_);
        });
        if (stop_ || next_to_fill_ >= end_) return;
        tick = next_to_fill_++;
      }
      Slot& slot = SlotOf(tick);
      const auto since = std::chrono::steady_clock::now();
      absl::Status status = FillBatch(sampler, tick, slot.batch);
      const std::chrono::duration<double> took =
          std::chrono::steady_clock::now() - since;
      {
        std::lock_guard<std::mutex> lock(mutex_);
        work_.seconds += took.count();
        work_.samples += static_cast<int64_t>(slot.batch.share.indices.size());
        slot.filled = tick;
        slot.status = std::move(status);
      }
      changed_.notify_all();
    }
  }

  absl::Status FillBatch(const Sampler& sampler, int64_t tick, Batch& batch) {
    batch.epoch = tick / steps_;
    batch.step = tick % steps_;
    batch.share = sampler.At(batch.epoch, batch.step, std::move(batch.share));
    for (size_t f = 0; f < feeds_.size(); ++f) {
      const int64_t bytes = feeds_[f].bytes();
      std::vector<uint8_t>& feed = batch.feeds[f];
      if (feeds_[f].whole) {
        if (!feed.empty()) continue;  // as the slot's last batch had it
        feed.resize(bytes);
        HT_RETURN_IF_ERROR(data_->Read({0, batch.epoch}, static_cast<int>(f),
                                       absl::MakeSpan(feed)));
        continue;
      }
      feed.resize(bytes * batch.share.indices.size());
      for (size_t i = 0; i < batch.share.indices.size(); ++i) {
        HT_RETURN_IF_ERROR(data_->Read(
            {batch.share.indices[i], batch.epoch}, static_cast<int>(f),
            absl::MakeSpan(&feed[bytes * i], bytes)));
      }
    }
    return absl::OkStatus();
  }

  const Dataset* data_;
  const std::vector<FeedSpec> feeds_;
  const SamplerOptions sampler_options_;
  const ReaderOptions options_;
  const int64_t steps_, first_, end_;  // ticks count steps from epoch 0

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  int64_t next_to_fill_, next_to_take_;
  std::vector<Slot> slots_;
  bool stop_ = false;
  double waited_ = 0;
  Work work_;
  std::vector<std::thread> workers_;  // last: they use all of the above
};

}  // namespace

std::unique_ptr<BatchReader> MakeBatchReader(const Dataset* data,
                                             std::vector<FeedSpec> feeds,
                                             const SamplerOptions& sampler,
                                             const ReaderOptions& options) {
  return std::make_unique<Reader>(data, std::move(feeds), sampler, options);
}

}  // namespace runtime
}  // namespace halftone
