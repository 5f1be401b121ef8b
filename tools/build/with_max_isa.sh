#!/bin/bash
# with_max_isa.sh ISA COMMAND...: as on a processor that has no more than
# oneDNN's ISA (AVX2, SSE41 ...), for its kernels and ours.
export ONEDNN_MAX_CPU_ISA=$1
shift
exec "$@"
