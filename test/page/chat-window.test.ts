import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, vi } from 'vitest';
import { build, preview } from 'vite';
import { createApp, nodeListener } from '../../src/http/index.ts';
import { createTroupe } from '../../src/runtime.ts';
import type { Troupe } from '../../src/troupe.ts';
import { eventually, pageTest, useBrowser } from './browser.ts';

const EXAMPLE = path.join(import.meta.dirname, '../../examples/chat-window');
const browsing = useBrowser();

interface Window extends AsyncDisposable {
  url: string;
  troupe: Troupe;
}

/** The example as it is built, with its agents behind its proxy. */
async function openWindow(): Promise<Window> {
  vi.stubEnv('TROUPE_PROVIDER', 'scripted');
  const { troupe: definition } = await import('../../examples/chat-window/agents.ts');
  const troupe = await createTroupe(definition, { data: ':memory:', onWarning: () => {} });
  const outDir = mkdtempSync(path.join(tmpdir(), 'chat-window-'));
  let listener: RequestListener = (_, response) => response.end();
  const api = createServer((request, response) => listener(request, response));
  api.listen(0, '127.0.0.1');
  await once(api, 'listening');
  const { port } = api.address() as AddressInfo;
  const common = { root: EXAMPLE, logLevel: 'silent', build: { outDir, emptyOutDir: true } } as const;
  await build(common);
  const proxy = { '/api': `http://127.0.0.1:${port}` };
  const served = await preview({ ...common, preview: { host: '127.0.0.1', port: 0, proxy } });
  const url = new URL(served.resolvedUrls?.local[0] ?? '').origin;
  listener = nodeListener(createApp(troupe, { cors: { origins: [url] } }));
  return {
    url,
    troupe,
    async [Symbol.asyncDispose]() {
      await served.close();
      api.closeAllConnections();
      api.close();
      await troupe.close();
      rmSync(outDir, { recursive: true });
      vi.unstubAllEnvs();
    },
  };
}

pageTest(
  'the chat window shows agents by name, gives an approval, and is the same after a reload',
  async () => {
    await using window = await openWindow();
    const page = await browsing.open(window.url);
    const shown = () => page.locator('section h3, section p').allInnerTexts();
    await page.getByLabel('Message').fill('I was charged twice.');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByRole('button', { name: 'Approve' }).waitFor();
    const before = [
      'I was charged twice.',
      'Desk',
      'I hand you over to billing.',
      'Billing',
      'You were charged twice.',
    ];
    expect(await shown()).toEqual(before);
    await page.reload();
    await page.getByRole('button', { name: 'Approve' }).waitFor();
    expect(await shown()).toEqual(before);
    await page.getByRole('button', { name: 'Approve' }).click();
    const after = [...before, 'Billing', 'Done: the money is on its way back to you.'];
    await eventually(shown).toEqual(after);
    await page.reload();
    await eventually(shown).toEqual(after);
    const { events } = await window.troupe.events('support-17');
    expect(events.filter(({ kind }) => kind === 'approval.decided')).toHaveLength(1);
  },
);
