"""Results as tables that other libraries read: `pandas.DataFrame` and `datasets.Dataset`.

A result says its rows, and by `COLUMNS` which columns they have: a table without rows has them too, with their types.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Union

from veridical.core.errors import InputError
from veridical.core.tables import to_columns

if TYPE_CHECKING:
    import datasets
    import pandas

Columns = Mapping[str, Any]  # by name str, int, float, bool, or a list of one of them


class Tabular:
    """A result that can be had as a table."""

    __slots__ = ()
    COLUMNS: ClassVar[Columns] = {}

    def _rows(self) -> Iterable[Any]:
        """Records or mappings with these columns; what they have besides stands behind."""
        raise NotImplementedError

    def to_pandas(self) -> pandas.DataFrame:
        """The table as a data frame."""
        try:
            import pandas  # noqa: F401  Arrow needs it and says so in other words
        except ImportError as missing:
            raise InputError("A frame needs pandas, which is not installed; run `pip install pandas`.") from missing
        return _table(self._rows(), self.COLUMNS).to_pandas()

    def to_dataset(self) -> datasets.Dataset:
        """The table as a `datasets.Dataset`."""
        import datasets

        return datasets.Dataset(_table(self._rows(), self.COLUMNS))


def columns_of(record: type) -> Columns:
    """The columns that the fields of a record make."""
    hints = typing.get_type_hints(record)
    return {field.name: _kind(hints[field.name]) for field in dataclasses.fields(record)}


def _kind(annotation: Any) -> Any:
    origin = typing.get_origin(annotation)
    if origin in (Union, types.UnionType):
        (annotation,) = (member for member in typing.get_args(annotation) if member is not type(None))
        return _kind(annotation)
    if origin is Literal:
        return str
    return list[_kind(typing.get_args(annotation)[0])] if origin is tuple else annotation


def _table(rows: Iterable[Any], columns: Columns) -> Any:
    import pyarrow

    held = to_columns(rows, columns)
    arrays = {name: pyarrow.array(values, _arrow(columns.get(name))) for name, values in held.items()}
    # A column of nothing but missing values is one of numbers that are not there.
    nothing = [name for name, array in arrays.items() if array.type == pyarrow.null()]
    return pyarrow.table({**arrays, **{name: arrays[name].cast(pyarrow.float64()) for name in nothing}})


def _arrow(kind: Any) -> Any:
    import pyarrow

    if typing.get_origin(kind) is list:
        return pyarrow.list_(_arrow(typing.get_args(kind)[0]))
    known = {str: pyarrow.string(), int: pyarrow.int64(), float: pyarrow.float64(), bool: pyarrow.bool_()}
    return known.get(kind)
