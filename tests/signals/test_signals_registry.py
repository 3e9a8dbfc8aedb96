"""The registry of readers holds what each reader promises."""

from ragclinic.signals.readers import READERS, reader_for


def test_ids_are_unique_and_every_reader_names_versions_and_signals() -> None:
    ids = [reader.id for reader in READERS]
    assert len(ids) == len(set(ids)) >= 25
    assert all(reader.versions and reader.signals for reader in READERS)


def test_nothing_is_claimed_that_nobody_knows() -> None:
    for head in (b"", b"hello", b"{}", b"[]", b"\x00" * 64, b"a,b,c\n1,2,3\n", b'{"message": 1'):
        assert reader_for(head) is None, head
