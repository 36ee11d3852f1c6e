/** The HTTP API: routes of a `Troupe`, and the server that runs them. */
export { createApp, createStatusApp, openApiDocument } from './app.ts';
export type { AppOptions } from './app.ts';
export { isLoopback } from '../guard.ts';
export { nodeListener } from './serve-http.ts';
export { serveHttp } from './serve-http.ts';
export type { HttpServer } from './serve-http.ts';
