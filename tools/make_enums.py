"""Write the values of enumerated fields (src/pilothouse/apis/catalogue/enums.txt) from facts of a Kubernetes release.

    python tools/make_enums.py ZZ_GENERATED_OPENAPI_GO

The argument is ``pkg/generated/openapi/zz_generated.openapi.go`` of a kubernetes checkout. Only names and values are
taken from it: one line a field, its type first, its values in their order and parted by bars.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from catalogue_file import write

TYPE = re.compile(r"^func schema_\w*?_([a-z]+)_(v[a-z0-9]+)_(\w+)\(ref ")
PROPERTY = re.compile(r'^\t{5}"([^"]+)": \{$')
VALUES = re.compile(r"^\t+Enum:\s+\[\]interface\{\}\{(.*)\},$")


def read(lines: list[str]) -> Iterator[str]:
    """The lines of the catalogue, in the order of the source."""
    owner = field = ""
    for line in lines:
        if match := TYPE.match(line):
            owner = ".".join(match.groups())
        elif match := PROPERTY.match(line):
            field = match.group(1)
        elif match := VALUES.match(line):
            values = json.loads(f"[{match.group(1)}]")
            yield f"{owner} {field} {'|'.join(values)}"


def main() -> None:
    found = sorted(read(Path(sys.argv[1]).read_text().splitlines()))
    size = write("enums.txt", "\n".join(found) + "\n")
    print(f"{len(found)} fields, {size} bytes")


if __name__ == "__main__":
    main()
