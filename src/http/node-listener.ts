import type { IncomingMessage, ServerResponse } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import type { Hono } from 'hono';

/** The app for servers of `node:http`: a middleware of Express, a handler of Fastify's raw requests. */
export function nodeListener(app: Hono): (request: IncomingMessage, response: ServerResponse) => void {
  // The globals belong to the program around us.
  const listen = getRequestListener(app.fetch, { overrideGlobalObjects: false });
  return function answerRequest(request, response) {
    void listen(request, response);
  };
}
