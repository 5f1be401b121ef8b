"""Headers that nearly every file includes, read once and not in each compile.

Reading the standard library and absl is half of a compile's time. A
precompiled header is part of the compiler's command line (defs.bzl), so that
sources include what they need as if there were none: without it everything
builds the same.
"""

load("@bazel_tools//tools/build_defs/cc:action_names.bzl", "CPP_COMPILE_ACTION_NAME")
load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def _provided(files):
    return [
        DefaultInfo(files = depset(files)),
        CcInfo(compilation_context = cc_common.create_compilation_context(
            headers = depset(files),
        )),
    ]

def _precompiled_header_impl(ctx):
    flags = ctx.fragments.cpp.copts + ctx.fragments.cpp.cxxopts + ctx.attr.copts
    if [flag for flag in flags if flag.startswith("-fsanitize")]:
        # GCC 12 crashes where the two meet in a source with OpenMP.
        header = ctx.actions.declare_file(ctx.label.name + ".h")
        ctx.actions.write(header, "")
        return _provided([header])
    toolchain = find_cpp_toolchain(ctx)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )
    header = ctx.actions.declare_file(ctx.label.name + ".h")
    ctx.actions.write(header, "".join(
        ["#include <%s>\n" % include for include in ctx.attr.includes],
    ))

    # Compilers look for it under this name beside the header.
    precompiled = ctx.actions.declare_file(ctx.label.name + ".h.gch")
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        source_file = header.path,
        output_file = precompiled.path,
        user_compile_flags = flags + ["-x", "c++-header"],
        use_pic = True,
    )
    ctx.actions.run(
        executable = cc_common.get_tool_for_action(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
        ),
        arguments = cc_common.get_memory_inefficient_command_line(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
            variables = variables,
        ),
        env = cc_common.get_environment_variables(
            feature_configuration = features,
            action_name = CPP_COMPILE_ACTION_NAME,
            variables = variables,
        ),
        inputs = depset([header], transitive = [toolchain.all_files]),
        outputs = [precompiled],
        mnemonic = "CppPrecompile",
        progress_message = "Precompiling %s" % header.short_path,
    )
    return _provided([header, precompiled])

precompiled_header = rule(
    implementation = _precompiled_header_impl,
    attrs = {
        "includes": attr.string_list(mandatory = True),
        "copts": attr.string_list(
            doc = "of all that use it: macros have to be the same",
        ),
        "_cc_toolchain": attr.label(
            default = "@bazel_tools//tools/cpp:current_cc_toolchain",
        ),
    },
    doc = """Compiles `<name>.h`, which includes `includes`. A target that
    depends on it and has `-include $(BINDIR)/<package>/<name>.h` among its
    flags reads that instead.""",
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
