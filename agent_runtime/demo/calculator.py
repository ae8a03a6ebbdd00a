"""Arithmetic without ``eval``: numbers, + - * / // % **, signs and brackets, of bounded size.

Knows nothing of tools beyond the error that a person may read.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable

from agent_runtime.errors import ToolError

MAX_EXPRESSION_CHARACTERS = 200
MAX_MAGNITUDE = 1e15
MAX_EXPONENT = 64

Number = int | float

_BINARY: dict[type[ast.operator], Callable[[Number, Number], Number]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_UNARY: dict[type[ast.unaryop], Callable[[Number], Number]] = {
    ast.UAdd: operator.pos,
    ast.USub: operator.neg,
}


def calculate(expression: str) -> Number:
    """Return the value of an expression.

    Raises:
        ToolError: it is no arithmetic, too large, or divides by zero.
    """
    if len(expression) > MAX_EXPRESSION_CHARACTERS:
        raise _refused("The expression is too long.")
    try:
        return _value(ast.parse(expression.strip(), mode="eval").body)
    except ZeroDivisionError:
        raise _refused("Division by zero.") from None
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
        raise _refused("That is not arithmetic I can do.") from None


def _value(node: ast.expr) -> Number:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return _bounded(value)
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            return _UNARY[type(op)](_value(operand))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            a, b = _value(left), _value(right)
            if isinstance(op, ast.Pow) and abs(b) > MAX_EXPONENT:
                raise _refused("The exponent is too large.")
            return _bounded(_BINARY[type(op)](a, b))
    raise _refused("Only numbers, + - * / // % ** and brackets, please.")


def _bounded(value: Number) -> Number:
    """Keep every step small, so that no power tower fills the memory. A root of -1 is refused."""
    if isinstance(value, complex) or not abs(value) <= MAX_MAGNITUDE:
        raise _refused("The number is too large.")
    return value


def _refused(user_message: str) -> ToolError:
    return ToolError(user_message, reason="NOT_ARITHMETIC")
