"""Columns in the text of an expression, under new names. Pure."""

from collections.abc import Mapping

from applier.ddl.edit import Edit, edited
from applier.ddl.tokens import DdlSyntaxError, scan


def with_new_names(expression: str, names: Mapping[str, str]) -> str:
    """Return an expression with its columns renamed. ``names``: casefolded old name -> new name. A function keeps its name."""
    try:
        tokens = scan(expression)
    except DdlSyntaxError:
        return expression
    edits = []
    for token, after in zip(tokens, [*tokens[1:], None], strict=True):
        new = names.get(token.text.casefold()) if token.is_name else None
        is_call = token.kind == "word" and after is not None and after.kind == "("
        if new is not None and new != token.text and not is_call:
            edits.append(Edit(token.start, token.end, "`" + new.replace("`", "``") + "`"))
    return edited(expression, edits)
