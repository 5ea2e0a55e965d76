"""What is relied on of an object store, for both."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from onthedot.errors import ObjectMissing, ObjectStoreUnavailable, SettingsError
from onthedot.objects import ObjectStore, open_objects
from onthedot.objects.directory import DirectoryObjects
from tests.services.missing import missing
from tests.services.s3 import BUCKET, S3Missing, running_s3

NAME = "scripts/1/abc"


@pytest.fixture(scope="module")
def s3_url() -> Iterator[str]:
    try:
        with running_s3() as url:
            yield url
    except S3Missing as why:
        missing(why)


S3_MARKS = [pytest.mark.leaves_children, pytest.mark.keeps_connections]  # the server, and what its client keeps open


@pytest.fixture(params=["directory", pytest.param("s3", marks=S3_MARKS)])
def objects(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ObjectStore:
    if request.param == "directory":
        return open_objects(str(tmp_path / "objects"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    url = request.getfixturevalue("s3_url")
    return open_objects(f"s3://{BUCKET}/{tmp_path.name}?endpoint={url}")


async def test_what_was_put_is_got(objects: ObjectStore):
    content = bytes(range(256)) * 5000
    assert not await objects.exists(NAME)
    await objects.put(NAME, content)
    assert await objects.exists(NAME)
    assert await objects.get(NAME) == content


async def test_what_is_not_there_is_missing(objects: ObjectStore):
    with pytest.raises(ObjectMissing):
        await objects.get(NAME)


async def test_put_replaces(objects: ObjectStore):
    await objects.put(NAME, b"first")
    await objects.put(NAME, b"")
    assert await objects.get(NAME) == b""


async def test_deleted_is_gone_and_may_be_deleted_again(objects: ObjectStore):
    await objects.put(NAME, b"x")
    await objects.put(NAME + "d", b"y")
    await objects.delete(NAME)
    await objects.delete(NAME)
    assert not await objects.exists(NAME)
    assert await objects.get(NAME + "d") == b"y"


async def test_many_at_once(objects: ObjectStore):
    names = [f"scripts/1/{number}" for number in range(20)]
    await asyncio.gather(*(objects.put(name, name.encode()) for name in names))
    assert await asyncio.gather(*map(objects.get, names)) == [name.encode() for name in names]


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a//b", "", "a/../b", "A", "a\n", "a/.", "x" * 101])
async def test_no_name_leaves_the_store(objects: ObjectStore, name: str):
    for verb in (objects.get, objects.exists, objects.delete):
        with pytest.raises(ValueError, match="not a valid object name"):
            await verb(name)
    with pytest.raises(ValueError, match="not a valid object name"):
        await objects.put(name, b"")


async def test_a_file_appears_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    objects = DirectoryObjects(tmp_path)
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(descriptor))
    await objects.put(NAME, b"x" * 100)
    assert len(synced) == 4, "the file, the folder that it is in, and both folders that are new"
    folder = tmp_path / "scripts" / "1"
    assert [file.name for file in folder.iterdir()] == ["abc"], "nothing is left beside it"
    assert (folder / "abc").stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700


async def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    objects = DirectoryObjects(tmp_path)
    await objects.put(NAME, b"old")

    def fails(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fails)
    with pytest.raises(ObjectStoreUnavailable, match="No space left"):
        await objects.put(NAME, b"new")
    assert await objects.get(NAME) == b"old"
    assert len(list((tmp_path / "scripts" / "1").iterdir())) == 1


async def test_a_directory_that_cannot_be_made(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ObjectStoreUnavailable, match="is unavailable"):
        await open_objects(str(tmp_path / "file")).put(NAME, b"")


async def test_a_server_that_is_away_is_told(free_port: Callable[[], int], monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("onthedot.objects.s3.ATTEMPTS", 0)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    objects = open_objects(f"s3://{BUCKET}?endpoint=http://127.0.0.1:{free_port()}")
    with pytest.raises(ObjectStoreUnavailable, match=f"s3://{BUCKET} is unavailable"):
        await objects.get(NAME)


@pytest.mark.parametrize("place", ["s3://", "s3:///prefix", "s3://bucket?zone=1"])
def test_addresses_that_are_not_valid(place: str):
    with pytest.raises(SettingsError, match="Accepted: s3://BUCKET"):
        open_objects(place)


def test_without_its_client_s3_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "obstore.store", None)
    with pytest.raises(SettingsError, match=r"pip install 'onthedot\[s3\]'"):
        open_objects("s3://bucket")
