import re

from pilothouse.options.idle_flags import IDLE_FLAGS
from pilothouse.options.server_options import declared_flags
from pilothouse.options.usage import NO_EFFECT, flag_usage


def entries():
    """Flag name → its whole entry in the help."""
    found = {}
    for line in flag_usage().splitlines():
        match = re.match(r"(?:      |  -\w, )--([a-z0-9-]+)", line)
        if match:
            name = match[1]
            found[name] = line
        elif line.startswith(" ") and found:
            found[name] += " " + line.strip()
    return found


def test_every_visible_flag_is_there_once():
    visible = {name for name, (_, flag) in declared_flags().items() if not flag.hidden}
    assert set(entries()) == visible


def test_a_flag_without_effect_says_so():
    for name, text in entries().items():
        assert (NO_EFFECT in text) == (name in IDLE_FLAGS), name


def test_sections_and_layout():
    text = flag_usage()
    titles = re.findall(r"^(.*) flags:$", text, re.MULTILINE)
    assert titles == [
        "Pilothouse", "Living cluster", "Generic", "Etcd", "Secure serving", "Auditing", "Features", "Authentication",
        "Authorization",
        "API enablement", "Egress selector", "Admission", "Metrics", "Logs", "Traces", "Misc", "Global",
    ]  # fmt: skip
    assert all(len(line) <= 120 for line in text.splitlines())
    assert "  -h, --help" in text
    assert "  -v, --v Level" in text
    assert '(default "/registry")' in text
    assert "(default 1m0s)" in text


def test_a_narrow_terminal_gets_narrow_lines():
    wide = max(len(line) for line in flag_usage(110).splitlines())
    assert wide <= 110
