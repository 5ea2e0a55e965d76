"""The lines for nginx of docs/operations.md, in a real nginx in front of a server that is started as the page says.
`make test-deploy`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import urllib.request
from pathlib import Path

import pytest

from tests.deploy.programs import nginx
from tests.docs.blocks import blocks_of
from tests.services.orphan_reaper import orphan_reaper
from tests.services.ports import free_port
from tests.services.process import COMMAND
from tests.services.waiting import until_blocking

KEY = "otd_" + "n" * 40
AROUND = """
pid {home}/nginx.pid;
error_log {home}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {home}/body;
    proxy_temp_path {home}/proxy;
    fastcgi_temp_path {home}/fastcgi;
    uwsgi_temp_path {home}/uwsgi;
    scgi_temp_path {home}/scgi;
    server {{
        listen 127.0.0.1:{port};
        {block}
    }}
}}
"""


@pytest.mark.timeout(200)
def test_the_lines_for_nginx(tmp_path: Path) -> None:
    (block,) = (each.text for each in blocks_of("docs/operations.md") if each.first == "# nginx")
    typed = next(each.text for each in blocks_of("docs/operations.md") if "--root-path" in each.text)
    port, behind = free_port(), free_port()
    assert "127.0.0.1:8000" in block
    config = tmp_path / "nginx.conf"
    inside = block.replace("127.0.0.1:8000", f"127.0.0.1:{behind}")
    config.write_text(AROUND.format(home=tmp_path, port=port, block=inside))
    subprocess.run([nginx(), "-t", "-c", config], check=True, capture_output=True, timeout=30)
    _, *words = typed.partition("#")[0].split()
    trusted = {"ONTHEDOT_TRUSTED_PROXIES": "127.0.0.1", "ONTHEDOT_ADMIN_KEY": KEY}
    assert "ONTHEDOT_TRUSTED_PROXIES=127.0.0.1" in typed
    processes: list[subprocess.Popen[bytes]] = []
    for name, command in (
        ("server", [str(COMMAND), *words, "--port", str(behind)]),
        ("nginx", [nginx(), "-c", str(config), "-g", "daemon off;"]),
    ):
        with (tmp_path / f"{name}.log").open("wb") as log:
            processes.append(subprocess.Popen(command, cwd=tmp_path, env=os.environ | trusted, stdout=log, stderr=log))
        orphan_reaper.runs(processes[-1].pid, signal.SIGKILL)
    try:

        def answer(path: str) -> tuple[int, str, str]:
            request = urllib.request.Request(
                f"http://127.0.0.1:{port}{path}", headers={"Authorization": f"Bearer {KEY}"}
            )
            try:
                with urllib.request.urlopen(request, timeout=5) as told:
                    return told.status, told.url, told.read().decode()
            except OSError:
                return 0, "", ""

        until_blocking(lambda: answer("/scheduler/readyz")[0] == 200, "the server answers through nginx", 60)
        assert json.loads(answer("/scheduler/v1/jobs")[2])["items"] == []
        login = urllib.request.Request(
            f"http://127.0.0.1:{port}/scheduler/login",
            data=f"key={KEY}".encode(),
            headers={"Origin": f"http://127.0.0.1:{port}"},  # as a browser: with the port, which is not 80 here
        )
        with urllib.request.build_opener(urllib.request.HTTPCookieProcessor()).open(login, timeout=5) as told:
            assert (told.status, told.url) == (200, f"http://127.0.0.1:{port}/scheduler/")
        status, url, page = answer("/scheduler/")
        assert status == 200
        assert url.startswith(f"http://127.0.0.1:{port}/scheduler/")
        assert '"/scheduler/' in page
        assert answer("/v1/jobs")[0] == 0, "nothing beside the prefix"
    finally:
        for process in processes:
            process.terminate()
            process.wait(30)
            orphan_reaper.ended(process.pid)
