# A service over a run folder: the page, the REST API, /health and /metrics. docs/install.md says how to build and start it.
#
#     docker build -t satkgc .                             without a GPU
#     docker build -t satkgc:cuda --build-arg DEVICE=cuda .
FROM python:3.11-slim-trixie@sha256:9534e5a8e315485d4061ed659af0fd78a284c015f9b73661b41d6bab25604534 AS wheel
WORKDIR /source
RUN pip install --no-cache-dir hatchling==1.33.0
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN python -m hatchling build --target wheel --directory /dist

FROM python:3.11-slim-trixie@sha256:9534e5a8e315485d4061ed659af0fd78a284c015f9b73661b41d6bab25604534
ARG DEVICE=cpu
# The index of PyTorch has builds without CUDA, a tenth as large; those of PyPI bring CUDA along.
RUN --mount=type=bind,source=constraints.txt,target=/constraints.txt \
    --mount=type=bind,from=wheel,source=/dist,target=/dist \
    case "$DEVICE" in \
      cpu) pip install --no-cache-dir -c /constraints.txt torch --extra-index-url https://download.pytorch.org/whl/cpu ;; \
      cuda) pip install --no-cache-dir -c /constraints.txt torch ;; \
      *) echo "DEVICE is cpu or cuda, not $DEVICE" >&2; exit 2 ;; \
    esac \
    && pip install --no-cache-dir -c /constraints.txt "$(echo /dist/satkgc-*.whl)[minilm,rdf,serve]" \
    && useradd --create-home --uid 1000 satkgc
USER 1000
WORKDIR /home/satkgc
# Whoever --user is may write what is compiled and downloaded.
ENV NUMBA_CACHE_DIR=/tmp/numba XDG_CACHE_HOME=/tmp/cache MPLCONFIGDIR=/tmp/matplotlib
VOLUME /srv/run
EXPOSE 8321
# /health answers 503 while the model loads.
HEALTHCHECK --interval=30s --timeout=5s --start-period=5m \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8321/health', timeout=4)"]
ENTRYPOINT ["satkgc"]
CMD ["serve", "/srv/run", "--host", "0.0.0.0"]
