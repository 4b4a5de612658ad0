"""What the doors export is fully annotated, as ``py.typed`` promises."""

import inspect

import doors
import pytest

PUBLIC = {name: value for door in doors.PUBLIC for name in door.__all__ if callable(value := getattr(door, name))}


def functions_of(public):
    if not inspect.isclass(public):
        return [public]
    own = [cls for cls in public.__mro__ if cls.__module__.startswith("skldp")]
    named = [(name, value) for cls in own for name, value in vars(cls).items()]
    return [value for name, value in named if inspect.isfunction(value) and (name == "__init__" or name[0] != "_")]


@pytest.mark.parametrize("name", PUBLIC)
def test_every_parameter_and_every_answer_has_a_type(name):
    for function in functions_of(PUBLIC[name]):
        signature = inspect.signature(function)
        untyped = [p.name for p in signature.parameters.values() if p.annotation is p.empty and p.name != "self"]
        assert not untyped, f"{function.__qualname__}: {untyped}"
        assert signature.return_annotation is not signature.empty, function.__qualname__
