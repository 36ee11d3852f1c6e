import { createRequire } from 'node:module';
import type * as http from './index.ts';

/** Loads the API when it is first used: it takes some 30 MB, which a program without it is spared. */
function api(): typeof http {
  const isSource = import.meta.url.endsWith('.ts');
  return createRequire(import.meta.url)(`./index.${isSource ? 'ts' : 'js'}`) as typeof http;
}

/** As `createApp` of `troupe/http`. */
export const createApp: typeof http.createApp = (...given) => api().createApp(...given);
/** As `nodeListener` of `troupe/http`. */
export const nodeListener: typeof http.nodeListener = (...given) => api().nodeListener(...given);
