"""The guide's examples, followed literally."""

import json
import pathlib
import re
import subprocess

from conftest import LIMIT

GUIDE = pathlib.Path(__file__).resolve().parents[3] / "docs/guide/src/service.md"


def test_examples(service, tmp_path):
    blocks = re.findall(r"```(bash|json)\n(.*?)```", GUIDE.read_text(), re.S)
    examples = [number for number, (language, _) in enumerate(blocks) if language == "bash"]
    assert len(examples) >= 5
    for number in examples:
        script = blocks[number][1].replace("http://127.0.0.1:8080", f"http://127.0.0.1:{service.port}")
        if "CANTUS=" not in script:
            script = f"CANTUS=http://127.0.0.1:{service.port}\n{script}"
        done = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, cwd=tmp_path, timeout=LIMIT)
        assert done.returncode == 0, done.stderr
        if number + 1 < len(blocks) and blocks[number + 1][0] == "json" and done.stdout.startswith("{"):
            expected, answer = json.loads(blocks[number + 1][1]), json.loads(done.stdout)
            assert {key: answer[key] for key in expected} == expected
    import numpy as np

    assert np.load(tmp_path / "field.npy").shape == (512, 512)
    assert "event: job" in done.stdout
