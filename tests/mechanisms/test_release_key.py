"""The secret of who releases: what is no secret is refused, and it travels nowhere."""

import copy
import os
import pickle
import stat

import pytest

from skldp.laws._release_key import joined_bytes
from skldp.mechanisms import ReleaseKey

SECRET = bytes(range(100, 132))[::-1]
OTHER = bytes(range(7, 231, 7))


def from_a_store():
    return SECRET


def test_a_new_file_is_its_owners_alone_and_is_never_written_over(tmp_path):
    path = tmp_path / "release.key"
    made = ReleaseKey.create(path)
    assert path.stat().st_size == 32
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    before = path.read_bytes()
    with pytest.raises(FileExistsError):
        ReleaseKey.create(path)
    assert path.read_bytes() == before
    assert ReleaseKey.from_file(str(path)) == made
    assert ReleaseKey.create(tmp_path / "other.key") != made


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o610, 0o601])
def test_a_file_that_others_may_open_is_refused(tmp_path, mode):
    ReleaseKey.create(path := tmp_path / "release.key")
    path.chmod(mode)
    with pytest.raises(ValueError, match="readable by its owner alone"):
        ReleaseKey.from_file(path)


@pytest.mark.parametrize(
    "content",
    [
        SECRET[:31],
        SECRET + b"\n",
        b"",
        bytes(32),
        b"\xff" * 32,
        bytes(31) + b"\1",
        b"\1\2\3\4" * 8,
        SECRET[:14] + bytes(18),
        b"correct horse battery staple 123",
        SECRET.hex().encode(),
        SECRET.hex()[:32].encode(),
    ],
    ids=range(11),
)
def test_what_nobody_drew_is_refused_and_not_shown(tmp_path, content):
    path = tmp_path / "release.key"
    path.write_bytes(content)
    path.chmod(0o600)
    for make in (lambda: ReleaseKey.from_file(path), lambda: ReleaseKey(content), lambda: ReleaseKey(lambda: content)):
        with pytest.raises(ValueError, match="A release secret must be") as refusal:
            make()
        assert not content or (content.hex() not in str(refusal.value) and repr(content) not in str(refusal.value))


@pytest.mark.parametrize("content", [None, "x" * 32, 32, [1] * 32, memoryview(SECRET)])
def test_what_is_no_bytes_is_refused(content):
    with pytest.raises(ValueError, match="A release secret must be 32 bytes"):
        ReleaseKey(content)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(path := tmp_path / "pipe", 0o600)
    with pytest.raises(ValueError, match="must be a regular file"):
        ReleaseKey.from_file(path)


def test_nothing_shows_the_secret(tmp_path):
    key = ReleaseKey(SECRET)
    for text in (repr(key), str(key), key.fingerprint, f"{key}", repr(vars(ReleaseKey(from_a_store))["_source"])):
        assert SECRET.hex()[:8] not in text
        assert repr(SECRET)[2:8] not in text
    assert key.fingerprint != ReleaseKey(OTHER).fingerprint


def test_bytes_stay_in_their_process():
    key = ReleaseKey(SECRET)
    assert not key.travels
    for send in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="must not be pickled"):
            send(key)


def test_a_pickle_says_where_the_secret_is(tmp_path):
    (path := tmp_path / "release.key").write_bytes(SECRET)
    path.chmod(0o600)
    for key in (ReleaseKey.from_file(path), ReleaseKey(from_a_store)):
        assert key.travels
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            sent = pickle.dumps(key, protocol)
            assert SECRET not in sent
            assert pickle.loads(sent) == key == ReleaseKey(SECRET)


def test_another_secret_at_the_same_place_is_refused(tmp_path):
    (path := tmp_path / "release.key").write_bytes(SECRET)
    path.chmod(0o600)
    sent = pickle.dumps(ReleaseKey.from_file(path))
    path.write_bytes(OTHER)
    with pytest.raises(ValueError, match="must have the fingerprint"):
        pickle.loads(sent)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        pickle.loads(sent)


def test_a_file_is_found_from_another_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sent = pickle.dumps(ReleaseKey.create("release.key"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert pickle.loads(sent).travels


def test_subkeys_are_of_purpose_parts_and_secret():
    key = ReleaseKey(SECRET)
    made = {
        key.subkey("a", b"xy"),
        key.subkey("b", b"xy"),
        key.subkey("a", b"x", b"y"),
        key.subkey("a", b"xy", b""),
        key.subkey("a", b"", b"xy"),
        key.subkey("a"),
        key.subkey("ax", b"y"),
        ReleaseKey(OTHER).subkey("a", b"xy"),
    }
    assert len(made) == 8
    assert {len(one) for one in made} == {32}
    assert key.subkey("a", b"xy") == ReleaseKey(SECRET).subkey("a", b"xy")
    with pytest.raises(ValueError, match="person"):
        key.subkey("seventeen letters")


def test_no_two_lists_are_joined_alike():
    parts = [b"", b"a", b"b", b"ab", bytes(8), b"\0" * 7 + b"\1" + b"a"]
    lists = [(), *((one,) for one in parts), *((one, other) for one in parts for other in parts)]
    assert len({joined_bytes(*one) for one in lists}) == len(lists)
