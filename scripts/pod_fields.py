"""Write src/onthedot/settings/pod_fields.json anew: the fields of a pod template, from the schemas of the newest
Kubernetes that `kubernetes-validate` has. `.venv/bin/python scripts/pod_fields.py`

A field is written `name` or, where it is required, `name!`; its type is a name of JSON's, `scalar` (text or a number),
`any`, the name of another type, `[type]` for a list or `{type}` for a map.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import kubernetes_validate

PLACE = Path(__file__).parents[1] / "src/onthedot/settings/pod_fields.json"
ROOT = "io.k8s.api.core.v1.PodTemplateSpec"
_PLAIN = {"string", "integer", "boolean", "number"}


def pod_fields() -> dict[str, dict[str, str]]:
    version = kubernetes_validate.latest_version()
    folder = Path(kubernetes_validate.__file__).parent / "kubernetes-json-schema" / f"v{version}-local-strict"
    definitions = json.loads((folder / "_definitions.json").read_text())["$defs"]
    found: dict[str, dict[str, str]] = {}

    def type_of(schema: dict[str, Any]) -> str:
        if "$ref" in schema:
            name = schema["$ref"].rpartition("/")[2]
            target = definitions[name]
            if "properties" not in target:
                return type_of(target)
            add(name)
            return _short(name)
        if "oneOf" in schema:
            return "scalar"
        kinds = schema.get("type", "any")
        kind = next((each for each in kinds if each != "null"), "any") if isinstance(kinds, list) else kinds
        if kind == "array":
            return f"[{type_of(schema['items'])}]"
        if kind == "object":
            inner = schema.get("additionalProperties")
            return f"{{{type_of(inner)}}}" if isinstance(inner, dict) else "{any}"
        return kind if kind in _PLAIN else "any"

    def add(name: str) -> None:
        short = _short(name)
        if short in found:
            return
        found[short] = {}
        schema = definitions[name]
        required = schema.get("required", ())
        for field, value in sorted(schema["properties"].items()):
            found[short][f"{field}!" if field in required else field] = type_of(value)

    add(ROOT)
    return found


def _short(name: str) -> str:
    return name.rpartition(".")[2]


def text() -> str:
    rows = (f"{json.dumps(name)}: {json.dumps(fields)}" for name, fields in sorted(pod_fields().items()))
    return "{\n" + ",\n".join(rows) + "\n}\n"


if __name__ == "__main__":
    PLACE.write_text(text())
