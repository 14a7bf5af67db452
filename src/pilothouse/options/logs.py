"""Flags of the server's own log."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass

from pilothouse.machinery.field_errors import FieldError, Path, forbidden, invalid
from pilothouse.options.declaring import FlagGroup, flag
from pilothouse.options.go_numbers import format_duration
from pilothouse.options.kinds import BOOL, DURATION, LEVEL, QUANTITY, STRING, VMODULE


@dataclass
class LogOptions(FlagGroup):
    """The ``logs`` section."""

    section = "logs"

    flush_frequency: float = flag("log-flush-frequency", DURATION, 5.0, "How often the log is flushed.")
    json_info_buffer_size: str = flag(
        "log-json-info-buffer-size", QUANTITY, "0", "Buffer for info messages in JSON format."
    )
    json_split_stream: bool = flag(
        "log-json-split-stream", BOOL, False, "JSON format: info to stdout, errors to stderr."
    )
    text_info_buffer_size: str = flag(
        "log-text-info-buffer-size", QUANTITY, "0", "Buffer for info messages in text format."
    )
    text_split_stream: bool = flag(
        "log-text-split-stream", BOOL, False, "Text format: info to stdout, errors to stderr."
    )
    format: str = flag("logging-format", STRING, "text", "Format of the log: json, text.")
    verbosity: int = flag("v", LEVEL, 0, "How much to log; 4 and up is for debugging.", short="v")
    vmodule: tuple[tuple[str, int], ...] = flag(
        "vmodule", VMODULE, (), "How much to log for single modules: pattern=level,..."
    )

    def validate(self, given: Set[str]) -> list[str]:
        """Frequency, format and module levels."""
        errors: list[FieldError] = []
        if self.flush_frequency <= 0:
            errors.append(
                invalid(Path("flushFrequency"), format_duration(self.flush_frequency), "Must be greater than zero")
            )
        if self.format not in ("text", "json"):
            errors.append(invalid(Path("format"), self.format, "Unsupported log format"))
        if self.vmodule and self.format != "text":
            errors.append(forbidden(Path("vmodule"), "Only supported for text log format"))
        return [str(error) for error in errors]

    @property
    def splits_streams(self) -> bool:
        """Whether errors go to one stream and the rest to another."""
        return self.json_split_stream if self.format == "json" else self.text_split_stream

    @property
    def info_buffer_bytes(self) -> int:
        """How much of the rest may be kept back until the next flush."""
        size = self.json_info_buffer_size if self.format == "json" else self.text_info_buffer_size
        from pilothouse.machinery.quantity import parse

        return max(0, parse(size).value())

    def alpha_errors(self) -> list[str]:
        """The options that need the gate LoggingAlphaOptions, which is off."""
        errors = []
        for kind, split, size in (
            ("text", self.text_split_stream, self.text_info_buffer_size),
            ("json", self.json_split_stream, self.json_info_buffer_size),
        ):
            options = Path("options", kind)
            if split:
                errors.append(forbidden(options.child("splitStream"), "Feature LoggingAlphaOptions is disabled"))
            if size.strip("+-0.") != "":
                errors.append(forbidden(options.child("infoBufferSize"), "Feature LoggingAlphaOptions is disabled"))
        return [str(error) for error in errors]
