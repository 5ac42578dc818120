# docker build --target cpu -t partway .           everything of `make demo`, no GPU needed
# docker build --target cuda -t partway:cuda .     for machines with NVIDIA's container toolkit: docker run --gpus all
# docker run --rm -v "$PWD:/data" partway train train.yaml
ARG PYTHON=3.11

FROM python:${PYTHON}-slim AS base
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONUNBUFFERED=1 HF_HOME=/data/.huggingface
WORKDIR /opt/partway
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src ./src
RUN useradd --create-home --uid 1000 partway && mkdir /data && chown partway /data

FROM base AS cpu
RUN pip install --index-url https://download.pytorch.org/whl/cpu torch==2.13.0 \
    && pip install --constraint constraints.txt ".[peft,datasets,tensorboard,plots,explore]"
USER 1000
WORKDIR /data
ENTRYPOINT ["partway"]
CMD ["doctor"]

FROM base AS cuda
# The wheels of torch for Linux bring CUDA; only the driver comes from the machine.
RUN pip install torch==2.13.0 \
    && pip install --constraint constraints.txt ".[peft,datasets,tensorboard,plots,explore]"
USER 1000
WORKDIR /data
ENTRYPOINT ["partway"]
CMD ["doctor"]
