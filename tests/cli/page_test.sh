#!/bin/bash
# Drives the pages of inspect --html, diff --html and report in headless Chromium:
# they draw, find, unfold and explain, and no script of theirs fails. Passes where there is
# no Chromium, and says so.
set -eu
work=$(mktemp -d -p "${TEST_TMPDIR:-/tmp}")
fail() { echo "page_test: $*" >&2; exit 1; }
chromium=$(command -v chromium || command -v chromium-browser || true)
if [ -z "$chromium" ]; then
  echo "skipped: no chromium on PATH"
  exit 0
fi

# The document after its scripts and `$2` have run, in a window of 1200x900.
after() {
  local page=$work/page.html
  SCRIPT="<script>try{$2}catch(e){document.body.dataset.said='threw '+e}</script>" \
    awk '{ at = index($0, "</body>")
           if (at == 0) print
           else print substr($0, 1, at - 1) ENVIRON["SCRIPT"] substr($0, at) }' \
    "$1" >"$page"
  HOME=$work "$chromium" --headless --no-sandbox --disable-gpu \
    --user-data-dir="$work/profile" --window-size=1200,900 \
    --enable-logging=stderr --virtual-time-budget=2000 --dump-dom \
    "file://$page" 2>"$work/log.txt" || fail "chromium: $(tail -5 "$work/log.txt")"
  ! grep -i 'uncaught' "$work/log.txt" >&2 || fail "a script failed"
}
said() { grep -o 'data-said="[^"]*"' | sed 's/^data-said="//; s/"$//'; }

# 10,000 ops in 100 scopes.
{
  echo 'name: "deep" feed { name: "v0" dtype: F32 dims: [-1, 8] }'
  echo 'param { name: "w" dims: [8, 8] init { constant: 1 } }'
  awk 'BEGIN { for (i = 1; i <= 10000; ++i) {
    scope = "layer" int((i - 1) / 100)
    if (i % 2) printf "op { name: \"%s/m%d\" type: \"matmul\" in { slot: \"X\" var: \"v%d\" } in { slot: \"Y\" var: \"w\" } out { slot: \"Out\" var: \"v%d\" } }\n", scope, i, i - 1, i
    else printf "op { name: \"%s/s%d\" type: \"softmax\" in { slot: \"X\" var: \"v%d\" } out { slot: \"Out\" var: \"v%d\" } }\n", scope, i, i - 1, i
  } }'
  echo 'output: "v10000"'
} >"$work/deep.pbtxt"
tools/halftone inspect "$work/deep.pbtxt" --level O1 --html >"$work/deep.html"
bytes=$(wc -c <"$work/deep.html")
[ "$bytes" -le 5000000 ] || fail "10,000 ops take $bytes bytes"

after "$work/deep.html" "
  const found = document.getElementById('find');
  const rows = () => document.querySelectorAll('.row').length;
  const folded = rows();
  found.value = 'layer57/s5750';
  found.dispatchEvent(new Event('input'));
  found.dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter'}));
  document.body.dataset.said = [folded, rows(),
    document.getElementById('found').textContent,
    document.querySelectorAll('.hit.chosen').length,
    document.querySelectorAll('circle.mark').length > 0,
    document.getElementById('detail').textContent.split('\\n')[0]].join('|');
" >"$work/deep.dom"
result=$(said <"$work/deep.dom")
case $result in
  *'|1 found; Enter: the next|1|true|layer57/s5750   softmax, forward, runs in f32') ;;
  *) fail "the drawing of 10,000 ops says: $result" ;;
esac
# Only what is in sight is in the document.
[ "${result%%|*}" -le 110 ] || fail "too many rows: $result"

# A model that trains: backward ops beside forward ones.
tools/halftone inspect models/mnist_convnet.pbtxt \
  --strategy models/mnist_o1.pbtxt --html >"$work/convnet.html"
after "$work/convnet.html" "
  const box = [...document.querySelectorAll('.box')]
    .find(b => b.textContent.startsWith('conv1 '));
  box.click();
  const casts = document.getElementById('detail').textContent;
  const bucket = [...document.querySelectorAll('.box.sent')]
    .find(b => b.textContent === 'all_reduce of gradient f16, 56.5 KiB, 6 values');
  bucket.click();
  document.body.dataset.said = [document.querySelectorAll('.half .box').length > 5,
    document.querySelectorAll('.edge.to-low').length > 0,
    casts.includes('x.cast_fp16: f32 to f16'),
    document.querySelectorAll('.edge.sent.lit').length,
    document.getElementById('detail').textContent
      .includes('sends     conv1.w.cast_fp16.grad   of conv1.grad')].join('|');
" >"$work/convnet.dom"
result=$(said <"$work/convnet.dom")
[ "$result" = 'true|true|true|6|true' ] || fail "the drawing of the convnet: $result"

# Two programs as one drawing: one of 10,000 ops, within bounds, and one that
# trains, with casts of either.
difference() { # PAGE BEFORE AFTER [flags]: they differ
  local page=$1 code=0
  shift
  tools/halftone diff "$@" --html "$page" >"$work/diff.txt" || code=$?
  [ $code = 3 ] || fail "diff $*: exit $code"
}
tools/halftone compile "$work/deep.pbtxt" --level O1 --black-op 'layer42/m4201' \
  --target cpu -o "$work/black.htc" >"$work/compile.txt"
tools/halftone compile "$work/deep.pbtxt" --level O1 --target cpu \
  -o "$work/deep.htc" >"$work/compile.txt"
begin=$(date +%s%N)
difference "$work/both.html" "$work/deep.htc" "$work/black.htc"
ms=$((($(date +%s%N) - begin) / 1000000))
echo "diff --html of 10,000 ops: $ms ms"
bytes=$(wc -c <"$work/both.html")
[ "$bytes" -le 5000000 ] || fail "two programs of 10,000 ops take $bytes bytes"
after "$work/both.html" "
  document.getElementById('next').click();
  document.body.dataset.said = [
    document.querySelectorAll('.box.changed.chosen').length,
    document.querySelectorAll('.row').length < 111,
    document.getElementById('detail').textContent.split('\\n')
      .filter((line, i) => i === 0 || line.startsWith('was')).join('; ')].join('|');
" >"$work/both.dom"
result=$(said <"$work/both.dom")
[ "$result" = '1|true|layer42/m4201   matmul, forward, runs in f32, precision changed; was       matmul in f16, WHITE_LIST' ] ||
  fail "the drawing of two programs of 10,000 ops: $result"
tools/halftone compile models/mnist_convnet.pbtxt --strategy \
  models/mnist_o1.pbtxt --target cpu -o "$work/a.htc" >"$work/compile.txt"
tools/halftone compile "$work/a.htc" --black matmul -o "$work/b.htc" \
  >"$work/compile.txt"
difference "$work/two.html" "$work/a.htc" "$work/b.htc"
after "$work/two.html" "
  const found = document.getElementById('find');
  found.value = 'precision changed';
  found.dispatchEvent(new Event('input'));
  const keys = [...document.querySelectorAll('.key')].map(k => k.textContent);
  const fc = [...document.querySelectorAll('.box')]
    .find(b => b.textContent.startsWith('~ fc '));
  fc.click();
  document.body.dataset.said = [parseInt(found.parentNode
      .querySelector('#found').textContent) > 2,
    document.querySelectorAll('.edge.come').length > 0,
    document.querySelectorAll('.mark.gone').length > 0,
    keys.some(k => /^casts only after .* [1-9]/.test(k)),
    document.getElementById('detail').textContent
      .includes('+ flat   through flat.cast_fp32: f16 to f32')].join('|');
" >"$work/two.dom"
result=$(said <"$work/two.dom")
[ "$result" = 'true|true|true|true|true' ] ||
  fail "the drawing of two programs: $result"

# The curves of a run under the pointer.
tools/halftone run models/mnist_convnet.pbtxt --strategy models/mnist_o1.pbtxt \
  --data idx:models/digits --set train.epochs=1 --log-every 1 \
  --out "$work/run" >/dev/null 2>&1
tools/halftone report "$work/run" -o "$work/run.html" 2>/dev/null
after "$work/run.html" "
  const chart = document.querySelector('svg.chart');
  const box = chart.getBoundingClientRect();
  chart.dispatchEvent(new PointerEvent('pointermove',
    {clientX: box.left + box.width / 2, clientY: box.top + 20}));
  document.body.dataset.said =
    chart.parentNode.querySelector('.at').textContent;
" >"$work/run.dom"
said <"$work/run.dom" | grep -qE '^step 1[0-9]; .* loss [0-9.]+' ||
  fail "under the pointer: $(said <"$work/run.dom")"
