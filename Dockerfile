# syntax=docker/dockerfile:1
# Two images of one environment: `--target agent_runtime`, and `--target edge`, the default.
ARG PYTHON_VERSION=3.13

FROM docker.io/library/python:${PYTHON_VERSION}-slim AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 \
    PIP_NO_CACHE_DIR=1
WORKDIR /src
# Dependencies first: these layers change only with the lock files.
COPY requirements/base.txt requirements/build.txt requirements/
RUN python -m venv /opt/venv \
 && /opt/venv/bin/pip install --require-hashes -r requirements/base.txt \
 && python -m venv /opt/build \
 && /opt/build/bin/pip install --require-hashes -r requirements/build.txt
COPY pyproject.toml README.md LICENSE ./
COPY proto ./proto
COPY edge ./edge
COPY agent_runtime ./agent_runtime
# The build tools stay in this stage, and nothing is fetched here that has no hash.
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --no-index --wheel-dir dist . \
 && /opt/venv/bin/pip install --no-deps --no-index dist/*.whl

FROM docker.io/library/python:${PYTHON_VERSION}-slim AS runtime
RUN groupadd --gid 10001 app \
 && useradd --uid 10001 --gid app --no-create-home --no-log-init --shell /usr/sbin/nologin app \
 && install --directory --owner app --group app /app
COPY --from=build /opt/venv /opt/venv
ENV PATH="/opt/venv/bin:${PATH}" \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
WORKDIR /app
# A number, so that a platform can see that it is not root.
USER 10001:10001
STOPSIGNAL SIGTERM

FROM runtime AS agent_runtime
EXPOSE 50051
CMD ["python", "-m", "agent_runtime"]

FROM runtime AS edge
EXPOSE 8080
CMD ["python", "-m", "edge"]
