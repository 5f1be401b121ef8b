// The heap of a process that ends with its one task.
#ifndef HALFTONE_GRAPH_BASE_SYSTEM_HEAP_H_
#define HALFTONE_GRAPH_BASE_SYSTEM_HEAP_H_

#include <cstdint>

namespace halftone {

// What is freed stays with the process, as it is soon wanted again; the heap
// grows in large steps, large objects lie in it, too, and the first `bytes`, of
// which no more than a gigabyte count, are of huge pages where the system lends
// them. To be called before other threads begin; changes nothing but times, and
// nothing at all where the address space is limited below that.
void KeepHeap(int64_t bytes);

}  // namespace halftone

#endif  // HALFTONE_GRAPH_BASE_SYSTEM_HEAP_H_
