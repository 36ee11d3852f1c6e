/** What routes are made of, apart from `troupe.ts`: a client at stdin and stdout needs none of it. In the published package it is `troupe/http`. */
export * from '../../../src/http/api/index.ts';
