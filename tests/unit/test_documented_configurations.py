"""Every piece of ``applier.toml`` that a document shows is one that the program takes."""

import re
import textwrap
import tomllib
from pathlib import Path

import pytest

from applier.config import load_config

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"^( *)```toml\n(.*?)^ *```", re.MULTILINE | re.DOTALL)
PIECES = [
    pytest.param(textwrap.dedent(block), id=f"{document.name}: {block.strip().splitlines()[0]}")
    for document in DOCUMENTS
    for _, block in BLOCK.findall(document.read_text(encoding="utf-8"))
]
NEEDED = {
    "source": {"bootstrap_servers": "127.0.0.1:9092", "topics": ["changefeed"]},
    "sink": {"url": "mysql+pymysql://applier@127.0.0.1/"},
}


@pytest.mark.parametrize("piece", PIECES)
def test_a_documented_configuration_is_one_of_the_program(piece, tmp_path):
    def file_of(match):
        (tmp_path / Path(match[1]).name).write_text("secret", encoding="utf-8")
        return f'"{tmp_path / Path(match[1]).name}"'

    given = tomllib.loads(re.sub(r'"(/(?:run|etc)/[^"]+)"', file_of, piece))
    # A piece that names its kind of source is complete without what Kafka's needs.
    needed = NEEDED | {"source": {}} if "kind" in given.get("source", {}) else NEEDED
    merged = given | {section: values | given.get(section, {}) for section, values in needed.items()}
    load_config(None, merged, environment={})
