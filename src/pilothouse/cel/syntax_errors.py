from pilothouse.cel.issues import Issue, Source
from pilothouse.cel.lexer import Tokens


def explain(source: Source, tokens: Tokens) -> list[Issue]:
    return [source.issue(0, "Syntax error: ?")]
