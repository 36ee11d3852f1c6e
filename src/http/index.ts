/** The HTTP API: routes over a `Troupe`, and the server under them. */
export { createApp } from './app.ts';
export type { AppOptions } from './app.ts';
export { isLoopback } from './guard.ts';
export { openApiDocument } from './openapi.ts';
export { createStatusApp } from './status-app.ts';
export { serveHttp } from './serve-http.ts';
export type { HttpServer } from './serve-http.ts';
