"""A study's tables: joined from those of its fleets and trunks, and copied."""

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from fallow.agents.beliefs import BELIEFS
from fallow.core import files
from fallow.core.errors import FallowError
from fallow.core.results import COLUMNS, ResultRow, write_results
from fallow.study.rows import read_rows
from fallow.study.store import DONE, STATUS, TABLE, TRUNK_TABLE, Study


def collect(study: Study) -> list[ResultRow]:
    """Join the tables of all fleets in the plan's order; writes and returns it."""
    tables = [study.fleet_folder(fleet) / TABLE for fleet in study.fleets]
    rows = joined(tables)
    write_results(study.table, rows)
    _collect_trunks(study)
    return rows


def _collect_trunks(study: Study) -> None:
    """The trunks' tables in the plan's order; what was known of others stays."""
    path = study.folder / TRUNK_TABLE
    known = joined([path])
    rows: list[ResultRow] = []
    for trunk in study.trunks:
        stored = joined([study.store / trunk.id / TABLE])
        rows += stored or [row for row in known if row.trunk == trunk.id]
    write_results(path, rows)


def set_damaged_aside(study: Study) -> list[str]:
    """Set joined tables that cannot be read aside; returns a sentence on each.

    They are made again from the tables of fleets and trunks.
    """
    sentences = []
    for name in (TABLE, TRUNK_TABLE):
        path = study.folder / name
        try:
            if path.exists():
                read_rows(path)
        except FallowError as error:
            aside = files.set_aside(path)
            sentences.append(f"{error}; set aside as {aside.name} and made again")
    return sentences


def joined(tables: Iterable[Path]) -> list[ResultRow]:
    """The rows of the tables that exist and are complete."""
    rows: list[ResultRow] = []
    for table in tables:
        try:
            rows += read_rows(table)
        except FallowError:  # not begun; a damaged one is seen to by its fleet
            continue
    return rows


def copy_tables(parts: Sequence[Study], target: Study) -> None:
    """Copy the tables of all fleets of some studies, without histories."""
    for part in parts:
        for fleet in part.fleets:
            source, copy = part.fleet_folder(fleet), target.fleet_folder(fleet)
            copy.mkdir(parents=True)
            for name in (TABLE, STATUS, DONE, BELIEFS):
                if (source / name).exists():
                    shutil.copyfile(source / name, copy / name)
    trunks = joined(part.folder / TRUNK_TABLE for part in parts)
    write_results(target.folder / TRUNK_TABLE, trunks)
    write_parquet(target.folder / "results.parquet", collect(target))


def write_parquet(path: Path, rows: Sequence[ResultRow]) -> Path | None:
    """The table as parquet, `returns` a list; None where pyarrow is missing."""
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        return None
    columns = {name: [getattr(row, name) for row in rows] for name in COLUMNS}
    types = {"returns": pyarrow.list_(pyarrow.float64())}
    types |= {name: pyarrow.float64() for name in ("auc", "stale_share", "wall_s")}
    table = pyarrow.table(
        {
            name: pyarrow.array(values, types.get(name))
            for name, values in columns.items()
        }
    )
    with files.write_atomic(path) as part:
        parquet.write_table(table, part)
    return path
