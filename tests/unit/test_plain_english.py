"""Pages, docstrings and messages speak plain English: phrases that a reader who is not a native speaker stumbles over do not come back.

Each pattern has its replacement in the words of the field. Words in code are not looked at.
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
DIALECT = {
    r"\b(?:are|is|as|than|with|like|and|or|but|only|to|of|for|from|not) those (?:of|that|with|in|from|on)\b": "name the thing again",
    r"\bthose (?:of|that|which|who)\b": "name the thing again",
    r"\bplaces?\b": "position, offset",
    r"\bmoments?\b": "point in time, time",
    r"\b(?:left|leaves?|leaving) (?:it |them |out )?out\b|\bleaves? .{1,40} out\b": "skipped, excluded",
    r"\bbehind (?:it|them|that|one|the place)\b": "after it",
    r"\bupstream's (?:own |\w+'s )?\w+'s\b|\bupstream's server\b|\bserver's own\b": "turn it round",
    r"\b(?:has|have) (?:not|none|no more) (?:the|a|an|such|of)\b|\bhas none\b|\bhas it not\b": "does not have",
    r"\b(?:is|are|was|were) to (?:be|\w+)\b(?! date)": "must, will",
    r"\bin the place of\b|\btakes? .{0,20}the place of\b": "replaces",
    r"\bmade (?:anew|again)\b|\bby itself\b|\bof itself\b": "again; without help",
    r"\bso (?:does|do|is|are|was) (?:it|they|a|an|the)\b": "also",
    r"\bof (?:it|them) (?:are|is|was|were) (?:no|none)\b|\bof its rows nothing\b": "no … of it",
    r"\b(?:is|are) one for the applier\b|\bare one\b": "are the same",
    r"\bnobody\b|\bsomebody\b": "no client, another program",
    r"\bgoes? on\b|\bwent on\b|\bgo on\b|\bgoing on\b": "continues",
    r"\bfor ever\b": "permanently",
    r"\bsay(?:s)? (?:so|nothing)\b": "reports it",
    r"\b(?:stands?|stood|standing) (?:there|in|beside|above|below|for)\b": "is in",
    r"\bwhich .{1,40}\bas of\b|\bas of\b": "at",
    r"\bgot? lost\b|\bin the air\b|\bgives? up\b|\bgave up\b": "the field's word",
    r"\bmakes? up for\b|\bmade up for\b|\bin the way\b": "the field's word",
}
ALLOWED = {
    ("glossary.md", "moment"),  # the class of a comparison
    ("architecture.md", "are one"),  # "Few rows are one transaction"
}
OF_CODE = {
    r"(?-i:\bKnow (?:that|these)\b)": "record; what has happened",
    r"\bTake that these\b": "mark as",
    r"\b[Ll]et go of\b": "release",
    r"\bwhat keeps (?:it|them|a \w+) from going on\b": "why it fails",
    r"\bnone such\b|\bno such\w* of them\b": "no such transaction",
    r"\bone behind the other\b|\bone behind another\b": "in order",
    r"\bin vain\b": "without a result",
    r"\banew\b": "again",
}
"""Turns that were the house's own in docstrings; pages never had them."""
CODE = re.compile(r"^ *```.*?^ *```|`[^`\n]*`|\]\([^)]*\)", re.MULTILINE | re.DOTALL)


def prose_of(path: Path) -> str:
    return CODE.sub(" ", path.read_text(encoding="utf-8"))


def found_in(path: Path, patterns=DIALECT):
    prose = prose_of(path)
    return [(pattern, match[0]) for pattern in patterns for match in re.finditer(pattern, prose, re.IGNORECASE)]


def test_the_pages_have_no_turn_of_the_dialect_but_terms_of_the_glossary():
    found = {(path.name, match) for path in PAGES for _, match in found_in(path)}
    assert found <= ALLOWED, sorted(found - ALLOWED)


def docstrings():
    for path in sorted((ROOT / "applier").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
                yield f"{path.relative_to(ROOT)}:{node.lineno}", re.sub(r"``[^`]*``", " ", node.value.value)


def turns_of(docstring, patterns):
    # "Places the rows" is what a placer does: only the noun has another word.
    return [
        match[0] for pattern in patterns for match in re.finditer(pattern, docstring, re.IGNORECASE) if match[0] not in {"Place", "Places"}
    ]


def test_no_docstring_has_a_turn_of_the_dialect():
    patterns = {**DIALECT, **OF_CODE}
    found = [(place, match) for place, docstring in docstrings() for match in turns_of(docstring, patterns)]
    assert not found, found


def messages():
    """Yield the texts of the program that have words: of errors, remedies, the log, the command line. ``…`` is what is filled in."""
    for path in sorted((ROOT / "applier").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        whole = [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)]
        parts = {id(part) for node in whole for part in node.values}
        quiet = parts | {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        texts = {node.lineno: "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values) for node in whole}
        plain = [
            node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in quiet
        ]
        for line, text in [*texts.items(), *((node.lineno, node.value) for node in plain)]:
            # A regular expression names its groups as it likes.
            if " " in text and "(?P<" not in text:
                yield f"{path.relative_to(ROOT)}:{line}", CODE.sub(" ", text)


def test_no_message_has_a_turn_of_the_dialect():
    patterns = {**DIALECT, **OF_CODE}
    found = [(place, match) for place, text in messages() for match in turns_of(text, patterns)]
    assert not found, found
    assert any("the configuration file cannot be written: …" in text for _, text in messages()), "texts with values are read too"


def test_the_patterns_find_the_dialect_in_a_docstring():
    text = "Know these positions as durable: those that the last call left out, behind it, for ever. Nobody says so, as of now."
    assert len(turns_of(text, {**DIALECT, **OF_CODE})) >= 5
    assert turns_of("Return the rows and those of the other table.", DIALECT)
    assert not turns_of("Place the rows of one event.", DIALECT)
