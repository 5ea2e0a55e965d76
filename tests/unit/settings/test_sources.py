"""Where a setting comes from: flags over environment over file over defaults."""

from __future__ import annotations

from pathlib import Path

import pytest

from onthedot.errors import SettingsError
from onthedot.model.duration import Duration
from onthedot.settings import CertificateSetting, CommandSetting, Settings, load_settings


@pytest.fixture
def write(tmp_path: Path):
    def write(text: str) -> Path:
        path = tmp_path / "onthedot.toml"
        path.write_text(text)
        return path

    return write


def test_without_any_source_the_defaults_of_the_contract_hold(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = load_settings(environ={})
    assert settings.store == "sqlite:///onthedot.db"
    assert (settings.host, settings.port) == ("127.0.0.1", 8000)
    assert settings.roles == ("api", "executor")
    assert settings.workers == 1
    assert settings.jobs_file_path == Path("jobs.json")
    assert settings.supported_extensions == ("json", "yaml", "yml", "toml")
    assert settings.granularity == Duration.parse("1s")
    assert settings.log_level == "INFO"
    assert settings.logs_base_directory == Path("logs")
    assert settings.next_job_count == 1000
    assert settings.lookahead == Duration.parse("2s")
    assert settings.poll_interval == Duration.parse("1s")
    assert settings.lease == Duration.parse("5s")
    assert settings.concurrency == 1000
    assert settings.function_processes >= 2
    assert settings.timeout_seconds == 3
    assert settings.retention == Duration.parse("30d")
    assert settings.auth == ("auto",)
    assert settings.egress_allow == ()
    assert settings.given == frozenset()


def test_flags_beat_the_environment_which_beats_the_file(write):
    path = write('port = 1001\nlog_level = "ERROR"\nlease = "9s"\n')
    settings = load_settings({"port": 3003}, {"ONTHEDOT_PORT": "2002", "ONTHEDOT_LOG_LEVEL": "debug"}, path)
    assert (settings.port, settings.log_level, settings.lease) == (3003, "DEBUG", Duration.parse("9s"))
    assert settings.given == {"port", "log_level", "lease"}


def test_a_flag_that_was_not_given_does_not_hide_the_rest(write):
    settings = load_settings({"port": None, "store": None}, {"ONTHEDOT_PORT": "2002"}, write(""))
    assert settings.port == 2002


def test_five_names_are_read_without_the_prefix_too(write):
    environ = {
        "JOBS_FILE_PATH": "work/my.yaml",
        "SUPPORTED_EXTENSIONS": "yaml, .toml",
        "GRANULARITY": "minute",
        "LOG_LEVEL": "warning",
        "LOGS_BASE_DIRECTORY": "/var/log/otd",
    }
    settings = load_settings({}, environ, write(""))
    assert settings.jobs_file_path == Path("work/my.yaml")
    assert settings.supported_extensions == ("yaml", "toml")
    assert settings.granularity == Duration.parse("1m")
    assert settings.log_level == "WARNING"
    assert settings.logs_base_directory == Path("/var/log/otd")


def test_the_prefixed_name_beats_the_bare_one(write):
    settings = load_settings({}, {"LOG_LEVEL": "DEBUG", "ONTHEDOT_LOG_LEVEL": "ERROR"}, write(""))
    assert settings.log_level == "ERROR"


@pytest.mark.parametrize("name", ["PORT", "STORE", "HOST", "AUTH", "LEASE"])
def test_no_other_name_is_read_without_the_prefix(name, write):
    assert load_settings({}, {name: "nonsense"}, write("")) == load_settings({}, {}, write(""))


def test_an_empty_variable_is_one_that_is_not_set(write):
    settings = load_settings({}, {"ONTHEDOT_PORT": "", "LOG_LEVEL": ""}, write(""))
    assert settings == load_settings({}, {}, write(""))


def test_the_file_of_the_working_directory_is_found(tmp_path, monkeypatch):
    (tmp_path / "onthedot.toml").write_text("port = 4004")
    monkeypatch.chdir(tmp_path)
    assert load_settings(environ={}).port == 4004


def test_a_file_that_was_named_must_be_there(tmp_path):
    with pytest.raises(SettingsError, match=r"missing\.toml: settings file not found"):
        load_settings({}, {}, tmp_path / "missing.toml")


def test_a_file_that_is_no_toml_is_named_with_the_line(write):
    with pytest.raises(SettingsError, match=r"onthedot\.toml: not valid TOML: .*line 2"):
        load_settings({}, {}, write("port = 1\nstore =\n"))


def test_a_file_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "onthedot.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(SettingsError, match="can't be read"):
        load_settings({}, {}, path)


def test_the_file_holds_lists_tables_and_upper_or_lower_case(write):
    settings = load_settings(
        {},
        {},
        write(
            """
            STORE = "postgresql://otd@db/otd"
            roles = ["executor"]
            egress_allow = ["10.0.0.0/8", "192.168.1.7", "*.corp.example"]
            functions = ["reports.nightly", "tasks"]
            poll-interval = "250ms"

            [commands.backup]
            argv = ["/usr/bin/pg_dump", "otd"]
            env = {PGPASSFILE = "/etc/pgpass"}
            cwd = "/var/backups"

            [commands.tidy]
            argv = ["tidy"]
            """
        ),
    )
    assert settings.store == "postgresql://otd@db/otd"
    assert not settings.is_sqlite
    assert settings.roles == ("executor",)
    assert settings.egress_allow == ("10.0.0.0/8", "192.168.1.7", "*.corp.example")
    assert settings.functions == ("reports.nightly", "tasks")
    assert settings.poll_interval == Duration.parse("250ms")
    assert settings.commands == {
        "backup": CommandSetting(
            argv=("/usr/bin/pg_dump", "otd"), env={"PGPASSFILE": "/etc/pgpass"}, cwd="/var/backups"
        ),
        "tidy": CommandSetting(argv=("tidy",)),
    }


def test_settings_can_not_be_changed_afterwards():
    with pytest.raises(AttributeError):
        Settings().port = 1  # type: ignore[misc]


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        *[(host, True) for host in ("127.0.0.1", "127.8.8.8", "::1", "localhost")],
        *[(host, False) for host in ("0.0.0.0", "::", "10.1.2.3", "example.com")],
    ],
)
def test_loopback_is_told_from_the_rest(host, loopback):
    assert Settings(host=host).loopback is loopback


@pytest.mark.parametrize("written", ['["json","yaml","yml"]', ' [ "json", ".YAML", "yml" ] ', "json,yaml,yml"])
def test_a_list_is_words_with_commas_or_json(written: str) -> None:
    chosen = load_settings(environ={"SUPPORTED_EXTENSIONS": written})
    assert chosen.supported_extensions == ("json", "yaml", "yml")


def test_an_address_in_brackets_is_no_json() -> None:
    assert load_settings(environ={"ONTHEDOT_EGRESS_ALLOW": "[::1]:8000,[::2]:80"}).egress_allow == (
        "[::1]:8000",
        "[::2]:80",
    )


@pytest.mark.parametrize("written", ['["json",', "[1]", "[]", '{"json": 1}'])
def test_json_that_is_no_list_of_kinds(written: str) -> None:
    with pytest.raises(SettingsError, match="SUPPORTED_EXTENSIONS"):
        load_settings(environ={"SUPPORTED_EXTENSIONS": written})


def test_settings_of_plugins_are_the_same_from_file_and_environment(write):
    path = write('[targets.notes]\ndirectory = "/var/notes"\nsince = 2026-01-31\n')
    notes = {"directory": "/var/notes", "since": "2026-01-31"}
    assert load_settings({}, {}, path).targets == {"notes": notes}
    given = {"ONTHEDOT_TARGETS": '{"notes": {"directory": "/var/notes", "since": "2026-01-31"}}'}
    assert load_settings({}, given, write("")).targets == {"notes": notes}


@pytest.mark.parametrize("text", ['{"notes": "secret-1"}', "secret-1", '["secret-1"]', '{"notes": {"key": "secret-1"}'])
def test_settings_of_plugins_are_not_shown(write, text):
    with pytest.raises(SettingsError, match=r"TARGETS \(\$ONTHEDOT_TARGETS\): the value is not valid") as caught:
        load_settings({}, {"ONTHEDOT_TARGETS": text}, write(""))
    assert "secret-1" not in str(caught.value)


def test_certificates_are_the_same_from_file_and_environment(write):
    path = write(
        '[certificates.partner]\ncert = "a.pem"\nkey = "a.key"\nhosts = ["a.example", "*.b.example:8443", "::1"]\n'
    )
    partner = CertificateSetting(cert="a.pem", key="a.key", hosts=("a.example", "*.b.example:8443", "::1"))
    assert load_settings({}, {}, path).certificates == {"partner": partner}
    given = '{"partner": {"cert": "a.pem", "key": "a.key", "hosts": ["a.example", "*.b.example:8443", "::1"]}}'
    assert load_settings({}, {"ONTHEDOT_CERTIFICATES": given}, write("")).certificates == {"partner": partner}


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ('{"a": {"key": "a.key"}}', "has neither cert nor ca"),
        ('{"a": {"ca": "x", "key": "a.key"}}', "has a key but no cert"),
        ('{"a": {"cert": "x", "host": "y"}}', "host"),
        ('{"a": {"cert": "x", "hosts": ["https://y/"]}}', "is not a valid host"),
        ('{"a b": {"cert": "x"}}', "not a valid name"),
        ("[]", "certificates: expected an object, not a list"),
        ("nonsense", "certificates.NAME"),
    ],
)
def test_certificates_that_are_wrong_say_why(write, table, why):
    with pytest.raises(SettingsError, match=r"CERTIFICATES") as caught:
        load_settings({}, {"ONTHEDOT_CERTIFICATES": table}, write(""))
    assert why in str(caught.value)


def test_what_kubernetes_sets_for_services_is_no_setting(tmp_path: Path) -> None:
    links = {
        "ONTHEDOT_SERVICE_HOST": "10.96.0.7",
        "ONTHEDOT_SERVICE_PORT": "80",
        "ONTHEDOT_SERVICE_PORT_HTTP": "80",
        "ONTHEDOT_PORT": "tcp://10.96.0.7:80",
        "ONTHEDOT_PORT_80_TCP": "tcp://10.96.0.7:80",
        "ONTHEDOT_PORT_80_TCP_PROTO": "tcp",
        "ONTHEDOT_API_PORT_80_TCP_ADDR": "10.96.0.7",
        "POSTGRES_PORT": "tcp://10.96.0.8:5432",
    }
    (tmp_path / "onthedot.toml").touch()
    pod = {**links, "KUBERNETES_SERVICE_HOST": "10.96.0.1", "ONTHEDOT_STORE": "postgresql://u@h/d"}
    settings = load_settings({}, pod, tmp_path / "onthedot.toml")
    assert (settings.port, settings.store) == (8000, "postgresql://u@h/d")
    with pytest.raises(SettingsError, match="ONTHEDOT_SERVICES_HOST: unknown setting"):
        load_settings({}, {**pod, "ONTHEDOT_SERVICES_HOST": "x"}, tmp_path / "onthedot.toml")
    with pytest.raises(SettingsError, match="ONTHEDOT_SERVICE_HOST: unknown setting"):
        load_settings({}, links, tmp_path / "onthedot.toml")
