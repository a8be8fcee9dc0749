"""Which builtin operator an OperatorCode names, in the old field of 8 bits and the new one."""

from __future__ import annotations

from tflq.schemas.tflite.core import OperatorCode
from tflq.schemas.tflite.operators import BuiltinOperator

_LAST_OLD_CODE = BuiltinOperator.PLACEHOLDER_FOR_GREATER_OP_CODES


def builtin_code(code: OperatorCode) -> BuiltinOperator:
    """Return max(deprecated_builtin_code, builtin_code): files before schema 3a have only the old field.

    Every int8 from 0 on is an operator, and a negative one is below any builtin_code, so this cannot fail.
    """
    return BuiltinOperator(max(code.deprecated_builtin_code, code.builtin_code))


def set_builtin_code(code: OperatorCode, operator: BuiltinOperator) -> None:
    """Set both fields: builtin_code = operator, deprecated_builtin_code = min(operator, 127).

    Raises:
        FormatError: The number is no operator.
    """
    code.builtin_code = operator
    code.deprecated_builtin_code = min(int(operator), int(_LAST_OLD_CODE))
