"""Where an expression is wrong, told as kube-apiserver compiler tells it: message, source line and a caret."""

from __future__ import annotations

_MAX_SHOWN = 100
_MAX_LINE = 16384


class Issue:
    """One error at a line (from 1) and column (from 0) of the source."""

    __slots__ = ("column", "line", "message")

    def __init__(self, line: int, column: int, message: str) -> None:
        self.line = line
        self.column = column
        self.message = message


class CompileError(Exception):
    """The expression does not compile; `str()` is kube-apiserver's whole text."""

    def __init__(self, source: Source, issues: list[Issue]) -> None:
        self.issues = sorted(issues, key=lambda issue: (issue.line, issue.column))
        shown = [source.show(issue) for issue in self.issues[:_MAX_SHOWN]]
        if len(issues) > _MAX_SHOWN:
            shown.append(f"{len(issues) - _MAX_SHOWN} more errors were truncated")
        super().__init__("\n".join(shown))


class Source:
    """The text of an expression, able to turn offsets into lines and columns."""

    __slots__ = ("_lines", "description", "text")

    def __init__(self, text: str, description: str = "<input>") -> None:
        self.text = text
        self.description = description
        self._lines: list[str] | None = None

    def locate(self, offset: int) -> tuple[int, int]:
        if offset < 0:
            return -1, -1
        before = self.text[:offset]
        return before.count("\n") + 1, offset - (before.rfind("\n") + 1)

    def issue(self, offset: int, message: str) -> Issue:
        line, column = self.locate(offset)
        return Issue(line, column, message)

    def show(self, issue: Issue) -> str:
        # Nothing at all has no column.
        column = issue.column + 1 if self.text else 0
        head = f"ERROR: {self.description}:{issue.line}:{column}: {issue.message}"
        if self._lines is None:
            self._lines = self.text.split("\n")
        if not self.text or not 1 <= issue.line <= len(self._lines):
            return head
        line = self._lines[issue.line - 1]
        if len(line.encode("utf-8", "surrogatepass")) > _MAX_LINE:
            return head
        line = line.replace("\t", " ")
        dots = "".join("．" if ord(char) > 127 else "." for char in line[: issue.column])
        wide = issue.column < len(line) and ord(line[issue.column]) > 127
        return f"{head}\n | {line}\n | {dots}{'＾' if wide else '^'}"
