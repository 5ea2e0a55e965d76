# On the Dot as an image: `docker build -t onthedot .`; see docs/deployment.md.
ARG PYTHON_IMAGE=python:3.13-slim

FROM ${PYTHON_IMAGE} AS build
WORKDIR /build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
# run: the node alone; extras: with the clients of all brokers, AWS, S3, alerts, OTLP and the sandbox of scripts.
ARG REQUIREMENTS=run
COPY requirements/run.txt requirements/extras.txt requirements/build.txt requirements/
# Every package is pinned by its hash. What builds the wheel has an environment of its own and stays here.
RUN python3 -m venv /opt/onthedot \
    && /opt/onthedot/bin/pip install --require-hashes -r requirements/${REQUIREMENTS}.txt \
    && python3 -m venv /opt/build \
    && /opt/build/bin/pip install --require-hashes -r requirements/build.txt
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /dist . \
    && /opt/onthedot/bin/pip install --no-deps --no-index /dist/*.whl \
    && /opt/onthedot/bin/pip uninstall --yes pip \
    && python3 -m compileall -q /opt/onthedot

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="On the Dot" \
      org.opencontainers.image.description="A job scheduler that fires on the dot" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/onthedot /opt/onthedot
COPY deploy/docker/healthcheck.py deploy/docker/make-secrets.sh /usr/local/lib/onthedot/
# Volumes that are mounted here take over the owner: the process is never root.
RUN groupadd --gid 10001 onthedot \
    && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /var/lib/onthedot --shell /usr/sbin/nologin onthedot \
    && install -d -o onthedot -g onthedot -m 750 /var/lib/onthedot /run/onthedot
ENV PATH=/opt/onthedot/bin:$PATH \
    HOME=/var/lib/onthedot \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    ONTHEDOT_HOST=0.0.0.0
USER 10001:10001
WORKDIR /var/lib/onthedot
EXPOSE 8000
# Drains: stops claiming, lets running work end (GRACE, 10 s), then exits with 0.
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=150s --start-interval=2s --retries=3 \
    CMD ["python3", "-IS", "/usr/local/lib/onthedot/healthcheck.py"]
ENTRYPOINT ["onthedot"]
CMD ["serve"]
