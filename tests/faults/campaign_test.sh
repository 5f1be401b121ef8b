#!/bin/bash
# The short form of each campaign.
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
campaign() { tests/faults/campaign.py --binary tools/halftone --slack 20 "$@"; }
campaign saves --trials 6
campaign ranks --trials 3
if unshare --net true; then
  campaign nodes --trials 3
else
  echo "no nodes: network namespaces are not permitted here"
fi
campaign runs --trials 1
campaign strangers --trials 1 --epochs 100
campaign soak --minutes 0.1
