"""JSON Schema of a tool's arguments, derived from its signature, and the check of a value by it.

A deliberate subset: the types that JSON has, lists, string-keyed dictionaries, ``Literal`` and
unions of these. Knows nothing of tools or events. A library could say more; a tool argument that
needs more is better validated in the tool.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

Schema = dict[str, Any]

_SIMPLE: dict[Any, str] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
    list: "array",
    dict: "object",
}


def parameters_schema(function: Callable[..., object], skip: str | None) -> Schema:
    """Return the schema of ``function``'s arguments, leaving out the parameter called ``skip``.

    Raises:
        TypeError: a parameter has no type hint, a type outside the subset, or is ``*args``.
    """
    hints = get_type_hints(function)
    properties: Schema = {}
    required: list[str] = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name == skip:
            continue
        if parameter.name not in hints or parameter.kind in _UNNAMED:
            raise TypeError(
                f"{function.__name__}: parameter {parameter.name} needs a name and a type"
            )
        properties[parameter.name] = type_schema(hints[parameter.name])
        if parameter.default is inspect.Parameter.empty:
            required.append(parameter.name)
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


_UNNAMED = {
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.VAR_POSITIONAL,
    inspect.Parameter.VAR_KEYWORD,
}


def type_schema(hint: Any) -> Schema:
    """Return the schema of one type hint. Raises ``TypeError`` outside the subset."""
    if hint in (Any, object):
        return {}
    if isinstance(hint, type) and hint in _SIMPLE:
        return {"type": _SIMPLE[hint]}
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin in (Union, types.UnionType):
        return {"anyOf": [type_schema(argument) for argument in arguments]}
    if origin is list:
        return {"type": "array", "items": type_schema(arguments[0])}
    if origin is dict and arguments[0] is str:
        return {"type": "object", "additionalProperties": type_schema(arguments[1])}
    raise TypeError(f"no JSON Schema for {hint!r}: use JSON types, list, dict[str, ...], Literal")


def find_mismatch(schema: Schema, value: object, path: str = "arguments") -> str | None:
    """Return where ``value`` does not fit, naming places and types but never the value itself."""
    return next(_mismatches(schema, value, path), None)


def _mismatches(schema: Schema, value: object, path: str) -> Iterator[str]:
    if "anyOf" in schema:
        if all(find_mismatch(option, value) for option in schema["anyOf"]):
            yield f"{path} fits none of the allowed types"
    elif "enum" in schema:
        if value not in schema["enum"]:
            yield f"{path} is not one of the allowed values"
    elif "type" in schema and not _is(schema["type"], value):
        yield f"{path} is not of type {schema['type']}"
    elif isinstance(value, dict):
        yield from _object_mismatches(schema, value, path)
    elif isinstance(value, list) and "items" in schema:
        for position, item in enumerate(value):
            yield from _mismatches(schema["items"], item, f"{path}[{position}]")


def _object_mismatches(schema: Schema, value: Mapping[str, object], path: str) -> Iterator[str]:
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{path}.{name} is missing"
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties", {})
    for name, item in value.items():
        inner = properties.get(name, others)
        if inner is False:
            yield f"{path} has a property that the tool does not know"
        else:
            yield from _mismatches(inner, item, f"{path}.{name}" if name in properties else path)


def _is(type_name: str, value: object) -> bool:
    """JSON's view of a Python value: a bool is no number, a whole float is no integer."""
    if type_name in ("integer", "number") and isinstance(value, bool):
        return False
    wanted: dict[str, tuple[type, ...]] = {
        "string": (str,),
        "boolean": (bool,),
        "integer": (int,),
        "number": (int, float),
        "null": (type(None),),
        "array": (list,),
        "object": (dict,),
    }
    return isinstance(value, wanted[type_name])
