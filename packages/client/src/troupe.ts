/** The only file that imports the core. In the published package it imports `troupe/client`: see `build.ts`. */
export * from '../../../src/http/client.ts';
