#!/bin/sh
# Builds the image and tries it: docker/test.sh PYTHON, where PYTHON has what the tests need (make image-test).
# Ends well, with a reason, where there is neither docker nor podman.
set -eu
cd "$(dirname "$0")/.."
engine=
for candidate in docker podman; do
  if [ -z "$engine" ] && command -v "$candidate" >/dev/null && "$candidate" info >/dev/null 2>&1; then
    engine=$candidate
  fi
done
if [ -z "$engine" ]; then
  echo "the image is not tested: neither docker nor podman works here" >&2
  exit 0
fi
# For podman: images in docker's format, the only one with a HEALTHCHECK.
export BUILDAH_FORMAT=docker
"$engine" build -t gramvec:cpu .
GRAMVEC_ENGINE="$engine" exec "$1" -m pytest tests/deploy/test_container.py
