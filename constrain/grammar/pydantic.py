"""Front-end: a pydantic model, or any type that pydantic can describe by a JSON Schema."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from constrain.errors import ConstrainError, GrammarError
from constrain.grammar.ir import GrammarIR
from constrain.grammar.json_schema import from_json_schema

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from constrain.grammar.schema_options import SchemaOptions


def from_pydantic(model: Any, **options: Unpack[SchemaOptions]) -> GrammarIR:
    """The grammar of the JSON texts that ``model`` describes.

    ``model`` is a ``BaseModel`` class, a dataclass, a ``TypedDict``, a ``pydantic.TypeAdapter`` or any other type that
    ``TypeAdapter`` takes (``list[int]``, ``Literal["a", "b"]``, ...); ``options`` are those of
    :func:`~constrain.grammar.json_schema.from_json_schema`.  It is the schema that pydantic
    writes for *validation* that is enforced, by the field aliases.  Validators written in Python are not part of it.

    Raises ConstrainError if pydantic is not installed, GrammarError if it has no schema for the type, and SchemaError
    as :func:`~constrain.grammar.json_schema.from_json_schema` does.
    """
    try:
        import pydantic
        from pydantic.errors import PydanticUserError
    except ImportError:
        raise ConstrainError("from_pydantic needs pydantic 2: pip install 'constrain[pydantic]'") from None
    try:
        if isinstance(model, pydantic.TypeAdapter):
            schema = model.json_schema()
        elif isinstance(model, type) and issubclass(model, pydantic.BaseModel):
            schema = model.model_json_schema()
        else:
            schema = pydantic.TypeAdapter(model).json_schema()
    except (PydanticUserError, NameError) as error:
        reason = str(error).splitlines()[0]
        raise GrammarError(f"pydantic has no JSON Schema for {model!r}: {reason}") from error
    return from_json_schema(schema, **options)
