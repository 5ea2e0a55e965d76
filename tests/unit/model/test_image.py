"""Names of images have many spellings; what is allowed is judged by the one that an engine is asked for."""

from __future__ import annotations

import pytest

from onthedot.model.image import ImageName, ImageRule

DIGEST = "sha256:" + "ab" * 32
OTHER = "sha256:" + "cd" * 32


@pytest.mark.parametrize(
    ("given", "full"),
    [
        ("alpine", "docker.io/library/alpine:latest"),
        ("library/alpine", "docker.io/library/alpine:latest"),
        ("docker.io/alpine:3.20", "docker.io/library/alpine:3.20"),
        ("index.docker.io/library/alpine", "docker.io/library/alpine:latest"),
        ("team/app", "docker.io/team/app:latest"),
        ("localhost/app", "localhost/app:latest"),
        ("localhost:5000/app:1", "localhost:5000/app:1"),
        ("registry.example/team/app", "registry.example/team/app:latest"),
        ("Registry.Example/app:V1", "registry.example/app:V1"),
        (f"alpine@{DIGEST}", f"docker.io/library/alpine@{DIGEST}"),
        (f"registry.example/app:1@{DIGEST}", f"registry.example/app@{DIGEST}"),
        ("deadbeef", "docker.io/library/deadbeef:latest"),
    ],
)
def test_all_spellings_are_one_name(given: str, full: str) -> None:
    name = ImageName.parse(given)
    assert str(name) == full
    assert ImageName.parse(full) == name


@pytest.mark.parametrize(
    "given",
    [
        "",
        " alpine",
        "alpine ",
        "Alpine",
        "alpine:",
        "alpine@",
        "alpine@sha256:short",
        "registry.example/",
        "registry.example//app",
        "../app",
        "registry.example/../app",
        "alpine:3\n",
        "alpine?x=1",
        "alpine:a/b",
        "http://registry.example/app",
        "user@registry.example/app",
        "alpinе",  # the last letter is Cyrillic
        "a" * 300,
    ],
)
def test_what_is_no_name(given: str) -> None:
    with pytest.raises(ValueError, match="is not the name of an image"):
        ImageName.parse(given)


@pytest.mark.parametrize(
    ("pattern", "given", "allowed"),
    [
        ("registry.example/*", "registry.example/team/app:1", True),
        ("registry.example/*", f"registry.example/app@{DIGEST}", True),
        ("registry.example/*", "registry.example.evil.test/app", False),
        ("registry.example/*", "evil.test/registry.example/app", False),
        ("registry.example/*", "registry.example:5000/app", False),
        ("registry.example/*", "app", False),
        ("*.example/app", "eu.example/app", True),
        ("*.example/app", "evil.test/x.example/app", False),
        ("127.0.0.1:*/app", "127.0.0.1:5000/app", True),
        ("alpine", "alpine", True),
        ("alpine", "docker.io/library/alpine:3.20", True),
        ("alpine", "index.docker.io/alpine", True),
        ("alpine", "registry.example/library/alpine", False),
        ("alpine", "evil/alpine", False),
        ("docker.io/library/*", "python:3", True),
        ("docker.io/library/*", "evil/python:3", False),
        ("python:3.*", "python:3.13", True),
        ("python:3.*", "python:2.7", False),
        ("python:3.*", "python", False),
        ("python:3.*", f"python:3.13@{DIGEST}", False),
        (f"python@{DIGEST}", f"python:9@{DIGEST}", True),
        (f"python@{DIGEST}", f"python@{OTHER}", False),
        (f"python@{DIGEST}", "python:3", False),
        ("python@*", f"python@{OTHER}", True),
        ("*", "registry.example/anything:9", True),
        ("team/*", "team/app", True),
        ("team/*", "registry.example/team/app", False),
    ],
)
def test_what_a_pattern_allows(pattern: str, given: str, allowed: bool) -> None:
    assert ImageRule.parse(pattern).allows(ImageName.parse(given)) is allowed


@pytest.mark.parametrize("pattern", ["", "registry.example/", "http://registry.example/*", "alpine:", "UPPER", "a b"])
def test_a_pattern_that_could_never_match(pattern: str) -> None:
    with pytest.raises(ValueError, match="is not a pattern"):
        ImageRule.parse(pattern)
