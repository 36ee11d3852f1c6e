/** The only file that imports the core. It is bundled into the published package, which needs no `troupe`. */
export * from '../../../src/http/api/client.ts';
