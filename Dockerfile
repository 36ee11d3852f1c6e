# The API and the worker of the distributed mode: one image, two commands. See docker-compose.yml and docs/how-to/deployment.md.
# It runs as an unprivileged user on a read-only file system; only /tmp and, for `dev --data /data`, /data are written:
#   docker run --read-only --tmpfs /tmp --cap-drop ALL ...
# For a build that never changes, name the base by its digest: --build-arg NODE_IMAGE=node@sha256:...
ARG NODE_IMAGE=node:24.21.0-bookworm-slim

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
COPY packages/agents/package.json packages/agents/
COPY packages/doors/package.json packages/doors/
COPY packages/nostr/package.json packages/nostr/
COPY packages/importers/package.json packages/importers/
COPY packages/postgres/package.json packages/postgres/
# Scripts of the install would build the page, whose sources are not there yet.
RUN npm ci --ignore-scripts
COPY tsconfig.json tsconfig.build.json LICENSE ./
COPY scripts ./scripts
COPY src ./src
COPY web ./web
COPY packages ./packages
RUN npm run -s build \
  && node scripts/build-package.ts packages/agents packages/doors packages/importers packages/nostr packages/postgres

FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
COPY packages/agents/package.json packages/agents/
COPY packages/doors/package.json packages/doors/
COPY packages/nostr/package.json packages/nostr/
COPY packages/importers/package.json packages/importers/
COPY packages/postgres/package.json packages/postgres/
# The image serves every vendor and mode, so the optional packages become dependencies, in their locked versions.
RUN node -e "const p = require('./package.json'); Object.assign(p.dependencies, p.peerDependencies); \
    delete p.devDependencies; delete p.peerDependencies; fs.writeFileSync('package.json', JSON.stringify(p))" \
  && npm install --omit=dev --ignore-scripts
# The built packages take the places of the links to their sources; for them, 'troupe' is this application.
RUN rm -r node_modules/@troupe && ln -s /app node_modules/troupe

FROM ${NODE_IMAGE}
ENV NODE_ENV=production TROUPE_HEALTH_PORT=4600
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY --from=build /app/dist ./dist
COPY --from=build /app/packages/agents/dist ./node_modules/@troupe/agents
COPY --from=build /app/packages/doors/dist ./node_modules/@troupe/doors
COPY --from=build /app/packages/nostr/dist ./node_modules/@troupe/nostr
COPY --from=build /app/packages/importers/dist ./node_modules/@troupe/importers
COPY --from=build /app/packages/postgres/dist ./node_modules/@troupe/postgres
# An agents file under /app may import 'troupe': for Node it is part of the package of that name.
COPY package.json LICENSE ./
RUN install -d -o 1000 -g 1000 -m 700 /data
# By number: Kubernetes' runAsNonRoot cannot check a name.
USER 1000:1000
EXPOSE 4600 4601
STOPSIGNAL SIGTERM
# A worker answers on its status port: TROUPE_HEALTH_PORT=4601.
HEALTHCHECK --interval=5s --timeout=4s --start-period=30s --retries=3 \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.TROUPE_HEALTH_PORT}/readyz`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# No shell in between: signals reach Node.
ENTRYPOINT ["node", "/app/dist/cli.js"]
CMD ["serve", "--host", "0.0.0.0", "--port", "4600", "/app/agents/agents.ts"]
