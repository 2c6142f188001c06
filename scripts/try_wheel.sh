#!/usr/bin/env bash
# The README's way with an installed wheel, in an empty folder, a few steps of training: scripts/try_wheel.sh VENV
set -euo pipefail
PATH="$(realpath "$1")/bin:$PATH"
folder=$(mktemp -d)
trap 'kill "${service:-}" 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
python - <<'PYTHON'
import satkgc
assert "site-packages" in satkgc.__file__, f"this is {satkgc.__file__}, not the wheel"
PYTHON
satkgc --version
satkgc kg inspect wordnet-sample
satkgc kg import wordnet-sample graph
satkgc train graph --out run --steps 2
satkgc evaluate run
satkgc complete run --head dog.n.01 --relation hypernym
satkgc propose run new.csv --n 5
satkgc verify run
satkgc serve run --port 8399 &
service=$!
for _ in $(seq 120); do
  python -c "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8399/health')" 2>/dev/null && break
  kill -0 "$service"
  sleep 1
done
python - <<'PYTHON'
from urllib.request import urlopen
for path in ("/health", "/", "/review", "/api/v1/info"):
    with urlopen(f"http://127.0.0.1:8399{path}") as answer:
        print(path, answer.status, len(answer.read()), "bytes")
PYTHON
echo "the wheel works"
