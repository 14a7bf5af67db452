"""YAML in and out, with the meaning that sigs.k8s.io/yaml (go-yaml v2, YAML 1.1) gives it.

``load`` turns the first document into a JSON value: ``yes``, ``on`` and ``n`` are booleans, ``017`` and ``0o17`` are
octal, timestamps stay text, keys become text (``n:`` is "false"), merge keys are merged. libyaml parses, so syntax
errors carry kube-apiserver's words; depth and alias expansion are bounded as in kube-apiserver. ``dump`` writes block
style with sorted keys. PyYAML is imported on first use.
"""

from pilothouse.machinery.yaml_codec.reading import load, load_reporting, load_sorted
from pilothouse.machinery.yaml_codec.scalars import YamlError
from pilothouse.machinery.yaml_codec.writing import dump

__all__ = ["YamlError", "dump", "load", "load_reporting", "load_sorted"]
