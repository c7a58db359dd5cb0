# Debian's Prometheus in place of the official image. The directory of the build holds its program.
ARG BASE=debian:bookworm-slim
FROM ${BASE}
COPY prometheus /usr/local/bin/prometheus
RUN mkdir /prometheus && chown nobody /prometheus
USER nobody
ENTRYPOINT ["prometheus"]
