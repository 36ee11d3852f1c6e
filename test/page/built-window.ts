import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { build, preview } from 'vite';
import { type AppOptions, createApp, nodeListener } from '../../src/http/api/index.ts';
import type { Troupe } from '../../src/library/troupe.ts';

export const EXAMPLES = path.join(import.meta.dirname, '../../examples');

export interface BuiltWindow extends AsyncDisposable {
  url: string;
}

/** A page as it is built from this folder, with a troupe behind its proxy. Closes the troupe, too. */
export async function openBuiltWindow(
  root: string,
  troupe: Troupe,
  options: AppOptions = {},
): Promise<BuiltWindow> {
  const outDir = mkdtempSync(path.join(tmpdir(), 'troupe-window-'));
  let listener: RequestListener = (_, response) => response.end();
  const api = createServer((request, response) => listener(request, response));
  api.listen(0, '127.0.0.1');
  await once(api, 'listening');
  const { port } = api.address() as AddressInfo;
  const common = { root, logLevel: 'silent', build: { outDir, emptyOutDir: true } } as const;
  await build(common);
  const proxy = { '/api': `http://127.0.0.1:${port}` };
  const served = await preview({ ...common, preview: { host: '127.0.0.1', port: 0, proxy } });
  const url = new URL(served.resolvedUrls?.local[0] ?? '').origin;
  listener = nodeListener(createApp(troupe, { cors: [url], ...options }));
  return {
    url,
    async [Symbol.asyncDispose]() {
      await served.close();
      api.closeAllConnections();
      api.close();
      await troupe.close();
      rmSync(outDir, { recursive: true });
    },
  };
}
