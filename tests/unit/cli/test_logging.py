import io
import logging
import re
import sys

import orjson
import pytest

from pilothouse.cli.logging import set_up_logging
from pilothouse.options.logs import LogOptions


@pytest.fixture
def log():
    """A function that sets the log up with a verbosity and gives its stream."""

    def start(verbosity=0, **more):
        stream = io.StringIO()
        set_up_logging(LogOptions(verbosity=verbosity, **more), stream)
        return stream

    return start


def test_the_layout_is_klogs(log):
    stream = log()
    logging.getLogger("pilothouse.test").warning("disk is %d%% full", 90)
    pattern = r"W\d{4} \d\d:\d\d:\d\d\.\d{6} +\d+ test_logging\.py:\d+\] disk is 90% full\n"
    assert re.fullmatch(pattern, stream.getvalue())


@pytest.mark.parametrize(("verbosity", "shown"), [(0, False), (3, False), (4, True), (10, True)])
def test_debugging_messages_need_verbosity(log, verbosity, shown):
    stream = log(verbosity)
    logging.getLogger("pilothouse.test").debug("details")
    assert ("details" in stream.getvalue()) == shown


def test_libraries_are_quiet(log):
    stream = log(10)
    logging.getLogger("asyncio").info("chatter")
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    "text",
    [
        "Authorization: Bearer s3cr3t.t0ken-x",
        "bearer   s3cr3t.t0ken-x",
        "Sec-WebSocket-Protocol: base64url.bearer.authorization.k8s.io.s3cr3t",
    ],
)
def test_tokens_are_masked(log, text):
    stream = log()
    logging.getLogger("pilothouse.test").error("request failed: %s", text)
    assert "s3cr3t" not in stream.getvalue()
    assert "<masked>" in stream.getvalue()


def test_tokens_in_tracebacks_are_masked(log):
    stream = log()
    try:
        raise ValueError("bad header: Bearer s3cr3t.t0ken")
    except ValueError:
        logging.getLogger("pilothouse.test").exception("request failed")
    assert "ValueError" in stream.getvalue()
    assert "s3cr3t" not in stream.getvalue()


def test_setting_up_again_does_not_double_the_lines(log):
    log()
    stream = log()
    logging.getLogger("pilothouse.test").info("once")
    assert stream.getvalue().count("once") == 1


def test_json_has_a_line_a_message(log):
    stream = log(4, format="json")
    logger = logging.getLogger("pilothouse.test")
    logger.info("a\nb from %s", "x")
    logger.debug("details, Bearer abcdefgh")
    try:
        raise ValueError("no")
    except ValueError:
        logger.exception("failed")
    first, second, third = map(orjson.loads, stream.getvalue().splitlines())
    assert (first["msg"], first["v"]) == ("a\nb from x", 0)
    assert re.fullmatch(r"test_logging\.py:\d+", first["caller"])
    assert first["ts"] > 1e12
    assert (second["msg"], second["v"]) == ("details, Bearer <masked>", 4)
    assert "v" not in third
    assert third["err"].endswith("ValueError: no")


@pytest.mark.parametrize(
    ("pattern", "shown"), [("test_logging", True), ("test_*", True), ("other", False), ("*/cli/*", True)]
)
def test_single_modules_say_more(log, pattern, shown):
    stream = log(0, vmodule=((pattern, 4),))
    logging.getLogger("pilothouse.test").debug("details")
    logging.getLogger("pilothouse.test").info("always")
    assert ("details" in stream.getvalue()) == shown
    assert "always" in stream.getvalue()


@pytest.mark.parametrize(("form", "warned"), [("text", "errors"), ("json", "rest")])
def test_errors_have_a_stream_of_their_own(log, monkeypatch, form, warned):
    rest = io.StringIO()
    monkeypatch.setattr(sys, "stdout", rest)
    errors = log(4, format=form, text_split_stream=True, json_split_stream=True)
    logger = logging.getLogger("pilothouse.test")
    logger.debug("details")
    logger.info("news")
    logger.warning("careful")
    logger.error("broken")
    shown = {"errors": errors.getvalue(), "rest": rest.getvalue()}
    assert "broken" in shown["errors"]
    assert "details" in shown["rest"]
    assert "news" in shown["rest"]
    assert [stream for stream, text in shown.items() if "careful" in text] == [warned]


def test_what_is_no_error_is_buffered(log, monkeypatch):
    rest = io.StringIO()
    monkeypatch.setattr(sys, "stdout", rest)
    log(text_split_stream=True, text_info_buffer_size="1Ki")
    logger = logging.getLogger("pilothouse.test")
    logger.info("first")
    assert rest.getvalue() == ""
    for handler in logging.getLogger().handlers:
        handler.flush()
    assert rest.getvalue().endswith("] first\n")
    logger.info("x" * 1024)
    assert rest.getvalue().count("\n") == 2
