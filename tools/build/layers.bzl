"""Who may include whom: the one table behind visibility and tests/lint.

tests/lint reads LAYERS as a plain literal; keep it one.
"""

# A folder: the folders whose headers it may include beside its own. A row is
# for all folders below it that have no row of their own.
LAYERS = {
    "third_party": [],
    "proto": [],
    "graph": ["graph"],
    "graph/base": [],
    "graph/builder": ["proto"],
    "graph/export": ["graph", "proto"],
    "graph/import": ["graph", "proto"],
    "graph/io": ["graph", "proto"],
    "graph/subset": ["graph", "proto"],
    "graph/strategy": ["graph/base", "proto"],
    "graph/targets": ["graph/base"],
    "graph/zoo": ["graph", "proto"],
    "passes": ["graph", "passes"],
    "passes/options": ["graph", "passes", "proto"],
    "kernels": ["graph", "kernels", "runtime/device"],
    "runtime/device": ["graph/base", "graph/targets"],
    "runtime/rendezvous": ["graph/base", "proto"],
    "runtime/collective": [
        "graph/base",
        "runtime/device",
        "runtime/rendezvous",
    ],
    "runtime/data": ["graph/base", "proto", "runtime/data"],
    "runtime/log": ["graph/base"],
    "runtime/report": [
        "graph/base",
        "graph/strategy",
        "proto",
        "runtime/log",
    ],
    "runtime/checkpoint": ["graph", "proto"],
    "runtime/plan": [
        "graph",
        "kernels",
        "runtime/collective",
        "runtime/device",
    ],
    "runtime/exec": [
        "graph",
        "kernels",
        "proto",
        "runtime/collective",
        "runtime/device",
        "runtime/plan",
    ],
    "runtime/profile": [
        "graph",
        "kernels",
        "runtime/exec",
        "runtime/log",
        "runtime/plan",
        "runtime/report",
    ],
    "runtime/tune": [
        "graph",
        "kernels",
        "runtime/device",
        "runtime/plan",
    ],
    "runtime/gpu": [
        "graph",
        "kernels",
        "runtime/collective",
        "runtime/device",
        "runtime/rendezvous",
    ],
    "runtime/train": ["graph", "kernels", "proto", "runtime"],
    "runtime/capsule": [
        "graph",
        "runtime/checkpoint",
        "runtime/collective",
        "runtime/data",
        "runtime/exec",
        "runtime/plan",
    ],
    "runtime/compare": ["graph", "kernels", "proto", "runtime"],
    "runtime/launch": ["graph/base", "runtime"],
    "tools": ["graph", "kernels", "passes", "proto", "runtime", "tools"],
    "tests": ["graph", "kernels", "passes", "proto", "runtime", "tests", "tools"],
}

def _covers(folder, package):
    return package == folder or package.startswith(folder + "/")

def layer_visibility(package):
    """The visibility of a package's libraries that the table implies.

    It is never too narrow, but coarse where a folder and one below it have
    rows of their own; tests/lint is exact.
    """
    known = [folder for folder in LAYERS if _covers(folder, package)]
    if not known:
        return ["//visibility:public"]
    readers = [
        folder
        for folder, others in LAYERS.items()
        if folder in known or
           [other for other in others if _covers(other, package)]
    ]
    return ["//%s:__subpackages__" % folder for folder in readers]
