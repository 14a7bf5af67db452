"""Bodies as texts: JSON and YAML with something wrong or odd in how they are written.

Other areas send values that a library has written; here the writing is what is looked at. A text is a sound object with
a few characters changed, or is put together from pieces that parsers disagree about.
"""

from __future__ import annotations

import json
import random

from differential_answers import JSON, Request

YAML, APPLY = "application/yaml", "application/apply-patch+yaml"
MERGE, JSON_PATCH = "application/merge-patch+json", "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
_INSERTED = (
    '"', "'", "{", "}", "[", "]", ",", ":", "\\", "\\u00", "\\ud800", "\\udc00\\ud800", "\\x", "\\/", "\n", "\t", "\r",
    "\0", " ", "//c\n", "/*c*/", "#", "-", "+", ".", "e", "E5", "0", "00", "1", "1e999", "-", "--", "NaN", "Infinity",
    "null", "nul", "true", "tru", "\ufeff", "é", "\x7f", "\x01", "\u2028", "😀", "<", "&", '"a":1,', '"data":{},',
    '"metadata":{},', '"kind":"X",', '"Kind":"ConfigMap",', '"apiVersion":"v2",', '"":1,', '"a":{"b":[{}]},',
)  # fmt: skip
_BYTES = (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf8\x88\x80\x80\x80", b"\xc0\x80", b"\xef\xbb\xbf", b"\xfe\xff\0{")
_SCALARS = (
    "a", "yes", "no", "on", "off", "y", "n", "true", "True", "TRUE", "null", "Null", "~", "", "1", "01", "0o7", "0x1F",
    "0b11", "1_000", "1.", ".5", "1e3", "1e400", ".inf", "-.INF", ".nan", "+1", "-0", "12345678901234567890", "1:30",
    "190:20:30", "2020-01-01", "2020-01-01T00:00:00Z", "2020-01-01 00:00:00", "!!str 1", "!!int '1'", "!!float 1",
    "!!bool yes", "!!null ''", "!!binary YQ==", "!!binary '*'", "!x a", "!<tag:yaml.org,2002:str> 1", "'a''b'", "'a",
    '"a\\x41\\u0041\\t"', '"\\q"', '"a', "|\n    a\n    b", ">-\n    a\n    b", "|2\n    a", "|+\n    a\n\n", "*b",
    "&b a", "&b", "*unknown", "[a, b]", "[a", "[,]", "{a: b}", "{a}", "{a: b", "{a: 1, a: 2}", "[]", "{}", "- a",
    "a: b", "a:b",
    "a #c", "#c", "@a", "`a", "%a", "? a", "a\n  b", "a\n b: c", "\ta", "é", "\u2028", "a\\b", "--- a", "...", "=",
    "<<", "1.5", "-1", "0", "0.0", "1e-5", "100000000000000000000000", "9223372036854775807", "9223372036854775808",
    "a: ",
    "'1'", '"true"', "NULL", "NaN", "Off", "!!map {a: b}", "!!seq [a]", "!!set {a}", "!!timestamp 2020-01-01",
    "!!merge <<",
)  # fmt: skip
_KEYS = ("a", "1", "true", "null", "~", "y", "1.5", "a b", '"a"', "'a'", "? a\n ", "<<", "*b", "&k a", "!!int 1", "é",
         "[a]", "{a: b}", "a.b", "-", "", "2020-01-01", ".inf", "!!str 1", "0x10")  # fmt: skip


_PLACES = (
    ("/api/v1/namespaces/{}/configmaps", "ConfigMap", "v1"),
    ("/apis/differ.example/v1/namespaces/{}/things", "Thing", "differ.example/v1"),
)


def json_texts(choice: random.Random, names: tuple[str, str]) -> list[Request]:
    """JSON with characters put in, taken out or repeated."""
    namespace, name = names
    where, kind, version = choice.choice(_PLACES)
    where = where.format(namespace)
    body = {"apiVersion": version, "kind": kind, "metadata": {"name": name, "labels": {"a": "b"}}, "data": {"k": "v"}}
    text = json.dumps(body, separators=choice.choice(((",", ":"), (", ", ": "))))
    operations = '[{"op":"add","path":"/data/x","value":"y"},{"op":"test","path":"/data/k","value":"v"}]'
    validation = choice.choice(("", "?fieldValidation=Strict", "?fieldValidation=Ignore"))
    manager = validation.replace("?", "&")
    path = f"{where}/{name}"
    patched = '{"data":{"k":"w","n":null},"metadata":{"labels":{"c":"d"}}}'
    merge = choice.choice((MERGE, STRATEGIC))
    return [
        Request("POST", where + validation, _broken(choice, text), JSON),
        Request("POST", where, text.encode(), JSON),
        Request("PUT", path + validation, _broken(choice, text), JSON),
        Request("PATCH", path + validation, _broken(choice, patched), merge),
        Request("PATCH", path + validation, _broken(choice, operations), JSON_PATCH),
        Request("PATCH", f"{path}?fieldManager=m{manager}", _broken(choice, text), APPLY, unordered=True),
        Request("DELETE", path, _broken(choice, '{"kind":"DeleteOptions","apiVersion":"v1","dryRun":["All"]}')),
        Request("GET", path),
        Request("DELETE", path),
    ]


def _broken(choice: random.Random, text: str) -> bytes:
    """A text with a few changes of its letters."""
    for _ in range(choice.choice((1, 1, 1, 2))):
        at = choice.randrange(len(text) + 1)
        match choice.randrange(6):
            case 0:
                text = text[:at] + text[at + choice.randrange(1, 4) :]
            case 1:
                text = text[:at]
            case 2:
                text = text[:at] + text[max(0, at - 8) :]
            case 3:
                text += choice.choice(("}", "{}", " x", "\n\n", ",", "\0", '{"a":1}', "]", "#"))
            case _:
                text = text[:at] + choice.choice(_INSERTED) + text[at:]
    data = text.encode("utf-8", "surrogatepass")
    if choice.random() < 0.1:
        at = choice.randrange(len(data) + 1)
        data = data[:at] + choice.choice(_BYTES) + data[at:]
    return data


def yaml_texts(choice: random.Random, names: tuple[str, str]) -> list[Request]:
    """YAML put together from pieces that parsers disagree about."""
    namespace, name = names
    where, kind, version = choice.choice(_PLACES)
    where = where.format(namespace)
    path = f"{where}/{name}"
    validation = choice.choice(("", "?fieldValidation=Strict", "?fieldValidation=Ignore"))
    sound = json.dumps({"apiVersion": version, "kind": kind, "metadata": {"name": name}}).encode()

    def text() -> bytes:
        return _yaml(choice, version, kind, name).encode()

    return [
        Request("POST", where + validation, text(), YAML),
        Request("POST", where, sound),
        Request("PUT", path + validation, text(), YAML),
        Request(
            "PATCH", f"{path}?fieldManager=m&force=true{validation.replace('?', '&')}", text(), APPLY, unordered=True
        ),
        Request("GET", path, accept=choice.choice((JSON, YAML))),
        Request("DELETE", path, b"kind: DeleteOptions\napiVersion: v1\n" + text()[:9], YAML),
        Request("DELETE", path),
    ]


def _yaml(choice: random.Random, version: str, kind: str, name: str) -> str:
    def scalar() -> str:
        return choice.choice(_SCALARS)

    lines = [f"apiVersion: {version}", f"kind: {kind}", "metadata:", f"  name: {name}"]
    if choice.random() < 0.3:
        lines.append(f"  labels: {{a: {scalar()}}}")
    if choice.random() < 0.2:
        lines.append(f"  annotations:\n    {choice.choice(_KEYS)}: {scalar()}")
    lines.append("data:")
    lines += [f"  {choice.choice(_KEYS)}: {scalar()}" for _ in range(choice.randrange(1, 4))]
    match choice.randrange(12):
        case 0:
            lines.insert(
                0, choice.choice(("---", "%YAML 1.2\n---", "# c", "--- # c", "\ufeff", "%TAG ! x\n---", "..."))
            )
        case 1:
            lines.append(choice.choice(("---", "...", "---\na: b", "--- x", "}", "x", "\t", "- a", "  a", "? b", ":")))
        case 2:
            at = choice.randrange(len(lines))
            lines.insert(at, lines[choice.randrange(len(lines))])
        case 3:
            at = choice.randrange(len(lines))
            lines[at] = choice.choice((" ", "\t", "- ")) + lines[at]
        case 4:
            lines.append(f"immutable: {scalar()}")
        case 5:
            lines.append(f"binaryData: {{a: {scalar()}}}")
        case 6:
            joined = "\r\n".join(lines)
            return joined + choice.choice(("", "\r\n"))
        case _:
            pass
    return "\n".join(lines) + choice.choice(("", "\n", "\n\n"))
