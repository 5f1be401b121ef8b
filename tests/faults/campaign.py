#!/usr/bin/env python3
"""Kills, hangs and restarts of real runs, as many as asked for.

    bazel build //tools:halftone
    tests/faults/campaign.py saves --trials 5000   # kill -9 while it saves
    tests/faults/campaign.py ranks --trials 1000   # a rank or the launcher goes
    tests/faults/campaign.py nodes --trials 200    # of two nodes, or one of them
    tests/faults/campaign.py runs --trials 200     # until runs end all the same
    tests/faults/campaign.py strangers --trials 50 # at every port of a run
    tests/faults/campaign.py soak --minutes 60     # does anything grow?

What is drawn follows from --seed and the trial's number. A trial that breaks a
promise is printed and leaves its directory; the exit status is 1 then. The last
line says how many there were and what they took.
"""
import argparse
import glob
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import nodes
import strangers

MODEL = "models/mlp.pbtxt"
FLAGS = ["--strategy", "models/mnist_fp32.pbtxt", "--level", "O1",
         "--threads", "1"]
FEW = ["--data", "synthetic:256"]  # 4 steps
# The latest 2^20 steps' times are kept for the quantiles at the end.
KIB_OF_STEP_TIMES = 4096
# What strangers may cost a process: 512 connections of at most a kilobyte
# before they have shown the token, and what is read of a socket at once; an
# endless one sends three times as much as this.
KIB_OF_STRANGERS = 4096


class Broken(Exception):
    """A promise that does not hold."""


def require(holds, what):
    if not holds:
        raise Broken(what)


class Run:
    """A run into one directory, by itself or of several launched ranks."""

    def __init__(self, binary, out, ranks, *flags, launch=(), env=None,
                 on=()):
        command = [*on, binary]
        if ranks:
            command += ["launch", "--ranks", str(ranks), *launch]
        command += ["run", MODEL, *FLAGS, "--out", out, *flags]
        self.out = out
        self.log = tempfile.NamedTemporaryFile(
            "w+", prefix=out + ".", suffix=".log", encoding="utf-8",
            delete=False)
        self.process = subprocess.Popen(
            command, stdout=self.log, stderr=subprocess.STDOUT,
            env={**os.environ, **(env or {})})

    def pids(self):
        """Of this run's processes, which all have its directory's name."""
        return pids_with(lambda words: self.out.encode() in words)

    def ranks(self):
        """Pids of those that train."""
        ranks = []
        for pid in self.pids():
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    if b"launch" not in file.read().split(b"\0"):
                        ranks.append(pid)
            except OSError:
                pass
        return ranks

    def steps(self):
        return sorted(int(path.rsplit("-", 1)[1]) for path in
                      glob.glob(f"{self.out}/ckpt/step-*"))

    def await_step(self, step):
        while (self.steps() or [0])[-1] < step:
            require(self.process.poll() is None,
                    f"it ended with {self.process.returncode} before step "
                    f"{step}: {self.text()}")
            time.sleep(0.01)

    def text(self):
        """The end of what it has said."""
        with open(self.log.name, encoding="utf-8", errors="replace") as file:
            return file.read()[-2000:]

    def end(self, seconds=None):
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Broken(f"it goes on after {seconds} s: {self.text()}")
        self.log.close()
        return code


def pids_with(tells):
    """Of processes by the words of their commands."""
    found = []
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as file:
                words = file.read().split(b"\0")
        except OSError:
            continue
        if tells(words) and not is_zombie(path):
            found.append(int(path.split("/")[2]))
    return found


def is_zombie(path):
    try:
        with open(os.path.join(os.path.dirname(path), "stat"),
                  encoding="utf-8", errors="replace") as file:
            return file.read().rsplit(")", 1)[1].split()[0] in "ZX"
    except OSError:
        return True


def hurt(pid, fault):
    """What happens to a rank; "out of memory" is that it gets no more."""
    if fault == "out of memory":
        with open(f"/proc/{pid}/statm", encoding="utf-8") as file:
            size = int(file.read().split()[0]) * resource.getpagesize()
        resource.prlimit(pid, resource.RLIMIT_AS, (size, size))
        return
    os.kill(pid, {"killed": signal.SIGKILL, "stopped": signal.SIGSTOP}[fault])


def needs_none(*runs):
    """Whether they go on, as steps take no memory anew; they are ended then."""
    time.sleep(1.5)
    if any(run.process.poll() is not None for run in runs):
        return False
    for run in runs:
        run.process.terminate()
        run.end(60)
    shutil.rmtree(runs[0].out)
    return True


def hashes(out):
    """Of all tensors of each whole checkpoint, by step."""
    found = {}
    for path in glob.glob(f"{out}/ckpt/step-*/manifest.json"):
        try:
            with open(path, encoding="utf-8") as file:
                manifest = json.loads(file.readline())
        except (OSError, ValueError):
            continue
        found[manifest["step"]] = manifest["files"][0]["xxh64_tensors"]
    return found


class Campaign:
    def __init__(self, arguments, directory):
        self.arguments, self.directory = arguments, directory
        self.binary = os.path.abspath(arguments.binary)
        self.known = {}
        self.quiet_kib = 0  # of a run without strangers
        self.seen = 0  # step events of soak's lives so far

    def new(self, name):
        return os.path.join(self.directory, name)

    def reference(self, ranks, epochs, every=1):
        """What an undisturbed run holds after each so many steps."""
        if (ranks, epochs) not in self.known:
            run = Run(self.binary, self.new(f"whole-{ranks}-{epochs}"), ranks,
                      "--epochs", str(epochs), *FEW, "--checkpoint-every",
                      str(every), "--eval-every", "never", "--keep", "1000000")
            require(run.end() == 0, f"undisturbed: {run.text()}")
            self.known[ranks, epochs] = hashes(run.out)
            shutil.rmtree(run.out)
        return self.known[ranks, epochs]

    def same(self, out, ranks, epochs, every=1):
        """All checkpoints that there are, beside those of the reference."""
        expected = self.reference(ranks, epochs, every)
        for step, tensors in hashes(out).items():
            require(tensors == expected.get(step),
                    f"step {step} is not bit for bit that of a whole run")

    # ---- kill -9 at any instant of one run that saves after each step.

    def saves(self, number, draw):
        epochs = 15
        out = self.new("saves")  # goes on from trial to trial
        resumes = os.path.exists(out)
        run = Run(self.binary, out, 0, "--epochs", str(epochs), *FEW,
                  "--checkpoint-every", "1", "--eval-every", "never",
                  *(["--resume"] if resumes and hashes(out) else []))
        try:
            code = run.process.wait(draw.uniform(0.05, 0.6))
        except subprocess.TimeoutExpired:
            run.process.kill()
            code = run.end()
        if code == -signal.SIGKILL:
            self.same(out, 0, epochs)
            if not hashes(out):
                shutil.rmtree(out, ignore_errors=True)
            return None
        require(code == 0, f"it ended with {code}: {run.text()}")
        self.same(out, 0, epochs)
        require(max(hashes(out)) == max(self.reference(0, epochs)),
                "its last step is missing")
        shutil.rmtree(out)
        return self.saves(number, draw)  # that was none: it had ended

    # ---- One of several ranks, or who watches over them, goes.

    def ranks(self, number, draw):
        world = draw.choice([2, 3, 4])
        fault = draw.choice(["killed", "killed", "stopped", "launcher killed",
                             "out of memory"])
        run = Run(self.binary, self.new(f"ranks-{number}"), world, "--epochs",
                  "1000000", *FEW, "--checkpoint-every", "1", "--eval-every",
                  "never", "--timeout", "2")
        run.await_step(draw.randint(1, 4))
        time.sleep(draw.uniform(0, 0.1))
        ranks = run.ranks()
        require(len(ranks) == world, f"{len(ranks)} ranks of {world}")
        pid = draw.choice(ranks)
        began = time.monotonic()
        if fault == "launcher killed":
            run.process.kill()
        else:
            hurt(pid, fault)
        if fault == "out of memory" and needs_none(run):
            return None
        code = run.end(60)
        while run.pids() and time.monotonic() - began < 60:
            time.sleep(0.01)
        took = time.monotonic() - began
        require(not run.pids(), f"{fault}: processes are left")
        limit = 2 + (2 if fault == "stopped" else 0) + self.arguments.slack
        require(took <= limit, f"{fault}: gone after {took:.2f} s")
        if fault != "launcher killed":
            self.blames(run, fault, pid)
            require(code != 0, f"{fault}: exit code 0")
        shutil.rmtree(run.out)
        return took

    def blames(self, run, fault, pid):
        with open(f"{run.out}/failure.json", encoding="utf-8") as file:
            failure = json.load(file)
        require(failure["pid"] == pid,
                f"{fault}: {failure['pid']} is blamed, it was {pid}: "
                f"{run.text()}")
        word = {"killed": "SIGKILL", "stopped": "hung",
                "out of memory": "out of memory"}[fault]
        require(word in failure["cause"],
                f"{fault}: the cause is said to be {failure['cause']}")

    # ---- The same of two nodes, and one that vanishes without a word.

    def nodes(self, number, draw):
        fault = draw.choice(["killed", "stopped", "out of memory",
                             "launcher killed", "vanished"])
        per_node, node = draw.choice([1, 2]), draw.choice([0, 1])
        out = self.new(f"nodes-{number}")
        with nodes.TwoNodes() as net:
            runs = [Run(self.binary, out, per_node, "--epochs", "1000000",
                        *FEW, "--checkpoint-every", "1", "--eval-every",
                        "never", "--timeout", "2", launch=[
                            "--nnodes", "2", "--node-rank", str(n), "--master",
                            f"{net.address(0)}:29500"], on=net.on(n),
                        env={"HALFTONE_TOKEN": "of the campaign"})
                    for n in range(2)]
            runs[0].await_step(draw.randint(1, 4))
            time.sleep(draw.uniform(0, 0.1))
            ranks = [pid for pid in runs[0].ranks() if net.has(node, pid)]
            require(len(ranks) == per_node, f"{len(ranks)} ranks on a node")
            pid = draw.choice(ranks)
            began = time.monotonic()
            if fault == "launcher killed":
                runs[node].process.kill()
            elif fault == "vanished":
                net.plug("down")
                for each in runs[0].pids():
                    if net.has(node, each):
                        os.kill(each, signal.SIGKILL)
            else:
                hurt(pid, fault)
            if fault == "out of memory" and needs_none(*runs):
                return None
            codes = [run.end(60) for run in runs]
            while runs[0].pids() and time.monotonic() - began < 60:
                time.sleep(0.01)
            took = time.monotonic() - began
        require(not runs[0].pids(), f"{fault}: processes are left")
        limit = 2 + self.arguments.slack
        limit += 2 if fault in ("stopped", "vanished") else 0
        require(took <= limit, f"{fault}: gone after {took:.2f} s")
        require(0 not in codes, f"{fault}: exit codes {codes}")
        if fault == "launcher killed":
            require("on another node" in runs[1 - node].text(),
                    f"{fault}: the other says {runs[1 - node].text()}")
        elif fault == "vanished":
            require("network" in runs[1 - node].text(),
                    f"{fault}: the other says {runs[1 - node].text()}")
        else:
            self.blames(runs[node], fault, pid)
        shutil.rmtree(out)
        return took

    # ---- Whole runs that lose ranks and end all the same.

    def runs(self, number, draw):
        world, epochs = draw.choice([1, 2, 3, 4]), 40
        kills = draw.randint(1, 3)
        out = self.new(f"runs-{number}")
        run = Run(self.binary, out, world, "--epochs", str(epochs), *FEW,
                  "--checkpoint-every", str(draw.choice([1, 3, 10])),
                  "--eval-every", "never", launch=["--max-restarts", "20"])
        for _ in range(kills):
            time.sleep(draw.uniform(0.2, 1.5))
            ranks = run.ranks()
            if run.process.poll() is None and ranks:
                try:
                    os.kill(draw.choice(ranks), signal.SIGKILL)
                except ProcessLookupError:
                    pass
        code = run.end()
        while code != 0 and "failed twice at" in run.text():
            # What dies again where it died is not started again by itself.
            run = Run(self.binary, out, world, "--epochs", str(epochs), *FEW,
                      "--eval-every", "never",
                      *(["--resume"] if hashes(out) else []))
            code = run.end()
        require(code == 0, f"it ended with {code}: {run.text()}")
        self.same(out, world, epochs)
        require(max(hashes(out)) == max(self.reference(world, epochs)),
                "its last step is missing")
        # More of it on other ranks: to the end, and each step once.
        other = draw.choice([w for w in (1, 2, 3, 4) if w != world])
        more = Run(self.binary, out, other, "--epochs", str(epochs + 2),
                   *FEW, "--eval-every", "never", "--resume")
        require(more.end() == 0, f"on {other} ranks: {more.text()}")
        require(max(hashes(out)) == (epochs + 2) * 4,
                f"on {other} ranks: it ends at step {max(hashes(out))}")
        shutil.rmtree(out)

    # ---- Strangers at every port of a run, from before its ranks meet on.

    def strangers(self, number, draw):
        world, epochs, every = 2, self.arguments.epochs, 50
        token = draw.randbytes(16).hex()
        self.quiet_kib = self.quiet_kib or self.peaks(
            Run(self.binary, self.new("quiet"), world, "--epochs", str(epochs),
                *FEW, "--eval-every", "never", env={"HALFTONE_TOKEN": token}))
        run = Run(self.binary, self.new(f"strangers-{number}"), world,
                  "--epochs", str(epochs), *FEW, "--checkpoint-every",
                  str(every), "--eval-every", "never", "--keep", "1000000",
                  env={"HALFTONE_TOKEN": token})
        with strangers.Strangers(run.pids, token.encode(), world,
                                 draw.randrange(2 ** 32)) as them:
            # Ranks that begin at once listen for one another so briefly that
            # no stranger finds them.
            self.delay(run, world - 1)
            kib = self.peaks(run)
        self.same(run.out, world, epochs, every)
        require(max(hashes(run.out)) == 4 * epochs, "its last step is missing")
        require(not them.admitted, f"admitted: {them.admitted}")
        require(not them.open_to_all, f"listens on {them.open_to_all}")
        for kind, times in them.came.items():
            require(times > 0 or kind == "peer replay", f"{kind}: nobody came")
        require(kib <= self.quiet_kib + KIB_OF_STRANGERS,
                f"a process had {kib} KiB, without strangers "
                f"{self.quiet_kib}")
        print(f"trial {number}: {sum(them.came.values()):,} came "
              f"({', '.join(f'{k} {n:,}' for k, n in them.came.items())}); "
              f"at most {kib:,} KiB, without them {self.quiet_kib:,}",
              flush=True)
        shutil.rmtree(run.out)

    def delay(self, run, rank):
        """Holds a rank back while others listen for it; most times it can."""
        over = time.monotonic() + 10
        pid, others, awaited = None, None, []
        while pid is None:
            require(run.process.poll() is None, f"it ended: {run.text()}")
            pid = self.pid_of(run, rank)
        while not awaited and time.monotonic() < over:
            # It goes on a moment at a time, to be held soon enough.
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.01)
            others = others or set(run.ranks()) - {pid}
            awaited = strangers.listeners(others)
            time.sleep(1 if awaited else 0)
            os.kill(pid, signal.SIGCONT)
            time.sleep(0.0005)

    def pid_of(self, run, rank):
        for pid in run.ranks():
            try:
                with open(f"/proc/{pid}/environ", "rb") as file:
                    words = file.read().split(b"\0")
            except OSError:
                continue
            if b"HALFTONE_RANK=%d" % rank in words:
                return pid
        return None

    def peaks(self, run):
        """Waits for a run that ends well; the most KiB of any process of it."""
        most = 0
        while run.process.poll() is None:
            for pid in run.pids():
                try:
                    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
                        peaks = [line.split()[1] for line in file
                                 if line.startswith("VmHWM:")]
                except OSError:
                    continue
                most = max([most] + [int(kib) for kib in peaks])
            time.sleep(0.02)
        require(run.end() == 0, f"it failed: {run.text()}")
        return most

    # ---- Long runs.

    def soak(self):
        """Four lives of one run; what it needs at the end of each."""
        out = self.new("soak")
        flags = ["--data", "synthetic:6400", "--epochs", "1000000",
                 "--checkpoint-every", "50", "--eval-every", "200",
                 "--log-every", "100"]
        lives, timed = 4, 0
        for life in range(lives):
            run = Run(self.binary, out, 0, *flags,
                      *(["--resume"] if life else []))
            seconds = 60 * self.arguments.minutes / lives
            samples = []
            began = time.monotonic()
            while time.monotonic() - began < seconds:
                time.sleep(seconds / 200)
                require(run.process.poll() is None, run.text())
                samples.append(self.needs(run.process.pid))
            run.process.kill()
            run.end()
            times, steps = self.step_ms(out, life)
            timed += len(times)
            self.steady(life, samples, times, steps)
        require(timed > 0, "no step was timed in all of it; give it --minutes")

    def needs(self, pid):
        """KiB resident and open files."""
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            status = dict(line.split(":", 1) for line in file)
        return (int(status["VmRSS"].split()[0]),
                len(os.listdir(f"/proc/{pid}/fd")))

    def step_ms(self, out, life):
        """Of each event of the latest life, and how many steps there were."""
        times, step = [], 0
        with open(f"{out}/metrics.jsonl", encoding="utf-8") as file:
            for line in file:
                if not line.endswith("}\n"):
                    break
                event = json.loads(line)
                if event["event"] == "step":
                    times.append(event["ms"]["step"])
                    step = event["step"]
        self.seen = self.seen if life else 0
        latest, self.seen = times[self.seen:], len(times)
        return latest, step

    def steady(self, life, samples, times, steps):
        """The last fifth beside the second one, by medians."""
        if not samples or not times:
            print(f"life {life + 1}: no step in it that was timed", flush=True)
            return
        def grew(values):
            fifth = max(1, len(values) // 5)
            early = sorted(values[fifth:2 * fifth] or values[:1])
            late = sorted(values[-fifth:])
            return early[len(early) // 2], late[len(late) // 2]
        kib, files, step = (grew([s[0] for s in samples]),
                            grew([s[1] for s in samples]), grew(times))
        print(f"life {life + 1}: resident {kib[0]} -> {kib[1]} KiB, files "
              f"{files[0]} -> {files[1]}, step {step[0]:.3f} -> {step[1]:.3f} "
              f"ms, step {steps:,}", flush=True)
        require(kib[1] <= 1.01 * kib[0] + KIB_OF_STEP_TIMES, "memory grows")
        require(files[1] <= files[0] + 1, "open files grow")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("what", choices=["saves", "ranks", "nodes", "runs",
                                         "strangers", "soak"])
    parser.add_argument("--binary", default="bazel-bin/tools/halftone")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=60, help="of soak")
    parser.add_argument("--epochs", type=int, default=2000,
                        help="of a run among strangers")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--slack", type=float, default=0,
                        help="seconds that a loaded machine may be late")
    arguments = parser.parse_args()
    directory = tempfile.mkdtemp(prefix="halftone-campaign-")
    campaign = Campaign(arguments, directory)
    if arguments.what == "soak":
        arguments.trials = 1
        trial = lambda number, draw: campaign.soak()
    else:
        trial = getattr(campaign, arguments.what)
    broken, took = 0, []
    for number in range(arguments.trials):
        try:
            seconds = trial(number,
                            random.Random(f"{arguments.seed} {number}"))
            took += [] if seconds is None else [seconds]
        except Broken as error:
            broken += 1
            print(f"trial {number}: {error}", flush=True)
            for pid in pids_with(lambda words: any(
                    word.startswith(directory.encode()) for word in words)):
                os.kill(pid, signal.SIGKILL)
    longest = f", the longest {max(took):.2f} s" if took else ""
    print(f"{arguments.what}: {arguments.trials} trials, {broken} broken"
          f"{longest}")
    if broken == 0:
        shutil.rmtree(directory)
    else:
        print(f"left: {directory}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
