"""Sources of a library that are compiled a few at a time.

What a source includes takes most of its compile, and the sources of a folder
include much the same: six that are read as one take half the time of six
alone. For it what unnamed namespaces hold has to have a name of its own in the
folder (tests/lint tells). A source includes what it needs even so: with
--//tools/build:each, as with the sanitizers, each is compiled by itself.
"""

# More would save little, and an edit waits for all of its unit.
_SOURCES_PER_UNIT = 6

# What GCC says of sources that are joined, and not of each: that a class of one
# that is included has members of an unnamed namespace, and that variants may
# not be initialised, which of so much inlined code it sees no more.
UNIT_COPTS = select({
    "//tools/build:each_source": [],
    "//conditions:default": [
        "-Wno-maybe-uninitialized",
        "-Wno-subobject-linkage",
    ],
})

def units_of(name, sources, families):
    """The sources of a cc_library, joined where the build wants it so.

    Args:
      name: of the library; the units' own target is `<name>_units`.
      sources: .cc files of this folder.
      families: beginnings of names; sources of two are not joined.
    """
    if len(sources) < 2:
        return sources
    _units(
        name = name + "_units",
        families = families,
        sources = sources,
        tags = ["manual"],
    )
    return select({
        "//tools/build:each_source": sources,
        "//conditions:default": [":" + name + "_units"],
    })

def _families_of(ctx):
    """Lists of sources, in order, of which those of one may be joined."""
    by_family = {family: [] for family in ctx.attr.families + [""]}
    for source in ctx.files.sources:
        for family, members in by_family.items():
            if source.basename.startswith(family):
                members.append(source)
                break
    return by_family.values()

def _split(sources):
    count = (len(sources) + _SOURCES_PER_UNIT - 1) // _SOURCES_PER_UNIT
    ends = [len(sources) * i // count for i in range(count + 1)] if count else []
    return [sources[ends[i]:ends[i + 1]] for i in range(count)]

def _units_impl(ctx):
    units = []
    for members in [part for all in _families_of(ctx) for part in _split(all)]:
        unit = ctx.actions.declare_file("%s/%s_to_%s" % (
            ctx.label.name,
            members[0].basename[:-len(".cc")],
            members[-1].basename,
        ))

        # Errors, warnings and debuggers name the source.
        ctx.actions.run_shell(
            command = "unit=$1; shift; for source; do " +
                      "echo \"#line 1 \\\"$source\\\"\" && cat \"$source\"; " +
                      "done > \"$unit\"",
            arguments = [unit.path] + [member.path for member in members],
            inputs = members,
            outputs = [unit],
            mnemonic = "JoinSources",
            progress_message = "Joining %s" % unit.short_path,
        )
        units.append(unit)
    return [DefaultInfo(files = depset(units))]

_units = rule(
    implementation = _units_impl,
    attrs = {
        "families": attr.string_list(),
        "sources": attr.label_list(allow_files = [".cc"]),
    },
)

def _each_impl(_ctx):
    return []

each_flag = rule(
    implementation = _each_impl,
    build_setting = config.bool(flag = True),
)
