"""The JSON Schema of a pydantic model, of any type that pydantic can describe by one, or of a function's arguments."""

from __future__ import annotations

from typing import Any

from constrain.errors import ConstrainError, GrammarError
from constrain.extras import how_to_install
from constrain.grammar.json_schema.document.drafts import PYDANTIC_URI


def schema_of(model: Any) -> dict[str, Any]:
    """The JSON Schema of what pydantic reads, by the field aliases (``schema.py``).

    ``model`` is a ``BaseModel`` class, a dataclass, a ``TypedDict``, a ``pydantic.TypeAdapter`` or any other type that
    ``TypeAdapter`` takes (``list[int]``, ``Literal["a", "b"]``, ...), or a function, whose arguments are then
    described.  Of validators in Python the schema holds the names, which become warnings.

    Raises ConstrainError if pydantic is not installed, and GrammarError if it has no schema for the type.
    """
    try:
        import pydantic
        from pydantic.errors import PydanticUserError
        from pydantic_core import PydanticOmit, SchemaError

        from constrain.grammar.pydantic.schema import ValidatorJsonSchema
    except ImportError:
        raise ConstrainError(f"from_pydantic needs pydantic 2: {how_to_install('pydantic')}") from None
    if isinstance(model, dict):
        raise GrammarError(
            "from_pydantic takes a type, not a dict: for a JSON Schema there is Grammar.from_json_schema"
        )
    if isinstance(model, (str, int, float, bytes, tuple, list, set, pydantic.BaseModel)):
        name, kind = " ".join(repr(model).split()), type(model).__name__
        raise GrammarError(f"pydantic has no JSON Schema for {name}: it is a value ({kind}); give a type")
    if model is pydantic.BaseModel:
        raise GrammarError("pydantic has no JSON Schema for BaseModel itself: give a class with fields")
    try:
        if isinstance(model, type) and issubclass(model, pydantic.BaseModel):
            schema = model.model_json_schema(schema_generator=ValidatorJsonSchema)
        else:
            adapter = model if isinstance(model, pydantic.TypeAdapter) else pydantic.TypeAdapter(model)
            schema = adapter.json_schema(schema_generator=ValidatorJsonSchema)
        return {"$schema": PYDANTIC_URI, **schema}
    except SchemaError as error:
        # Of an argument that pydantic's validators cannot have: Field(ge=1e30) of an int.
        reason, name = " ".join(str(error).split()), " ".join(repr(model).split())
        raise GrammarError(f"pydantic has no validator for {name}: {reason}") from error
    except PydanticOmit as error:
        name = " ".join(repr(model).split())
        raise GrammarError(f"pydantic has no JSON Schema for {name}: SkipJsonSchema leaves it out") from error
    except (PydanticUserError, NameError) as error:
        reason, name = str(error).splitlines()[0], " ".join(repr(model).split())
        raise GrammarError(f"pydantic has no JSON Schema for {name}: {reason}") from error
