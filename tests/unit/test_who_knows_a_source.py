"""Which modules know a source or a format: their own folders, the parts that their kits name, and the registries."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "applier"
SOURCES, DEMO = PACKAGE / "sources", PACKAGE / "demo"
MODULES = sorted(path for path in PACKAGE.rglob("*.py") if not path.is_relative_to(SOURCES) and not path.is_relative_to(DEMO))
TREES = {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}
FORMATS = ("open_protocol", "simple", "canal_json", "ticdc", "column_flags")
BINLOG = {
    "check/primary.py": "the checks of its kit, which need the configuration and the replica's progress",
    "config/binlog_source.py": "the section of its settings: sources know no configuration",
    "config/source.py": "the registry of sections",
}


def imported(path: Path) -> set[str]:
    nodes = list(ast.walk(TREES[path]))
    names = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    return names | {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}


def those_that_import(*packages: str) -> set[str]:
    wanted = tuple(f"applier.sources.{package}" for package in packages)
    found = [path for path in MODULES if any(name == one or name.startswith(f"{one}.") for name in imported(path) for one in wanted)]
    return {str(path.relative_to(PACKAGE)) for path in found}


def test_no_module_outside_of_the_sources_imports_a_format():
    assert those_that_import(*FORMATS) == set()


def test_the_binlog_is_known_to_the_parts_of_its_kit_alone():
    assert those_that_import("binlog") == BINLOG.keys()


def test_no_module_keeps_what_timestamps_mean_for_a_process_or_a_thread():
    assert [str(path.relative_to(PACKAGE)) for path in MODULES if "contextvars" in imported(path)] == []


def test_no_module_outside_of_the_sources_tests_a_bit_of_a_columns_flags():
    found = [
        str(path.relative_to(PACKAGE))
        for path, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitAnd) and ast.unparse(node.left).endswith(".flags")
    ]
    assert found == []


def test_nobody_but_the_registries_and_the_parts_asks_which_kind_of_source_it_has():
    found = set()
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                found |= {
                    str(path.relative_to(PACKAGE)) for name in ("BinlogSettings", "KafkaSettings") if name in ast.unparse(node.args[1])
                }
    assert found <= {"check/kafka.py", "check/primary.py", "dataframe/options.py"}
