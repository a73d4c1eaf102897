# SPDX-License-Identifier: BSD-2-Clause
"""Where labs are noted: locks, folders, leftovers. No namespace is touched."""

import os
import subprocess
import sys

import pytest

from mrc.lab import userns
from mrc.lab.errors import FabricError, FabricUnavailableError
from mrc.lab.remote import NoLabError, choose, entering, host_number, standing_in
from mrc.lab.state import ENV_FOLDER, ENV_HOST, ENV_LAB, base, place, places, surroundings, sweep
from tests.needs import skip_or_fail


@pytest.fixture(autouse=True)
def runtime(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv(ENV_LAB, raising=False)
    monkeypatch.delenv(ENV_HOST, raising=False)
    monkeypatch.delenv(ENV_FOLDER, raising=False)
    return tmp_path


def test_a_lab_is_alive_while_its_lock_is_held(runtime):
    where = place("one")
    assert not where.alive()
    lock = where.take()
    assert where.alive()
    with pytest.raises(FabricError, match="one is up already"):
        where.take()
    os.close(lock)
    assert not where.alive()
    assert (runtime / "mrc-lab").stat().st_mode & 0o077 == 0


def test_a_lock_ends_with_its_process_however_it_ends():
    program = (
        "import os, sys; from mrc.lab.state import place; place('two').take();"
        "print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as held:
        assert held.stdout is not None
        assert held.stdout.readline() == b"held\n"
        assert place("two").alive()
        held.kill()
        held.wait()
    assert not place("two").alive()
    assert sweep() == ["two"]
    assert places() == []


def test_a_sweep_leaves_the_living_alone():
    lock = place("alive").take()
    os.close(place("dead").take())
    os.close(place("torn").take())
    (place("torn").folder / "lab.json").write_text("{")
    assert sweep() == ["dead", "torn"]
    assert [p.name for p in places()] == ["alive"]
    os.close(lock)


def test_what_is_no_lab_is_left_alone(runtime):
    (runtime / "elsewhere").mkdir()
    base()
    (runtime / "mrc-lab" / "file").write_text("")
    (runtime / "mrc-lab" / "link").symlink_to(runtime / "elsewhere")
    (runtime / "mrc-lab" / "odd" / "lock").mkdir(parents=True)
    assert sweep() == []
    assert list((runtime / "elsewhere").iterdir()) == []
    assert [p.name for p in places() if p.alive()] == []
    with pytest.raises(FabricError, match="is a link"):
        place("link").take()


def test_a_file_in_the_way_is_named(runtime):
    (runtime / "mrc-lab").write_text("")
    with pytest.raises(FabricError, match="mrc-lab: no folder for labs, but a file"):
        base()


def test_notes_are_whole_or_not_there():
    where = place("noted")
    os.close(where.take())
    assert where.noted() == {}
    where.note({"holder": 3})
    assert where.noted() == {"holder": 3}
    (where.folder / "lab.json").write_text("[1]")
    assert where.noted() == {}


def test_another_users_folder_is_refused(runtime, monkeypatch):
    if os.geteuid() != 0:
        skip_or_fail("only root can make a folder of another user")
    (runtime / "mrc-lab").mkdir()
    os.chown(runtime / "mrc-lab", 65534, 65534)
    with pytest.raises(FabricError, match="another user"):
        base()
    os.chown(runtime, 65534, 65534)  # a runtime directory kept by sudo is not taken at all
    assert base().parent != runtime


def test_a_folder_open_to_others_is_refused(runtime):
    base()
    (runtime / "mrc-lab").chmod(0o755)
    with pytest.raises(FabricError, match=r"is open to other users: chmod 700"):
        base()


UNSHARE = ("unshare", "--user", "--map-root-user")


def in_userns(program: str, *before: str, **env: str) -> str:
    """What a program says that runs as root of a user namespace; `before`: who begins it."""
    kept = {k: v for k, v in os.environ.items() if k not in ("XDG_RUNTIME_DIR", *env)}
    argv = [*before, *UNSHARE, sys.executable, "-c", program]
    done = subprocess.run(
        argv, capture_output=True, text=True, env={**kept, **env}, timeout=30, check=False
    )
    if "unshare failed" in done.stderr:
        skip_or_fail(f"no user namespace here: {done.stderr.strip()}")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_in_a_user_namespace_one_is_known_by_the_number_outside():
    say = "from mrc.lab import userns; print(userns.inside(), userns.outer_uid())"
    assert in_userns(say) == f"True {os.geteuid()}"
    assert not userns.inside() or userns.outer_uid() != os.geteuid()


def test_the_way_to_another_user_namespace():
    assert userns.way_to(os.getpid()) is userns.Way.HERE
    assert userns.way_to(2**22 + 1) is userns.Way.NONE
    with subprocess.Popen([*UNSHARE, "sh", "-c", "echo in; read x"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as below:  # fmt: skip
        assert below.stdout is not None
        if below.stdout.readline() != b"in\n":
            skip_or_fail("no user namespace here")
        assert userns.way_to(below.pid) is userns.Way.DOWN
        say = "from mrc.lab import userns; print(userns.way_to({}).name)"
        assert in_userns(say.format(below.pid)) == "NONE"
        assert in_userns(say.format(os.getpid())) == "NONE"
        below.kill()


def test_in_a_user_namespace_labs_lie_in_a_folder_of_ones_own(runtime):
    """Whose root is not the machine's: /run is another's."""
    say = "from mrc.lab.state import base; print(base())"
    assert in_userns(say, XDG_RUNTIME_DIR=str(runtime)) == str(runtime / "mrc-lab")
    found = in_userns(say)
    assert found in ("/run/mrc-lab", f"/tmp/mrc-lab-{os.geteuid()}")


def test_standing_in_a_host_is_seen_by_its_namespace():
    said = {"namespaces": {"h1": "/proc/self/fd/99999", "h2": "/proc/self/ns/net"}}
    assert standing_in(said) == "h2"
    assert standing_in({"namespaces": {"h1": "/proc/self/ns/user"}}) is None


def test_in_a_host_labs_are_looked_for_where_its_own_is(monkeypatch, tmp_path):
    elsewhere = tmp_path / "elsewhere" / "lab"
    elsewhere.parent.mkdir(mode=0o700)
    monkeypatch.setenv(ENV_FOLDER, str(elsewhere))
    monkeypatch.setenv(ENV_HOST, "h1")
    monkeypatch.setenv("XDG_RUNTIME_DIR", "/nowhere")
    assert base() == elsewhere.parent


@pytest.fixture
def home(monkeypatch, tmp_path):
    """Somebody's folder, who stands in it and says MRC_LAB where he always says it."""
    made = tmp_path / "home"
    for name in ("thesis", ".hidden", "lockers"):
        (made / name).mkdir(parents=True)
        (made / name / "work").write_text("years")
    (made / "lockers" / "lock").write_text("a key")
    monkeypatch.chdir(made)
    monkeypatch.setenv(ENV_HOST, "h1")
    return made


def kept(home):
    return sorted(str(p.relative_to(home)) for p in home.rglob("*") if p.is_file())


@pytest.mark.parametrize("value", ["mylab", "./mylab", "{home}/mylab", "", "/", "."])
def test_a_name_of_a_lab_is_never_a_folder_to_sweep(monkeypatch, home, value):
    before = kept(home)
    monkeypatch.setenv(ENV_LAB, value.format(home=home))
    assert surroundings() is None
    assert base() != home
    sweep(0)
    assert kept(home) == before


@pytest.mark.parametrize("value", ["mylab", "./mylab", "/", "{home}/..", "{home}/a b"])
def test_what_is_no_folder_of_a_lab_is_refused(monkeypatch, home, value):
    before = kept(home)
    monkeypatch.setenv(ENV_FOLDER, value.format(home=home))
    for ask in (base, surroundings, places, sweep):
        with pytest.raises(FabricError, match="is no folder of a lab; unset it"):
            ask()
    assert kept(home) == before


def test_a_folder_open_to_others_is_none_for_labs(monkeypatch, home):
    home.chmod(0o755)
    monkeypatch.setenv(ENV_FOLDER, str(home / "mylab"))
    with pytest.raises(FabricError, match="chmod 700"):
        sweep()


def test_of_others_files_none_is_removed_whatever_the_environment_says(monkeypatch, home):
    """Not even in a folder with a lock: what was put there stays, only the lock is gone."""
    home.chmod(0o700)
    monkeypatch.setenv(ENV_FOLDER, str(home / "mylab"))
    before = kept(home)
    sweep(0)
    assert kept(home) == [name for name in before if name != "lockers/lock"]


def test_a_folder_without_a_lock_is_no_lab(monkeypatch):
    (base() / "notes").mkdir()
    (base() / "notes" / "lab.json").write_text("{}")
    assert sweep(0) == []
    assert (base() / "notes" / "lab.json").exists()


@pytest.mark.parametrize("name", ["", "a/b", "..", ".x", "x" * 33, "a b"])
def test_names_are_names(name):
    with pytest.raises(ValueError, match="no name for a lab"):
        place(name)


def test_the_only_lab_is_meant_several_are_not_and_inside_one_it_is_that(monkeypatch):
    with pytest.raises(NoLabError, match="no lab is up"):
        choose(None)
    locks = [place("a").take()]
    assert choose(None).name == "a"
    locks.append(place("b").take())
    with pytest.raises(NoLabError, match=r"several labs are up.*a, b"):
        choose(None)
    with pytest.raises(NoLabError, match=r"no lab named c \(up: a, b\)"):
        choose("c")
    monkeypatch.setenv(ENV_FOLDER, str(place("b").folder))
    monkeypatch.setenv(ENV_HOST, "h1")
    assert choose(None).name == "b"
    for lock in locks:
        os.close(lock)


def test_a_lab_is_named_by_the_environment_too_and_another_is_never_taken_for_it(monkeypatch):
    locks = [place(name).take() for name in ("a", "b")]
    monkeypatch.setenv(ENV_LAB, "b")
    assert choose(None).name == "b"
    assert choose("a").name == "a"
    monkeypatch.setenv(ENV_LAB, "nosuch")
    with pytest.raises(NoLabError, match=r"no lab named nosuch \(up: a, b\)"):
        choose(None)
    os.close(locks.pop())
    with pytest.raises(NoLabError, match=r"no lab named nosuch \(up: a\)"):
        choose(None)
    os.close(locks.pop())


def test_hosts_by_name():
    assert host_number("h2", 2) == 1
    for wrong in ("h3", "h0", "2", "h", "hx", "h1x"):
        with pytest.raises(FabricError, match="h1 to h2"):
            host_number(wrong, 2)


def test_entering_a_host_enters_its_user_namespace_where_that_is_another(monkeypatch):
    said = {"name": "x", "namespaces": {"h1": "/proc/5/fd/7"}, "holder": 5}
    ways = {5: userns.Way.HERE}
    monkeypatch.setattr(userns, "way_to", ways.get)
    assert entering(said, "h1", ["id"]) == ["nsenter", "--net=/proc/5/fd/7", "--", "id"]
    ways[5] = userns.Way.DOWN
    assert "--user=/proc/5/ns/user" in entering(said, "h1", ["id"])
    ways[5] = userns.Way.NONE
    with pytest.raises(FabricUnavailableError, match="the lab x is in a user namespace that"):
        entering(said, "h1", ["id"])
