import pytest

from fallow.core import files


def test_a_file_is_there_whole_or_not_at_all(tmp_path) -> None:
    path = tmp_path / "new" / "table.csv"
    with files.whole(path) as part:
        part.write_text("first")
        assert not path.exists()
    assert path.read_text() == "first"
    with pytest.raises(RuntimeError), files.whole(path) as part:
        part.write_text("half of the sec")
        raise RuntimeError
    assert path.read_text() == "first"
    with files.whole(path) as part:
        part.write_text("third")
    assert path.read_text() == "third"
    assert list(path.parent.iterdir()) == [path]
