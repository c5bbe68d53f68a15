# The service with its models, for RUNTIME=cpu or gpu:
#   docker build -t gramvec:cpu .
#   docker build -t gramvec:gpu --build-arg RUNTIME=gpu .
# The base is the same for both: the CUDA libraries come as wheels, the driver from the host.
ARG RUNTIME=cpu
ARG PYTHON=3.11

# What is installed, in one folder that the last stage copies: /opt/gramvec.
FROM python:${PYTHON}-slim-bookworm AS build
# The official image has Python's headers; Debian's own Python has them in python3-dev.
# hadolint ignore=DL3008
RUN apt-get update \
    && apt-get install -y --no-install-recommends gcc libc6-dev \
    && { [ -f "$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" ] \
         || apt-get install -y --no-install-recommends python3-dev; } \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY requirements/image-*.txt requirements/
ARG RUNTIME
RUN python3 -m venv /opt/build \
    && /opt/build/bin/pip install --no-cache-dir --require-hashes -r requirements/image-build.txt \
    && python3 -m venv --without-pip /opt/gramvec \
    && /opt/build/bin/pip --python /opt/gramvec/bin/python install --no-cache-dir --no-compile \
        --only-binary :all: --require-hashes -r "requirements/image-${RUNTIME}.txt"
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY service service
COPY docker/healthy.py /opt/gramvec/
# The import fails where the extension in C could not be built, which an installation elsewhere would do without.
RUN /opt/build/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /wheels . \
    && /opt/build/bin/pip --python /opt/gramvec/bin/python install --no-cache-dir --no-compile --no-deps /wheels/*.whl \
    && /opt/gramvec/bin/python -c 'import gramvec.native.loops' \
    && python3 -m compileall -q --invalidation-mode unchecked-hash /opt/gramvec/lib
# A clone made with a strict umask has files that only its owner may read.
COPY models /opt/gramvec/models
RUN chmod -R u=rwX,go=rX /opt/gramvec/models

FROM python:${PYTHON}-slim-bookworm
# The official image has no bytecode of Python's library; the container cannot write any.
RUN useradd --no-log-init --system --uid 65532 --user-group --home-dir /nonexistent --shell /usr/sbin/nologin gramvec \
    && mkdir /models \
    && python3 -m compileall -q --invalidation-mode unchecked-hash \
        "$(python3 -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')"
COPY --from=build /opt/gramvec /opt/gramvec
WORKDIR /
# A model's name is looked up in /models, where a folder of your own can be mounted, then among the shipped ones.
ENV GRAMVEC_MODELS=/models:/opt/gramvec/models \
    PATH=/opt/gramvec/bin:/usr/local/bin:/usr/bin:/bin \
    LANG=C.UTF-8 \
    PYTHONDONTWRITEBYTECODE=1 \
    OMP_NUM_THREADS=1 \
    GRAMVEC_HOST=:: \
    GRAMVEC_LOG_FORMAT=json \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
USER 65532:65532
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["/opt/gramvec/bin/python", "-IS", "/opt/gramvec/healthy.py"]
ENTRYPOINT ["gramvec"]
CMD ["serve"]
LABEL org.opencontainers.image.title="gramvec" \
    org.opencontainers.image.description="Sentence embeddings from character n-grams and words, over HTTP" \
    org.opencontainers.image.version="0.2.0" \
    org.opencontainers.image.licenses="Apache-2.0" \
    org.opencontainers.image.base.name="python:3.11-slim-bookworm"
ARG REVISION=unknown
LABEL org.opencontainers.image.revision="${REVISION}"
