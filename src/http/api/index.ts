/** The HTTP API: routes of a `Troupe`, and the server that runs them. */
export { createApp, createStatusApp, openApiDocument } from './app.ts';
export type { AppOptions } from './app.ts';
export { isLoopback } from '../guard.ts';
export { nodeListener } from './serve-http.ts';
export { serveHttp } from './serve-http.ts';
export type { HttpServer, Tls } from './serve-http.ts';

// Building blocks of doors.
export type { Caller } from '../caller.ts';
export { readAs } from '../caller.ts';
export { checkScope, unknownConversation } from '../permissions.ts';
export { typed } from '../answers.ts';
export { defineDoor } from '../route.ts';
export { filesIn } from '../exchange.ts';
export type { EventFile } from '../exchange.ts';
export { authorOf, beginExchange, changesSince, giveCommand, wholeAnswer } from '../exchange.ts';
export type { Exchange, Spoken } from '../exchange.ts';
export { callersKey, newConversation } from '../exchange.ts';
export { holdPlace, openStream, withHeartbeats, withPlace } from '../open-stream.ts';
export type { HeldPlace } from '../open-stream.ts';
export { checkWords, readMessages, readOneMessage } from '../read-json.ts';
export { methodRefused, Refusal } from '../refusal.ts';
export { defineRoute } from '../route.ts';
export type { DoorServer, Route } from '../route.ts';
export { ConversationPath, Flag, parseInput, Seq } from '../schemas.ts';
