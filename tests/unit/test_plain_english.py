"""The pages speak plain English: turns of phrase that a reader who is not a native speaker stumbles over do not come back.

Each pattern has its replacement in the words of the field. Words in code are not looked at.
"""

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
    ("glossary.md", "place"),  # the fact of an error
    ("glossary.md", "moment"),  # the class of a comparison
    ("architecture.md", "are one"),  # "Few rows are one transaction"
}
CODE = re.compile(r"^ *```.*?^ *```|`[^`\n]*`|\]\([^)]*\)", re.MULTILINE | re.DOTALL)


def prose_of(path: Path) -> str:
    return CODE.sub(" ", path.read_text(encoding="utf-8"))


def found_in(path: Path, patterns=DIALECT):
    prose = prose_of(path)
    return [(pattern, match[0]) for pattern in patterns for match in re.finditer(pattern, prose, re.IGNORECASE)]


def test_the_pages_have_no_turn_of_the_dialect_but_terms_of_the_glossary():
    found = {(path.name, match) for path in PAGES for _, match in found_in(path)}
    assert found <= ALLOWED, sorted(found - ALLOWED)
