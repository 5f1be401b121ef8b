"""Precisions and casts beside Paddle's own rewriting of the same programs.

paddle_rewrite_oracle.py HALFTONE [--only NET,NET]: builds the nets of
paddle_nets.py, rewrites each by Paddle and compiles what `halftone import`
makes of it with Paddle's lists. any_low has to equal the classic rewrite (a
black producer wins, else one low producer is enough, else left alone).
all_low has to equal the rule of docs/design.md, evaluated here; 2.6's default is
another (the last input that an op made decides), evaluated here, too: what the two
evaluations say of an op is all in which ours may differ from Paddle's.
"""
import argparse
import collections
import contextlib
import json
import os
import re
import sys
import tempfile
from unittest import mock

try:
    import paddle
    from paddle.base import core
    from paddle.distributed.passes import auto_parallel_amp
    from paddle.static.amp import fp16_utils
    from paddle.static.amp.fp16_lists import AutoMixedPrecisionLists
except ImportError as error:
    print("skip", error)
    sys.exit()

import oracle_calls
import paddle_nets

LOW = core.VarDesc.VarType.FP16
# Precisions ("f16", "f32") by a value that the op makes; casts as (value, dtype,
# a value that the reader makes).
Decided = collections.namedtuple("Decided", "precisions casts")


def lists_of(name):
    lists = AutoMixedPrecisionLists(**paddle_nets.CUSTOM.get(name, {}))
    # Those of a build for CPUs, which has no f16 kernels, are nearly all ops.
    lists.unsupported_list = set()
    return lists


def found(program, verdicts):
    """What was decided; verdicts: by id of an op, whether it is low."""
    precisions, casts, sources = {}, set(), {}
    for block in program.blocks:
        for op in block.ops:
            outputs = op.output_arg_names
            # A conditional's branches' ops stand for themselves, an
            # assign_value is several of ours.
            if op.type in ("conditional_block", "assign_value"):
                continue
            if op.type == "cast" and ".cast_fp" in outputs[0]:
                dtype = "f16" if outputs[0].endswith("16") else "f32"
                sources[outputs[0]] = (op.input("X")[0], dtype)
                continue
            for name in outputs:
                precisions[name] = "f16" if verdicts.get(
                    op.desc.original_id()) else "f32"
                for read in op.input_arg_names:
                    if read in sources:
                        casts.add((*sources[read], name))
    return Decided(precisions, casts)


def by_last_input(program, lists):
    """2.6's default rewrite."""
    program, verdicts = program.clone(), {}
    insert = fp16_utils._insert_cast_op

    def watch(block, op, index, source, to):
        verdicts[op.desc.original_id()] = to == LOW
        return insert(block, op, index, source, to)

    with mock.patch.object(fp16_utils, "_insert_cast_op", watch):
        fp16_utils.cast_model_to_fp16(program, lists, use_fp16_guard=False,
                                      dest_type=LOW, level="O1")
    return found(program, verdicts)


def classic(program, lists):
    # Ours has constants in its place, which decide nothing, as fill_constant.
    lists.gray_list.add("assign_value")
    program = program.clone()
    context = mock.MagicMock()
    amp = mock.MagicMock(
        white_list=lists.white_list, black_list=lists.black_list,
        gray_list=lists.gray_list, black_varnames=lists.black_varnames,
        dtype="float16")
    names = lists.black_varnames or ()
    amp._is_in_black_fp32_varnames = lambda op: any(
        name in names for name in op.input_arg_names + op.output_arg_names)
    amp._op_keep_fp32_input = fp16_utils._keep_fp32_input
    amp._op_keep_fp32_output = fp16_utils._keep_fp32_output
    state = auto_parallel_amp.AMPState(program, amp, "float16", context)
    with contextlib.ExitStack() as stack:  # no devices here
        for name in ("naive_set_dist_op_attr_for_program_by_mesh_and_mapping",
                     "set_var_dist_attr"):
            stack.enter_context(mock.patch.object(auto_parallel_amp, name))
        state.build_state()
    return found(program, state._op_fp16_dict)


class Source:
    """Our program before its rewriting, from its dump; Paddle's constants."""

    def __init__(self, halftone, model, name, loss, program):
        self.given = {op.output_arg_names[0] for op in
                      program.global_block().ops if op.type == "assign_value"}
        self.custom = paddle_nets.CUSTOM.get(name, {})
        self.loss = loss
        schemas = json.loads(oracle_calls.call([halftone, "ops", "--json"]))
        self.schemas = {op["name"]: op for op in schemas["ops"]}
        words = [model, *LISTS, "--level", "O0"]
        facts = json.loads(
            oracle_calls.call([halftone, "inspect", *words, "--json"]))
        classes = {op["name"]: op["class"] for op in facts["ops"]}
        with tempfile.TemporaryDirectory() as dumps:
            oracle_calls.call([halftone, "compile", *words, "-o",
                               model + ".htc", "--dump-dir", dumps,
                               "--dump-after", "assign-precision"])
            (dump,) = os.listdir(dumps)
            with open(os.path.join(dumps, dump)) as file:
                text = file.read()
        self.floats = set(re.findall(r"([^\s=\[(]+) : f32\[", text))
        self.feeds = set(re.findall(r"feed (\S+) :", text))
        self.ops = [
            {"name": op[0], "type": op[1], "class": classes[op[0]],
             "inputs": slots(op[2]), "outputs": slots(op[3])}
            for op in re.findall(r"^  (\S+): (\w+)\((.*?)\) -> \((.*?)\)"
                                 r"(?= \{|   )", text, re.M)]
        self.made = {value: op for op in self.ops for value in outputs(op)}

    def color(self, op):
        """white, black or gray, as the user's lists have it."""
        values = inputs(op) + outputs(op)
        schema = self.schemas[op["type"]]
        names = {schema["name"], *schema["aliases"]}
        if not names.isdisjoint(self.custom.get("custom_black_list", ())) or (
                set(values) & set(self.custom.get("custom_black_varnames",
                                                  ()))):
            return "black"
        if not names.isdisjoint(self.custom.get("custom_white_list", ())):
            return "white"
        return op["class"]

    def own(self, op, which):
        """Floats that have the op's precision."""
        slots = {slot["name"]: slot for slot in
                 self.schemas[op["type"]][which]}
        return [value for slot, values in op[which].items()
                for value in values if value in self.floats
                and slots[slot]["type"] in ("T", "TOut")
                and not slots[slot]["keep_f32"]]


def slots(text):
    """"X=[a, b], Y=c : f32[2]" as {"X": ["a", "b"], "Y": ["c"]}."""
    text = re.sub(r" : \w+\[[^]]*\]", "", text)
    return {slot: (listed or value).split(", ") for slot, listed, value in
            re.findall(r"(\w+)=(?:\[([^]]*)\]|([^,\s]+))", text)}


def inputs(op):
    return sum(op["inputs"].values(), [])


def outputs(op):
    return sum(op["outputs"].values(), [])


def by_last_input_of(source):
    """Whether an op is low, by name."""
    low = {}
    for op in source.ops:
        color = source.color(op)
        low[op["name"]] = color == "white"
        reads = [value for value in inputs(op) if value in source.floats]
        if color != "gray" or not reads or (
                not source.given.isdisjoint(outputs(op))):
            continue
        makers = [source.made[value] for value in source.own(op, "inputs")
                  if value in source.made]
        # Casts, constants and what makes floats of something else decide
        # nothing.
        makers = [maker["name"] for maker in makers if maker["type"] != "cast"
                  and source.given.isdisjoint(outputs(maker))
                  and not source.floats.isdisjoint(inputs(maker))]
        low[op["name"]] = low[makers[-1]] if makers else True
    return low


def by_widest_input_of(source):
    """Whether an op is low, by name: all_low."""
    low, free, states = {}, [], {}
    for op in source.ops:
        name, color, state = op["name"], source.color(op), None
        reads = [value for value in inputs(op) if value in source.floats]
        own = source.own(op, "inputs")
        low[name] = color == "white" and bool(reads)
        if not reads and all(states.get(value) == "stored"
                             for value in inputs(op)):
            state = "stored"  # a constant
        elif color == "gray" and own:
            before = {states.get(value, "f32" if value in source.feeds
                                 else "stored") for value in own}
            if before <= {"stored", "free"}:
                state = "free"
                free.append(op)
            else:
                low[name] = "f32" not in before
        if source.loss in outputs(op):
            low[name] = False
        for value in outputs(op):
            states[value] = state or (
                "f16" if low[name] and value in source.own(op, "outputs")
                else "f32")
    for op in reversed(free):
        readers = [(reader, value) for value in outputs(op)
                   for reader in source.ops if value in inputs(reader)]
        low[op["name"]] = bool(readers) and all(
            low[reader["name"]] and value in source.own(reader, "inputs")
            for reader, value in readers)
    return low


def casts_of(source, low):
    """What the precisions ask for."""
    casts = set()
    for op in source.ops:
        wanted = set(source.own(op, "inputs")) if low[op["name"]] else set()
        for value in inputs(op):
            maker = source.made.get(value)
            is_low = maker is not None and low[maker["name"]] and (
                value in source.own(maker, "outputs"))
            if value in source.floats and is_low != (value in wanted):
                to = "f16" if value in wanted else "f32"
                casts.add((value, to, op["name"]))
    return casts


LISTS = ["--set", "optimizer.momentum.momentum=0.9", "--set",
         "amp.op_lists=paddle"]


def compiled(halftone, model, rule, name):
    words = [*LISTS, "--level", "O1", "--set", "amp.precision_rule=" + rule]
    custom = paddle_nets.CUSTOM.get(name, {})
    for field, flag in (("custom_white_list", "--white"),
                        ("custom_black_list", "--black"),
                        ("custom_black_varnames", "--black-var")):
        for item in custom.get(field, ()):
            words += [flag, item]
    facts = json.loads(
        oracle_calls.call([halftone, "inspect", model, *words, "--json"]))
    ops = [op for op in facts["ops"] if op["role"] == "forward"]
    casts = {(cast["value"], cast["to"], reader) for cast in facts["casts"]
             if cast["role"] == "forward" for reader in cast["for"]}
    return Decided({op["name"]: op["precision"] for op in ops}, casts)


def decided(source, low):
    return Decided({name: "f16" if is_low else "f32"
                    for name, is_low in low.items()}, casts_of(source, low))


def differences(one, other, names):
    """Names of ops of floats that both have, and casts for them."""
    both = one.precisions.keys() & other.precisions.keys() & names
    ops = sorted(name for name in both
                 if one.precisions[name] != other.precisions[name])
    casts = {cast for cast in one.casts ^ other.casts if cast[2] in both}
    return ops, sorted(casts), len(both)


def compare(halftone, name, work):
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup), \
            paddle.utils.unique_name.guard():
        loss, _ = paddle_nets.NETS[name]()
    model = os.path.join(work, name)
    with open(model + ".pdmodel", "wb") as file:
        file.write(main.desc.serialize_to_string())
    oracle_calls.call([halftone, "import", model + ".pdmodel", "--loss",
                       loss.name, "-o", model + ".pbtxt"])
    model += ".pbtxt"
    source = Source(halftone, model, name, loss.name, main)
    any_low = compiled(halftone, model, "any_low", name)
    all_low = compiled(halftone, model, "all_low", name)
    paddles = by_last_input(main, lists_of(name))
    last, widest = (decided(source, rule(source))
                    for rule in (by_last_input_of, by_widest_input_of))
    names = {op["name"] for op in source.ops
             if not source.floats.isdisjoint(inputs(op) + outputs(op))}
    faults = []
    for what, one, other in (
            ("any_low, the classic rewrite", any_low,
             classic(main, lists_of(name))),
            ("all_low, the rule", all_low, widest),
            ("2.6's rewrite, the last input's rule", paddles, last)):
        ops, casts, _ = differences(one, other, names)
        if ops or casts:
            faults.append(f"  {what}:")
            faults += [f"    {op}: {one.precisions[op]}, "
                       f"{other.precisions[op]}" for op in ops]
            faults += [f"    {cast} {'not' if cast in other.casts else 'only'}"
                       " there" for cast in casts]
    ops, casts, both = differences(all_low, paddles, names)
    print(f"{'FAILED' if faults else 'ok':8}{name}: {both} of {len(source.ops)}"
          f" ops in both; all_low and 2.6's rule differ in {len(ops)} ops, "
          f"{len(casts)} casts")
    print("\n".join(faults), end="\n" if faults else "")
    return not faults


def run():
    parser = argparse.ArgumentParser()
    parser.add_argument("halftone")
    parser.add_argument("--only", default=",".join(
        name for name in paddle_nets.NETS
        if name not in paddle_nets.IN_PARTS))
    flags = parser.parse_args()
    paddle.enable_static()
    with tempfile.TemporaryDirectory() as work:
        right = [compare(flags.halftone, name, work)
                 for name in flags.only.split(",")]
    sys.exit(not all(right))


if __name__ == "__main__":
    run()
