"""What is asked of a random model: CHECKS, by the names that --only takes."""

import dataclasses
import json
import os
import random
import shlex
import shutil
import subprocess
import sys

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from random_training import MOMENTUM, RATE, Reference

sys.path.append(os.path.join(os.path.dirname(__file__), "..", "cli"))
import oracle_calls  # pylint: disable=wrong-import-position

# Of a loss, and of what a parameter moved: sums of some thousand products in
# f32. What PyTorch's own answers differ by counts as often as there are orders
# that might be worse than the three that are tried.
NEAR, NOISE = 3e-4, 10


@dataclasses.dataclass
class Low:
    """`share`: of a gradient's norm that may be off, beside four times what
    rounding the results of all ops and their gradients does to PyTorch's;
    `least`: of the norm of all, what a gradient is taken for that is smaller,
    such as that of a bias before a batch norm, where all cancels. `scale` of
    the loss: f16 holds values below random_graph.LARGEST so many times."""
    dtype: torch.dtype
    share: float
    least: float
    scale: float


MODERATE = 2.0**12  # a scaled gradient that overflows nowhere
LOW = {
    "fp16": Low(torch.float16, 0.1, 2.0**-9, 64.0),
    "bf16": Low(torch.bfloat16, 0.4, 2.0**-6, 1.0)
}


class Call:
    """A command, how it ended and what it said."""

    def __init__(self, words):
        self.command = " ".join(shlex.quote(word) for word in words)
        try:
            self.code, self.said = oracle_calls.run(words, timeout=300)
        except subprocess.TimeoutExpired:
            self.code, self.said = None, "no end after 300 s"


class Run(Call):
    """One `halftone run`, and what it left."""

    def __init__(self, folder, words):
        super().__init__(words)
        self.folder = folder
        if self.code != 0:
            return
        with open(os.path.join(folder, "summary.json")) as file:
            self.summary = json.load(file)
        events = oracle_calls.events(folder)
        steps = [one for one in events if one["event"] == "step"]
        self.losses = [float(step["loss"]) for step in steps]
        self.skipped = sum(one["event"] == "skip" for one in events)
        self.checkpoints = sorted(os.listdir(os.path.join(folder, "ckpt")),
                                  key=lambda name: int(name.split("-")[1]))
        self.state = load_file(
            os.path.join(folder, "ckpt", self.checkpoints[-1],
                         "state.safetensors"))

    def fetched(self):
        """What --fetch wrote of the first step."""
        return np.load(os.path.join(self.folder, "fetches", "step-1.npz"))


def bits(tensor):
    return tensor.reshape(-1).view(torch.uint8)


class Case:
    """A model in a folder of its own, and what its checks found."""

    def __init__(self, graph, folder, halftone, threads):
        self.graph, self.folder = graph, folder
        self.halftone, self.threads = halftone, threads
        with open(self.path("m.pbtxt"), "w") as file:
            file.write(graph.text())
        with open(self.path("s.pbtxt"), "w") as file:
            file.write("optimizer { momentum { momentum: %s } }\n"
                       "lr { base: %s }\ntrain { batch_size: %d seed: 1 }\n" %
                       (MOMENTUM, RATE, graph.batch))
        self.start = {**graph.parameters, **graph.statistics}
        save_file(
            {name: torch.tensor(v) for name, v in self.start.items()},
            self.path("start.safetensors"))
        np.savez(self.path("data.npz"), **graph.feeds)
        self.reference = Reference(graph)
        self.found = []
        self.base = self.run("base")
        # What is wrong without any setting is said once.
        self.sound = self.finished(self.base) and self.near(self.base)
        self.of_base, self.found = self.found, []

    def path(self, name):
        return os.path.join(self.folder, name)

    def model(self):
        return [
            self.path("m.pbtxt"), "--strategy",
            self.path("s.pbtxt"), "--target", "cpu"
        ]

    def run(self,
            name,
            *words,
            settings=(),
            epochs=1,
            resume=False,
            model=None,
            launch=()):
        """Trains the model into the folder `name`."""
        out = self.path(name)
        command = [self.halftone, *launch, "run", *(model or self.model())]
        command += [
            "--data", "npz:" + self.path("data.npz"), "--no-shuffle",
            "--log-every", "1", "--epochs",
            str(epochs), "--out", out
        ]
        if resume:
            command.append("--resume")
        else:
            shutil.rmtree(out, ignore_errors=True)
            command += ["--init", self.path("start.safetensors")]
        for setting in settings:
            command += ["--set", setting]
        if "--threads" not in words:
            command += ["--threads", str(self.threads)]
        return Run(out, command + list(words))

    def failures_of(self, check):
        """(what, command) for each that the check finds."""
        self.found = list(self.of_base) if check == "torch" else []
        if hasattr(self.base, "losses"):
            CHECKS[check](self, random.Random("%d %s" %
                                              (self.graph.seed, check)))
        return self.found

    def wrong(self, run, what):
        self.found.append((what, run.command))

    def finished(self, run, low=False):
        """Whether it trained, in as many bytes as were planned."""
        if run.code != 0:
            self.wrong(run, "exit code %s: %s" % (run.code, run.said[-900:]))
            return False
        peak, planned = (run.summary[k]
                         for k in ("peak_bytes", "planned_bytes"))
        if peak != planned:
            self.wrong(run, "peak %d bytes, planned %d" % (peak, planned))
        if not low and not all(np.isfinite(run.losses)):
            self.wrong(run, "losses %s" % run.losses)
        return True

    def same(self, run, other, low=False):
        """All losses and cells are those of `other`, bit by bit."""
        if not self.finished(run, low):
            return
        if str(run.losses) != str(other.losses):
            return self.wrong(
                run, "losses %s, not %s of %s" %
                (run.losses, other.losses, other.command))
        for name, value in other.state.items():
            if name not in run.state:
                return self.wrong(run, "no cell " + name)
            if not torch.equal(bits(run.state[name]), bits(value)):
                most = (run.state[name].double() - value.double()).abs().max()
                return self.wrong(
                    run, "cell %s differs by %.3g from that of %s" %
                    (name, most, other.command))

    def near(self, run, sound=True):
        """Whether losses and cells are PyTorch's; `sound`: the base's are."""
        expected, noise = self.reference.exact, self.reference.noise["state"]
        wrong = []
        if len(run.losses) != len(expected.losses):
            wrong.append("%d losses, not %d" %
                         (len(run.losses), len(expected.losses)))
        for i, (found, loss) in enumerate(zip(run.losses, expected.losses)):
            bound = NEAR * (abs(loss) + 0.1) + NOISE * self.reference.losses[i]
            if not abs(found - loss) <= bound:
                wrong.append("loss %d is %.9g, not %.9g, bound %.2g" %
                             (i, found, loss, bound))
        for name, value in expected.state.items():
            if name not in run.state:
                wrong.append("no cell " + name)
                continue
            off = np.abs(run.state[name].double().numpy() - value).max()
            moved = np.abs(value - self.start[name]).max()
            bound = NEAR * moved + NOISE * noise[name] + 1e-6 * max(
                1, np.abs(value).max())
            if not off <= bound:
                wrong.append("cell %s, which moved by %.3g, is off by %.3g, "
                             "bound %.2g" % (name, moved, off, bound))
        if wrong and sound:
            self.wrong(run, "not as PyTorch: " + "; ".join(wrong[:4]))
        return not wrong

    def finished_near(self, run):
        if self.finished(run):
            self.near(run, self.sound)


def check_torch(case, _):
    """The base run, which each case has."""


def check_fetch_all(case, _):
    """All values and gradients of the first step."""
    run = case.run("fetch_all", "--fetch", "v*:npz", "--fetch", "*.grad:npz")
    if not case.finished(run):
        return
    case.near(run, case.sound)
    exact, noise = case.reference.exact, case.reference.noise
    fetched = run.fetched()
    for name in fetched.files:
        kind, key = "values", name
        if name.endswith(".grad"):
            kind, key = "gradients", name[:-len(".grad")]
        expected = getattr(exact, kind).get(key)
        if expected is None:
            continue
        if fetched[name].shape != expected.shape:
            case.wrong(run, "%s has shape %s, not %s" %
                       (name, fetched[name].shape, expected.shape))
            continue
        off = np.abs(fetched[name].astype(np.float64) - expected).max(
            initial=0.0)
        bound = 1e-3 * (np.abs(expected).max(initial=0.0) +
                        1e-3) + NOISE * noise[kind][key]
        if not off <= bound:
            case.wrong(run, "%s is off by %.3g, bound %.2g" %
                       (name, off, bound))
            break  # those behind it are, too


def check_fetch_some(case, draw):
    """What is fetched lives on, and no fusion may lose it."""
    names = [name for op in case.graph.ops for name in op.made]
    words = ["--fetch", "*.grad:norm"]
    for name in draw.sample(names, 2):
        words += ["--fetch", name + ":npz"]
    case.finished_near(case.run("fetch_some", *words))


def check_compiled(case, _):
    """As it was saved and read again."""
    compiled = case.path("m.htc")
    oracle_calls.call(
        [case.halftone, "compile", *case.model(), "-o", compiled])
    case.same(case.run("compiled", model=[compiled]), case.base)


def check_predict(case, _):
    """All samples at test time, in batches and on ranks."""
    if case.graph.mixes_samples:
        return
    expected, noise = case.reference.predicted()
    bound = NEAR * (np.abs(expected).max() + 0.1) + NOISE * noise
    for words in ["--ranks", "1"], ["--ranks", "2"]:
        made = Call([
            case.halftone, "predict", *case.model(), "--init",
            case.path("start.safetensors"), "--data",
            "npz:" + case.path("data.npz"), "--threads",
            str(case.threads), "-o",
            case.path("out.npz"), *words
        ])
        if made.code != 0:
            case.wrong(made, "exit code %s: %s" % (made.code, made.said))
            continue
        found = np.load(case.path("out.npz"))[case.graph.output]
        if found.shape != expected.shape:
            case.wrong(
                made,
                "output of %s, not %s" % (found.shape, expected.shape))
        elif not np.abs(found - expected).max() <= bound:
            case.wrong(
                made, "output is off by %.3g, bound %.2g" %
                (np.abs(found - expected).max(), bound))


def check_recompute(case, draw):
    case.same(case.run("recompute", settings=["memory.recompute.within=1"]),
              case.base)
    names = [op.made[0] for op in case.graph.ops[:-3]]
    if names:
        at = "memory.recompute.checkpoints=" + draw.choice(names)
        case.same(case.run("recompute_at", settings=[at]), case.base)


def check_budget(case, _):
    planned = case.base.summary["planned_bytes"]
    for share in (0.95, 0.85, 0.7):
        budget = int(planned * share)
        run = case.run("budget%g" % share, "--memory-budget", str(budget))
        if run.code != 0 and "cannot be met" in run.said:
            continue
        case.same(run, case.base)
        if run.code == 0 and run.summary["peak_bytes"] > budget:
            case.wrong(run, "peak %d bytes" % run.summary["peak_bytes"])


def check_threads(case, _):
    case.finished_near(case.run("threads", "--threads", "3"))


def gradients_off(found, exact, low):
    """By name, as shares of the gradients' norms."""
    norms = {n: np.linalg.norm(g) for n, g in exact.gradients.items()}
    least = low.least * sum(n**2 for n in norms.values())**0.5 + 1e-6
    off = {}
    for name, gradient in exact.gradients.items():
        if name in found:
            # What is fetched may be the scaled loss's.
            difference = min(
                np.linalg.norm(found[name] / by - gradient)
                for by in (1.0, low.scale))
            off[name] = difference / max(norms[name], least)
    return off


def check_level(case, draw, level, dtype):
    low, exact = LOW[dtype], case.reference.exact
    rounded = case.reference.of_rounded(low.dtype, low.scale)
    settings = [
        "amp.level=" + level, "amp.dtype=" + dtype
    ] + ["amp.loss_scaling.init_loss_scaling=%g" % low.scale] * (low.scale > 1)
    if draw.random() < 0.4:
        settings.append("amp.precision_rule=" +
                        draw.choice(["any_low", "min_cost"]))
    if draw.random() < 0.2:
        settings.append("amp.op_lists=" +
                        draw.choice(["torch", "paddle", "apex", "fleetx"]))
    name = level + dtype
    run = case.run(name, "--fetch", "*.grad:npz", settings=settings)
    if not case.finished(run, low=True):
        return
    if not all(
            np.isfinite(v).all() for one in rounded
            for v in one.state.values()):
        return  # nothing is asked of what PyTorch's numbers overflow in
    if run.skipped:
        if low.scale * max(one.steepest for one in rounded) < MODERATE:
            case.wrong(run, "%d steps skipped" % run.skipped)
        return
    bound = low.share * (abs(exact.losses[0]) + 0.1) + 4 * max(
        abs(one.losses[0] - exact.losses[0]) for one in rounded)
    if not abs(run.losses[0] - exact.losses[0]) <= bound:
        case.wrong(run, "first loss %.9g, not %.9g, bound %.2g" %
                   (run.losses[0], exact.losses[0], bound))
    noises = [gradients_off(one.gradients, exact, low) for one in rounded]
    noise = {n: max(one[n] for one in noises) for n in exact.gradients}
    fetched = {n[:-len(".grad")]: g for n, g in run.fetched().items()}
    wrong = [
        "%s by %.2g, bound %.2g" % (n, off, low.share + 4 * noise[n])
        for n, off in gradients_off(fetched, exact, low).items()
        if not off <= low.share + 4 * noise[n]
    ]
    if wrong:
        case.wrong(run, "gradients are off: " + "; ".join(wrong))
    plain = case.run(name + ".plain", settings=settings)
    if case.finished(plain, low=True):
        settings.append("memory.recompute.within=1")
        case.same(case.run(name + ".recompute", settings=settings), plain,
                  low=True)


def check_levels(case, draw):
    """Three of six."""
    levels = [(level, dtype) for level in ("O1", "O2", "O3") for dtype in LOW]
    for level, dtype in draw.sample(levels, 3):
        check_level(case, draw, level, dtype)


def check_ranks(case, draw):
    """Several ranks as one; their sums in order, sharded, recomputed."""
    if case.graph.mixes_samples:
        return
    ranks = ["--ranks", str(draw.choice([2, 2, 3]))]
    synced = (["dist.sync_batch_norm=true"]
              if case.graph.has_batch_norm else [])

    def run(name, *settings):
        return case.run(name, *ranks, settings=synced + list(settings))

    plain = run("ranks")
    case.finished_near(plain)
    if plain.code == 0:
        case.same(run("ranks.sharded", "dist.sharding.stage=1"), plain)
        case.same(run("ranks.recompute", "memory.recompute.within=1"), plain)
        case.same(
            case.run("ranks.launched",
                     settings=synced,
                     launch=["launch", *ranks]), plain)
    exact = run("ranks.exact", "dist.reduce=exact_order")
    case.finished_near(exact)
    if exact.code == 0:
        case.same(
            run("ranks.unfused", "dist.reduce=exact_order",
                "dist.fuse_all_reduce_ops=false"), exact)


def check_merge(case, draw):
    """Gradients of parts of a batch, added up."""
    if case.graph.mixes_samples or case.graph.has_batch_norm:
        return
    parts = min(case.graph.batch, draw.choice([2, 3, 4]))
    settings = ["dist.gradient_merge.k_steps=%d" % parts]
    plain = case.run("merge", settings=settings)
    case.finished_near(plain)
    case.finished_near(
        case.run("merge.ranks", "--ranks", "2", settings=settings))
    if plain.code == 0:
        settings.append("memory.recompute.within=1")
        case.same(case.run("merge.recompute", settings=settings), plain)


def check_shards(case, draw):
    """Virtual shards are the same on as many ranks as like."""
    if case.graph.mixes_samples:
        return
    shards = draw.choice([2, 4])
    if shards > case.graph.batch:
        shards = min(2, case.graph.batch)
    settings = ["dist.virtual_shards=%d" % shards]
    low = draw.random() < 0.4
    if low:
        settings.append("amp.level=O1")
    one = case.run("shards", settings=settings)
    if not case.finished(one, low):
        return
    if not low and not case.graph.has_batch_norm:
        case.near(one, case.sound)
    if shards > 1:
        case.same(case.run("shards.2", "--ranks", "2", settings=settings), one,
                  low)
    if shards == 4:
        settings.append("dist.sharding.stage=1")
        case.same(case.run("shards.4", "--ranks", "4", settings=settings), one,
                  low)


def mixed_settings(case, draw):
    """Of several parts of the strategy at once, with words for the ranks."""
    settings, words = [], []
    optimizer = draw.choice(["adam", "adamw", "lamb", "lion", "rmsprop"])
    if draw.random() < 0.7:
        settings.append("optimizer.%s=" % optimizer)
    if draw.random() < 0.6:
        settings.append("amp.level=" + draw.choice(["O1", "O2", "O3"]))
    if draw.random() < 0.2:
        settings.append("optimizer.ema.decay=0.9")
    if draw.random() < 0.3:
        settings.append("optimizer.clip.global_norm=0.5")
    if draw.random() < 0.4 and not case.graph.mixes_samples:
        words += ["--ranks", "2"]
        if draw.random() < 0.5 and optimizer != "lamb":  # norms want it whole
            settings.append("dist.sharding.stage=1")
        if case.graph.has_batch_norm:
            settings.append("dist.sync_batch_norm=true")
        elif draw.random() < 0.3 and case.graph.batch > 1:
            settings.append("dist.gradient_merge.k_steps=2")
    return settings, words


def check_resume(case, draw):
    """From a checkpoint on all is as if nothing had happened, whatever is set;
    and as recomputed."""
    settings, words = mixed_settings(case, draw)
    words += ["--checkpoint-every", "1", "--keep", "100"]
    whole = case.run("whole", *words, settings=settings, epochs=2)
    if not case.finished(whole, low=True) or len(whole.checkpoints) < 2:
        return
    kept = draw.randrange(1, len(whole.checkpoints))
    shutil.rmtree(case.path("resumed"), ignore_errors=True)
    shutil.copytree(whole.folder, case.path("resumed"))
    for name in whole.checkpoints[kept:]:
        shutil.rmtree(os.path.join(case.path("resumed"), "ckpt", name))
    case.same(
        case.run("resumed", *words, settings=settings, epochs=2, resume=True),
        whole,
        low=True)
    settings.append("memory.recompute.within=1")
    case.same(
        case.run("whole.recompute", *words, settings=settings, epochs=2),
        whole,
        low=True)


CHECKS = {
    "torch": check_torch,
    "fetch_all": check_fetch_all,
    "fetch_some": check_fetch_some,
    "predict": check_predict,
    "compiled": check_compiled,
    "recompute": check_recompute,
    "budget": check_budget,
    "threads": check_threads,
    "levels": check_levels,
    "ranks": check_ranks,
    "merge": check_merge,
    "shards": check_shards,
    "resume": check_resume,
}
