#!/usr/bin/env bash
# Run once, as root, when Gradescope builds the image. Written by `llminfer class gradescope build`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"

new_enough() { command -v "$1" >/dev/null && "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; }
candidates="python3.11 python3.12 python3.13 python3.14 python3"
if [ -d wheels ]; then candidates=python3.11; fi  # packed wheels fit one version of Python
python=""
for candidate in $candidates; do
  if new_enough "$candidate"; then python=$candidate; break; fi
done
if [ -z "$python" ]; then
  apt-get update
  apt-get install -y --no-install-recommends python3.11 python3.11-venv
  python=python3.11
fi

home=${LLMINFER_HOME:-/opt/llminfer}
"$python" -m venv "$home" || {
  apt-get update
  apt-get install -y --no-install-recommends "$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
  "$python" -m venv --clear "$home"
}
if [ -d wheels ]; then
  "$home/bin/pip" install --no-index --find-links wheels -r requirements.txt
else
  "$home/bin/pip" install --only-binary :all: -r requirements.txt
fi

# Students' programs run as the user nobody, who may read the environment and the overlays; these hold no answers. This
# folder, with the solutions and the class secret, is for root alone. Its files keep their modes: overlays link to some.
results=${AUTOGRADER_ROOT:-/autograder}/results
mkdir -p "$results" "$home/cache"
chmod 700 . "$results"
chmod 600 class-secret
chmod -R go+rX "$home"
LLMINFER_CACHE="$home/cache" PYTHONPATH="$PWD" "$home/bin/python" -P -s -m llminfer.grading.gradescope_run --prepare
