"""What the documentation, docstrings and comments mention is there: files, modules, functions, options and flags."""

from __future__ import annotations

import ast
import builtins
import functools
import importlib
import importlib.util
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from constrain.cli.main import cli

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES += sorted((ROOT / "bench").rglob("*.md"))
PACKAGE = sorted((ROOT / "constrain").rglob("*.py"))
SOURCES = [*PACKAGE, ROOT / "setup.py"] + [
    path for folder in ("bench", "tools", "tests") for path in sorted((ROOT / folder).rglob("*.py"))
]

# Folders that hold what is mentioned; others may hold what tools leave behind.
_KEPT = ("constrain", "bench", "tools", "tests", "docs", "grammars")
FILES = {path.relative_to(ROOT).as_posix() for path in ROOT.iterdir() if path.is_file()} | {
    path.relative_to(ROOT).as_posix()
    for folder in _KEPT
    for path in (ROOT / folder).rglob("*")
    if path.is_file() and "__pycache__" not in path.parts
}

# Pages that speak of the files of one folder.
_SUBJECTS = {f"docs/{page}.md": (ROOT / "constrain" / "engine",) for page in ("how-it-works", "performance")}

# Mentioned as examples, written by a command, or parts of other software.
NO_FILES = {"maskbench.md", "file.lark"}
ENGINES = {"outlines", "sglang", "vllm"}
NO_FLAGS = {
    "--strict",  # MkDocs
    *("--reasoning-parser", "--structured-outputs-config"),  # vLLM
    *("--model-path", "--grammar-backend", "--reasoning-parser"),  # SGLang
    *(f"--constrained-json-{end}" for end in ("disable-any-whitespace", "max-whitespace-cnt", "whitespace-pattern")),
    "--hypothesis-profile",
    "--no-cov",
    "--help",
    "--version",
}

_FILE = re.compile(r"(?<![\w/.<*{}$-])((?:\.\./)*(?:[\w.-]+/)*[\w-]+\.(?:py|md|lark|gbnf|svg|js|css))\b(?![(*])")
_FOLDER = re.compile(r"(?<![\w/.<*{}$-])((?:constrain|bench|tools|tests|docs|grammars)/(?:[\w-]+/)*)(?![\w*<{])")
_DOTTED = re.compile(r"(?<![\w./-])((?:constrain|bench)(?:\.[A-Za-z_]\w*)+)")
_ROLE = re.compile(r":(?:func|class|meth|mod|data|attr):`~?([\w.]+)(?:\(\))?`")
_CODE = re.compile(r"`([^`\n]+)`")
_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]+(?![\w*-])")
_VARIABLE = re.compile(r"\bCONSTRAIN_[A-Z_]+\b")
_CALL = re.compile(r"(?:^|(?<=[\s.(]))([a-z_]\w*)\(")
_KEYWORD = re.compile(r"(?<![\w\"'.-])([a-z_]\w*)=(?![=\s])")


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@functools.cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def statements(node: ast.AST) -> Iterator[ast.stmt]:
    """All statements within a node."""
    for field in ("body", "handlers", "cases", "orelse", "finalbody"):
        for inner in getattr(node, field, None) or ():
            if isinstance(inner, ast.stmt):
                yield inner
            yield from statements(inner)


@functools.cache
def prose(path: Path) -> list[tuple[int, str]]:
    """The lines of a page; the lines of the comments and docstrings of a source file."""
    text = path.read_text()
    if path.name == "coming-from.md":
        # The first column of its tables is what other engines call things.
        text = re.sub(r"^\|[^|\n]*\|", "", text, flags=re.MULTILINE)
    if path.suffix == ".md":
        return list(enumerate(text.splitlines(), 1))
    lines = [
        (token.start[0], token.string)
        for token in tokenize.generate_tokens(io.StringIO(text).readline)
        if token.type == tokenize.COMMENT
    ]
    for node in statements(tree_of(path)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            lines.extend(enumerate(node.value.value.splitlines(), node.lineno))
    return lines


def mentions(paths: list[Path], pattern: re.Pattern[str]) -> list[tuple[Path, int, str]]:
    return [
        (path, number, match[1] if pattern.groups else match[0])
        for path in paths
        for number, line in prose(path)
        for match in pattern.finditer(line)
    ]


def missing(found: list[tuple[Path, int, str]], known: set[str]) -> list[str]:
    return [f"{relative(path)}:{number}: {name}" for path, number, name in found if name not in known]


def file_problem(path: Path, name: str) -> str | None:
    """Why a file that ``path`` mentions cannot be found by its name; None if it can."""
    if name in NO_FILES or (path.parent / name).exists():
        return None
    if any((folder / name).is_file() for folder in (*path.parents, *_SUBJECTS.get(relative(path), ()))):
        return None
    found = [each for each in FILES if each == name or each.endswith(f"/{name}")]
    if len(found) == 1:
        return None
    return "is not there" if not found else f"could be {', '.join(sorted(found))}"


def test_files() -> None:
    found = mentions(PAGES + SOURCES, _FILE)
    assert len(found) > 150
    problems = [(path, number, name, file_problem(path, name)) for path, number, name in found]
    assert not [f"{relative(path)}:{number}: {name} {why}" for path, number, name, why in problems if why]


def test_folders() -> None:
    found = mentions(PAGES + SOURCES, _FOLDER)
    assert len(found) > 5
    assert not [f"{relative(path)}:{number}: {name}" for path, number, name in found if not (ROOT / name).is_dir()]


def resolves(dotted: str) -> bool:
    """Whether a dotted name is a module, or what a module has."""
    parts = dotted.split(".")
    for size in range(len(parts), 0, -1):
        name = ".".join(parts[:size])
        place = ROOT.joinpath(*parts[:size])
        if place.with_suffix(".py").exists() or (place / "__init__.py").exists():
            if size == len(parts):
                return True
            try:
                return has(importlib.import_module(name), parts[size:])
            except ModuleNotFoundError as error:
                # What is made of an engine that is not here has the names that its source defines.
                if (error.name or "").split(".")[0] not in ENGINES:
                    raise
                source = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
                return set(parts[size:]) <= defined_in(source)
    return False


def has(found: object, names: list[str]) -> bool:
    for index, name in enumerate(names):
        # The fields of a class without defaults are annotations, and others are set in its methods.
        if isinstance(found, type) and index == len(names) - 1 and name in members_of(found):
            return True
        if not hasattr(found, name):
            return False
        found = getattr(found, name)
    return True


def members_of(cls: type) -> set[str]:
    names: set[str] = set()
    for each in cls.__mro__:
        names |= set(vars(each)) | set(vars(each).get("__annotations__", ()))
        spec = importlib.util.find_spec(each.__module__) if each.__module__.startswith("constrain") else None
        if spec is not None and spec.origin is not None:
            for node in ast.walk(tree_of(Path(spec.origin))):
                if isinstance(node, ast.ClassDef) and node.name == each.__name__:
                    names |= {
                        target.attr
                        for target in ast.walk(node)
                        if isinstance(target, ast.Attribute) and isinstance(target.ctx, ast.Store)
                    }
    return names


def test_dotted_names() -> None:
    found = mentions(PAGES + SOURCES, _DOTTED)
    # Of a file name, as in bench.fuzz.py, the test above has judged; a tool's place is no name of Python.
    found = [each for each in found if not each[2].endswith((".py", ".md", ".lark", ".com", ".html"))]
    assert len(found) > 60
    assert not [f"{relative(path)}:{number}: {name}" for path, number, name in found if not resolves(name)]


def defined_in(path: Path) -> set[str]:
    """The names that a source file defines, sets or imports."""
    names: set[str] = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            names.add(node.attr)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).split(".")[0])
    return names


def test_roles() -> None:
    found = mentions(SOURCES, _ROLE)
    assert len(found) > 200
    wrong = []
    for path, number, name in found:
        dots = len(name) - len(name.lstrip("."))
        if dots:
            # Relative to the package of the file, as in an import.
            package = path.parents[dots - 1].relative_to(ROOT).parts
            is_there = resolves(".".join((*package, name[dots:])))
        elif name.split(".")[0] in ("constrain", "bench"):
            is_there = resolves(name)
        else:
            head, *rest = name.split(".")
            is_there = head in defined_in(path) or hasattr(builtins, head)
            if is_there and rest and not set(rest) <= defined_in(path):
                # A member of what is imported, or inherited.
                module = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
                is_there = has(importlib.import_module(module), [head, *rest])
            elif not is_there:
                is_there = importlib.util.find_spec(head) is not None
        if not is_there:
            wrong.append(f"{relative(path)}:{number}: {name}")
    assert not wrong


@functools.cache
def flags() -> set[str]:
    """The flags of the command, and those that scripts and tests spell out."""

    def of(found: click.Command) -> Iterator[str]:
        for parameter in found.params:
            yield from (*parameter.opts, *parameter.secondary_opts)
        for each in getattr(found, "commands", {}).values():
            yield from of(each)

    scripts = [path for path in SOURCES if path.relative_to(ROOT).parts[0] in ("bench", "tools")]
    scripts.append(ROOT / "tools" / "demo_model" / "train.py")
    spelled = {match[1] for path in scripts for match in re.finditer(r'"(--[a-z0-9-]+)[/"]', path.read_text())}
    spelled |= {match[1] for path in scripts for match in re.finditer(r'/(--[a-z0-9-]+)"', path.read_text())}
    return set(of(cli)) | spelled | NO_FLAGS


def test_flags() -> None:
    found = mentions(PAGES + PACKAGE, _FLAG)
    assert len(found) > 60
    wrong = missing(found, flags())
    assert not wrong


def test_environment_variables() -> None:
    found = mentions(PAGES + SOURCES, _VARIABLE)
    assert found
    read = {
        node.value
        for path in SOURCES
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and _VARIABLE.fullmatch(node.value)
    }
    wrong = missing(found, read)
    assert not wrong


@functools.cache
def identifiers() -> tuple[set[str], set[str]]:
    """(functions, classes and attributes, names of parameters and fields) of the package and its benchmarks."""
    names, parameters = set(dir(builtins)), set[str]()
    for path in SOURCES:
        if path.is_relative_to(ROOT / "tests"):
            continue
        names |= defined_in(path)
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.arg):
                parameters.add(node.arg)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                parameters.add(node.target.id)
    return names, parameters


# Functions and options of other software that the pages speak of.
OTHER_FUNCTIONS = {
    *("dumps", "exp", "to_str"),  # json, mathematics, SGLang
    *("incr", "decr", "set_bit", "clear_bit", "bit_and", "bit_or"),  # functions and conditions in grammars
    *("bit_set", "bit_clear", "is_ones", "is_zeros", "lt"),
    *("Regex", "Substring", "TagDispatch", "TokenTagDispatch", "Token", "ExcludeToken"),
}
OTHER_OPTIONS = {
    *("any_whitespace", "strict_mode", "loop_after_dispatch", "json_string", "byte_mode"),  # XGrammar
    *("json_string_min_length", "json_string_max_length"),
    *("suffix", "capture", "stop_capture", "temperature", "min_tokens", "max_chars"),  # attributes of rules in grammars
    "capture_hidden_suffix_bytes",
    "_CONSTRAIN_COMPLETE",  # click
    *("logits_processor", "logits_processors"),
    "named_grammars",  # XGrammar
    "gt",  # pydantic
    "processor",  # outlines
    "gc",  # Unicode's general category
    "vocab_only",  # llama-cpp-python
}


def spans(paths: list[Path], pattern: re.Pattern[str]) -> list[tuple[Path, int, str]]:
    return [
        (path, number, name)
        for path, number, code in mentions(paths, _CODE)
        for name in pattern.findall(code)
        if "://" not in code
    ]


def test_functions() -> None:
    found = spans(PAGES, _CALL)
    assert len(found) > 20
    wrong = missing(found, identifiers()[0] | OTHER_FUNCTIONS)
    assert not wrong


def test_options() -> None:
    found = spans(PAGES, _KEYWORD)
    assert len(found) > 20
    wrong = missing(found, identifiers()[1] | OTHER_OPTIONS)
    assert not wrong


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("README.md", None),
        ("engine/matcher.py", None),
        ("fast/star_closures.py", None),
        ("engine/rows.py", "is not there"),
        ("__init__.py", "could be"),
    ],
)
def test_what_is_found(name: str, why: str | None) -> None:
    said = file_problem(ROOT / "docs" / "index.md", name)
    assert said == why or (why and str(said).startswith(why))
    assert resolves("constrain.engine.matcher.Matcher.fork")
    assert not resolves("constrain.engine.matcher.Matcher.spoon")
    assert not resolves("constrain.engine.rows")
