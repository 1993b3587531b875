# A static binary in an empty image: no shell and no packages to patch.
FROM rust:1.95-alpine AS build
RUN apk add --no-cache musl-dev gcc ca-certificates
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/src/target \
    cargo build --profile dist --locked && cp target/dist/exa-mcp-server /exa-mcp-server
RUN mkdir /data

FROM scratch
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /exa-mcp-server /exa-mcp-server
# Numeric ids, because the image has no /etc/passwd.
COPY --from=build --chown=65532:65532 /data /data
USER 65532:65532
ENV EXA_MCP_STORE=sqlite:/data/store.db
VOLUME /data
EXPOSE 3000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=5s --retries=3 \
    CMD ["/exa-mcp-server", "health"]
ENTRYPOINT ["/exa-mcp-server"]
CMD ["http", "--listen", "0.0.0.0:3000"]
