#ifndef HALFTONE_GRAPH_IR_SHARD_FEED_H_
#define HALFTONE_GRAPH_IR_SHARD_FEED_H_

namespace halftone {

// An implicit feed as those of well_known.h, of programs that sum virtual
// shards alone. i64[]: which of its rank's shards of a step it is, from 0.
inline constexpr char kShard[] = "@shard";

}  // namespace halftone

#endif  // HALFTONE_GRAPH_IR_SHARD_FEED_H_
