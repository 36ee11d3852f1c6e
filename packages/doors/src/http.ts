/**
 * Imports what routes are made of. Separate from `troupe.ts`, because a client at stdin and stdout needs none of it. In the
 * published package it imports `troupe/http`.
 */
export * from '../../../src/http/api/index.ts';
