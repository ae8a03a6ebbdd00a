"""Checks a Cloud Run service description offline: `python -m deploy.check_service_yaml FILE`.

Knows nothing of our service, and asks no network. Google's own description of the API comes with
the package google-api-python-client (`make check-deploy` installs it): unknown fields, wrong
types and misplaced annotations are judged by that. The rules that it states only in prose
(ports, probes, dependencies, limits) are written out here and need no package.
"""

from __future__ import annotations

import importlib.resources
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import yaml

STARTUP_WINDOW_SECONDS_MAX = 240
REQUEST_SECONDS_MAX = 3600
CONCURRENCY_MAX = 1000
DNS_LABEL = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
DEPENDENCIES = "run.googleapis.com/container-dependencies"

# JSON carries a whole number of 64 bits as a text.
FORMATS: Mapping[str, dict[str, Any]] = {
    "int32": {"type": "integer"},
    "int64": {"type": ["integer", "string"]},
    "float": {"type": "number"},
    "double": {"type": "number"},
}

Node = Mapping[str, Any]


def complaints(service: Node, api: Node | None = None) -> list[str]:
    """Return what is wrong with a parsed service; ``api`` is Google's description, if at hand."""
    if api is not None:
        by_schema = list(_schema_complaints(service, api))
        if by_schema:
            return by_schema
    revision = service["spec"]["template"]
    containers: list[Node] = revision["spec"]["containers"]
    return [
        *(_annotation_complaints(service, api) if api is not None else ()),
        *_container_complaints(containers),
        *_dependency_complaints(revision, containers),
        *(line for container in containers for line in _probe_complaints(container)),
        *_limit_complaints(revision["spec"]),
    ]


def _json_schema(node: Node) -> dict[str, Any]:
    """Turn a schema of a discovery document into a JSON schema that knows no further fields."""
    if "$ref" in node:
        return {"$ref": "#/$defs/" + node["$ref"]}
    kind = node.get("type")
    if kind == "array":
        return {"type": "array", "items": _json_schema(node["items"])}
    if kind == "object" and "properties" in node:
        properties = {name: _json_schema(child) for name, child in node["properties"].items()}
        return {"type": "object", "properties": properties, "additionalProperties": False}
    if kind == "object":
        return {
            "type": "object",
            "additionalProperties": _json_schema(node["additionalProperties"]),
        }
    simple = FORMATS.get(node.get("format", ""), {"type": kind} if kind != "any" else {})
    return {**simple, **({"enum": node["enum"]} if "enum" in node else {})}


def _schema_complaints(service: Node, api: Node) -> Iterator[str]:
    definitions = {name: _json_schema(node) for name, node in api["schemas"].items()}
    schema = {"$ref": "#/$defs/Service", "$defs": definitions}
    for error in jsonschema.Draft202012Validator(schema).iter_errors(service):
        yield f"{'/'.join(map(str, error.absolute_path))}: {error.message}"


def _annotation_complaints(service: Node, api: Node) -> Iterator[str]:
    """Check the annotations' places against the list in the description's own prose."""
    prose = api["schemas"]["ObjectMeta"]["properties"]["annotations"]["description"]
    listed = re.findall(
        r"`((?:run\.googleapis\.com|autoscaling\.knative\.dev)/[\w-]+)`: ([A-Za-z, ]+)", prose
    )
    places = {name: {place.strip() for place in text.split(",")} for name, text in listed}
    for where, node in (("Service", service), ("Revision", service["spec"]["template"])):
        for name in node["metadata"].get("annotations", {}):
            if not places.get(name, set()) & {where, "All resources"}:
                yield f"annotation {name} is not allowed on a {where}"


def _container_complaints(containers: list[Node]) -> Iterator[str]:
    names = [container.get("name", "") for container in containers]
    if sum("ports" in container for container in containers) != 1:
        yield "exactly one container must have ports"
    if len(set(names)) != len(names):
        yield "two containers have one name"
    for name in names:
        if not DNS_LABEL.fullmatch(name):
            yield f"container name {name!r} is no DNS label"


def _dependency_complaints(revision: Node, containers: list[Node]) -> Iterator[str]:
    by_name = {container.get("name"): container for container in containers}
    text = revision["metadata"].get("annotations", {}).get(DEPENDENCIES, "{}")
    for name, needed in json.loads(text).items():
        for unknown in {name, *needed} - by_name.keys():
            yield f"{DEPENDENCIES} names an unknown container {unknown}"
        for other in by_name.keys() & set(needed):
            if "startupProbe" not in by_name[other]:
                yield f"{other} is depended on, but has no startupProbe"


def _probe_complaints(container: Node) -> Iterator[str]:
    for kind in ("startupProbe", "livenessProbe"):
        if (probe := container.get(kind)) is None:
            continue
        where = f"{container.get('name')}.{kind}"
        period_seconds = probe.get("periodSeconds", 10)
        if probe.get("timeoutSeconds", 1) > period_seconds:
            yield f"{where}: timeoutSeconds is above periodSeconds"
        if kind == "livenessProbe" and "tcpSocket" in probe:
            yield f"{where}: a TCP probe tells nothing of liveness, and is refused"
        if kind == "startupProbe" and (
            period_seconds * probe.get("failureThreshold", 3) > STARTUP_WINDOW_SECONDS_MAX
        ):
            yield f"{where}: the window is above {STARTUP_WINDOW_SECONDS_MAX} s"
        if "grpc" in probe and "ports" not in container and "port" not in probe["grpc"]:
            yield f"{where}: a container without ports must name the probe's port"


def _limit_complaints(spec: Node) -> Iterator[str]:
    if spec.get("timeoutSeconds", 300) > REQUEST_SECONDS_MAX:
        yield f"timeoutSeconds is above {REQUEST_SECONDS_MAX}"
    if spec.get("containerConcurrency", 80) > CONCURRENCY_MAX:
        yield f"containerConcurrency is above {CONCURRENCY_MAX}"


def main(path: str) -> int:
    """Print what is wrong with a file. Returns the exit code."""
    documents = importlib.resources.files("googleapiclient.discovery_cache.documents")
    api = json.loads((documents / "run.v1.json").read_text())
    found = complaints(yaml.safe_load(Path(path).read_text()), api)
    print("\n".join(found) or f"{path}: OK")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
