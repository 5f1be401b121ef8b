#include "runtime/rendezvous/meeting.h"

#include <unistd.h>

#include <algorithm>

#include "absl/memory/memory.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "graph/base/error.h"
#include "graph/base/time/monotonic_time.h"
#include "runtime/rendezvous/same_machine.h"
#include "runtime/rendezvous/token.h"

namespace halftone {
namespace runtime {
namespace {

// How often to look for a file, a failure, or the end of the others.
constexpr absl::Duration kLook = absl::Milliseconds(100);
// Rank 0's patience at the end: for ranks that still write their last files,
// and for ranks that still read the reason of a failure.
constexpr absl::Duration kLinger = absl::Seconds(10);
constexpr absl::Duration kLingerAfterFailure = absl::Seconds(1);

// How many ports beyond one that is taken rank 0 tries.
constexpr int kPlaces = 8;

// Ranks that were given neither an address nor a secret, or an address that is
// another's, and that are on one machine.
bool MeetByFile(const MeetingOptions& options) {
  const RankPlacement& place = options.place;
  if (place.master_served) return false;
  if (place.master.host.empty()) return true;
  const bool all_here =
      IsLoopback(place.master.host) ||
      (place.local_size_is_known && place.local_world_size == place.world_size);
  return all_here && (options.token.empty() || place.master_held);
}

// "2, 3", "1 to 999", "1, 4 to 7 and 12 more": of ascending numbers.
std::string RangesOf(const std::vector<int>& ranks) {
  constexpr int kMostRanges = 6;
  std::string text;
  size_t i = 0;
  for (int ranges = 0; i < ranks.size() && ranges < kMostRanges; ++ranges) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (end - i == 2) end = i + 1;  // two are two
    absl::StrAppend(&text, i == 0 ? "" : ", ", ranks[i]);
    if (end - i > 1) absl::StrAppend(&text, " to ", ranks[end - 1]);
    i = end;
  }
  const size_t more = ranks.size() - i;
  if (more > 0) absl::StrAppend(&text, " and ", more, " more");
  return text;
}

std::string AddressKey(int rank) { return absl::StrCat("address/", rank); }

}  // namespace

Meeting::Meeting(const MeetingOptions& options)
    : options_(options),
      by_file_(MeetByFile(options)),
      deadline_(MonotonicTime::Now() + options.timeout) {
  client_options_.address = options.place.master;
  client_options_.rank = options.place.rank;
  client_options_.world_size = options.place.world_size;
  client_options_.attempt = options.place.attempt;
  client_options_.token = options.token;
}

absl::StatusOr<std::unique_ptr<Meeting>> Meeting::Join(
    const MeetingOptions& options) {
  auto meeting = absl::WrapUnique(new Meeting(options));
  HT_RETURN_IF_ERROR(meeting->Open());
  HT_RETURN_IF_ERROR(meeting->AwaitAll());
  HT_RETURN_IF_ERROR(meeting->FindOwnAddress());
  return {std::move(meeting)};
}

absl::Status Meeting::Open() {
  const RankPlacement& place = options_.place;
  const bool serves = place.rank == 0 && !place.master_served;
  if (!by_file_ && !place.master_served && options_.token.empty()) {
    return UsageError(
        "ranks of several machines meet at ", ToString(place.master),
        ", where anybody can knock: set HALFTONE_TOKEN, or HALFTONE_TOKEN_FILE "
        "to a file of mode 0600, to the same secret on all of them (",
        place.source, ")");
  }
  if (!serves && by_file_) return FindByFile();
  if (!serves && place.master_held) return FindAmongPlaces();
  if (serves) {
    HT_RETURN_IF_ERROR(Serve());
  }
  HT_ASSIGN_OR_RETURN(store_, StoreClient::Connect(client_options_, deadline_));
  return absl::OkStatus();
}

std::vector<HostPort> Meeting::Places() const {
  const RankPlacement& place = options_.place;
  const bool any = place.master.host.empty() || place.master_held;
  if (by_file_ && any) return {{"127.0.0.1", 0}};
  if (!place.master_held) return {place.master};
  // All ranks can tell these; the token tells our server from others.
  std::vector<HostPort> places;
  for (int i = 1; i <= kPlaces; ++i) {
    const int port = place.master.port + i;
    places.push_back({place.master.host, port > 65535 ? port - 20000 : port});
  }
  return places;
}

std::string Meeting::Job() const {
  const RankPlacement& place = options_.place;
  if (!place.master.host.empty()) {
    return absl::StrCat("port ", place.master.port, " ", place.job_id);
  }
  return place.job_id.empty() ? LauncherIdentity(place.rank_variable)
                              : place.job_id;
}

absl::Status Meeting::StartServer(StoreServerOptions options) {
  absl::Status status;
  for (const HostPort& place : Places()) {
    options.host = by_file_ ? place.host : ListenHost(place.host);
    options.port = place.port;
    absl::StatusOr<std::unique_ptr<StoreServer>> server =
        StoreServer::Start(options);
    if (server.ok()) {
      server_ = *std::move(server);
      return absl::OkStatus();
    }
    status = server.status();
  }
  return status;
}

absl::Status Meeting::Serve() {
  StoreServerOptions server;
  server.world_size = options_.place.world_size;
  server.attempt = options_.place.attempt;
  server.token = options_.token;
  server.port_remedy =
      absl::StrCat("(", options_.place.source, " gives it: MASTER_PORT)");
  if (by_file_ && server.token.empty()) server.token = NewToken();
  HT_RETURN_IF_ERROR(StartServer(server));
  client_options_.address = server_->address();
  if (client_options_.address.host.empty() ||
      client_options_.address.host == "0.0.0.0" ||
      client_options_.address.host == "::") {
    client_options_.address.host = "127.0.0.1";
  }
  client_options_.token = server.token;
  if (!by_file_) return absl::OkStatus();
  HT_ASSIGN_OR_RETURN(meeting_file_, MeetingFile(options_.tmp_dir, Job()));
  unlinked_if_ended_ = std::make_unique<UnlinkedIfEnded>(meeting_file_);
  return WriteMeetingFile(meeting_file_,
                          {client_options_.address, server.token});
}

// A file may be there from a run that ended badly: try until it is replaced.
absl::Status Meeting::FindByFile() {
  const RankPlacement& place = options_.place;
  HT_ASSIGN_OR_RETURN(const std::string file,
                      MeetingFile(options_.tmp_dir, Job()));
  absl::Status last =
      CommunicationError("rank 0 has not left its address in ", file);
  while (MonotonicTime::Now() < deadline_) {
    const std::optional<MeetingPoint> point = ReadMeetingFile(file);
    if (point) {
      client_options_.address = point->address;
      client_options_.token = point->token;
      absl::StatusOr<std::unique_ptr<StoreClient>> client =
          StoreClient::Connect(
              client_options_,
              std::min(deadline_, MonotonicTime::Now() + 10 * kLook));
      if (client.ok()) {
        store_ = *std::move(client);
        return absl::OkStatus();
      }
      last = client.status();
    }
    absl::SleepFor(kLook);
  }
  return CommunicationError(
      "rank ", place.rank, " of ", place.world_size,
      " did not find rank 0 on this machine within ",
      absl::FormatDuration(options_.timeout), ": ", last.message(),
      "; is rank 0 running? Ranks of several machines, users or containers "
      "need the same HALFTONE_TOKEN and a MASTER_ADDR that all reach");
}

// Another program may be at some of them, and may say nothing.
absl::Status Meeting::FindAmongPlaces() {
  absl::Status last = CommunicationError("no time to look for rank 0");
  for (absl::Duration patience = kLook; MonotonicTime::Now() < deadline_;
       patience = std::min(2 * patience, 20 * kLook)) {
    for (const HostPort& place : Places()) {
      client_options_.address = place;
      absl::StatusOr<std::unique_ptr<StoreClient>> client =
          StoreClient::Connect(
              client_options_,
              std::min(deadline_, MonotonicTime::Now() + patience));
      if (client.ok()) {
        store_ = *std::move(client);
        return absl::OkStatus();
      }
      last = client.status();
    }
  }
  const std::vector<HostPort> places = Places();
  return CommunicationError(
      "rank ", options_.place.rank, " of ", options_.place.world_size,
      " did not find rank 0 at ", ToString(places.front()), " to ",
      places.back().port, " within ", absl::FormatDuration(options_.timeout),
      " (", last.message(), "); is it running?");
}

absl::Status Meeting::AwaitAll() {
  std::vector<std::string> keys;
  for (int r = 0; r < options_.place.world_size; ++r) {
    keys.push_back(MemberKey(r));
  }
  while (true) {
    const absl::Duration left =
        std::max(deadline_ - MonotonicTime::Now(), absl::ZeroDuration());
    HT_ASSIGN_OR_RETURN(WaitResult all,
                        store_->Wait(keys, std::min(left, 2 * kLook)));
    if (all.missing.empty()) break;
    HT_ASSIGN_OR_RETURN(std::optional<std::string> failure,
                        store_->Get(kFailureKey));
    if (failure) {
      return CommunicationError("while the ranks came together: ",
                                RunFailureFromText(*failure).text);
    }
    if (left > absl::ZeroDuration()) continue;
    RunFailure late;
    for (std::string& key : all.missing) {
      key = std::string(absl::StripPrefix(key, "member/"));
      int rank = 0;
      if (absl::SimpleAtoi(key, &rank)) late.suspects.push_back(rank);
    }
    late.text = absl::StrCat(
        all.missing.size() == 1 ? "rank " : "ranks ", RangesOf(late.suspects),
        " of ", keys.size(), " did not arrive at ", ToString(master()),
        " within ", absl::FormatDuration(options_.timeout));
    // So that whoever supervises blames them, not who waited.
    (void)store_->Fail(late);
    return CommunicationError(
        late.text,
        "; all ranks must be started with the same world size and address "
        "(wait longer: --connect-timeout SECONDS)");
  }
  if (!meeting_file_.empty()) unlink(meeting_file_.c_str());
  unlinked_if_ended_.reset();
  return absl::OkStatus();
}

absl::Status Meeting::FindOwnAddress() {
  const int rank = options_.place.rank;
  const std::string mine = options_.own_address.empty() ? store_->local_host()
                                                        : options_.own_address;
  HT_RETURN_IF_ERROR(store_->Set(AddressKey(rank), mine));
  std::vector<std::string> keys;
  for (int r = 0; r < options_.place.world_size; ++r) {
    keys.push_back(AddressKey(r));
  }
  HT_ASSIGN_OR_RETURN(
      WaitResult all,
      store_->Wait(keys,
                   std::max(deadline_ - MonotonicTime::Now(), 10 * kLook)));
  if (!all.missing.empty()) {
    return CommunicationError(
        "ranks came together but did not tell their "
        "addresses in time");
  }
  own_address_ = mine;
  const bool some_elsewhere =
      std::any_of(all.values.begin(), all.values.end(),
                  [](const std::string& host) { return !IsLoopback(host); });
  if (!IsLoopback(mine) || !some_elsewhere) return absl::OkStatus();
  // This rank is on the store's machine, which others reach from outside.
  HT_ASSIGN_OR_RETURN(std::optional<std::string> reached,
                      store_->Get(kReachedKey));
  if (reached) own_address_ = *reached;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<StoreClient>> Meeting::ConnectWatcher() const {
  StoreClientOptions options = client_options_;
  options.is_member = false;
  return StoreClient::Connect(
      options, std::max(deadline_, MonotonicTime::Now() + 10 * kLook));
}

Meeting::~Meeting() {
  if (store_ != nullptr) (void)store_->Bye();
  if (!meeting_file_.empty()) unlink(meeting_file_.c_str());
  if (server_ == nullptr) return;
  const MonotonicTime start = MonotonicTime::Now();
  while (!server_->members().empty()) {
    const absl::Duration patience =
        server_->failure() ? kLingerAfterFailure : kLinger;
    if (MonotonicTime::Now() - start > patience) break;
    absl::SleepFor(kLook / 10);
  }
}

}  // namespace runtime
}  // namespace halftone
