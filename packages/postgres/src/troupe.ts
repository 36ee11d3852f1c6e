/** The only file that imports the core. In the published package it imports `troupe/integrations`; see `build-package.ts`. */
export * from '../../../src/library/integrations/index.ts';
