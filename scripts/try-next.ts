import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Browser } from 'playwright-core';
import { launchChromium } from '../test/page/browser.ts';
import { installChromium } from '../test/services/chromium.ts';
import { ENV, installTarball, packTroupe, ROOT, run } from './packed.ts';

/**
 * Tries the Next.js part of docs/how-to/mounting.md with the newest Next.js: packs Troupe, makes an app of the blocks of that
 * part in an empty folder, builds and starts it, and uses the page in Chromium, API, event stream and an approval. By hand: it
 * installs some 200 MB. `node scripts/try-next.ts [TARBALL]`
 */
const GUIDE = path.join(ROOT, 'docs/how-to/mounting.md');
const SECTION = /^## Next\.js[^]*?(?=^## )/m;
/** Each file of the guide: its name in backquotes, and the block below. */
const FILE = /^`([^`\n]+)`\n\n```ts\n([^]*?)```$/gm;
const START_MS = 120_000;
const PATIENCE_MS = 60_000;
const ANA = { kind: 'user', id: 'ana', name: 'Ana' };

/** What a reader of the guide has already. */
const OWN_FILES = {
  'app/layout.tsx': `export default function Layout({ children }: { children: React.ReactNode }) {
  return <html><body>{children}</body></html>;
}`,
  'app/page.tsx': 'export default function Page() { return <p>of the other app</p>; }',
  'agents.ts': `import { defineTool, defineTroupe } from 'troupe';
import * as z from 'zod';
const pay = defineTool({
  name: 'pay', description: 'Pays.', schema: z.object({ euros: z.number() }), needsApproval: true,
  run: ({ euros }) => \`paid \${euros}\`,
});
const rules = [{ when: { matches: 'pay' }, calls: [{ name: 'pay', args: { euros: 120 } }] }, { reply: 'answer {{n}}' }];
export default defineTroupe({
  agents: [{ id: 'echo', provider: 'scripted', model: 'test', tools: ['pay'], script: { rules } }],
  tools: [pay],
});`,
};

const folder = mkdtempSync(path.join(tmpdir(), 'troupe-next-'));
try {
  await tryNext(folder, process.argv[2]);
} catch (error) {
  console.error(`try-next: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function tryNext(scratch: string, given: string | undefined): Promise<void> {
  const tarball = given === undefined ? packTroupe(scratch) : path.resolve(given);
  const app = path.join(scratch, 'app-of-next');
  mkdirSync(app);
  const types = ['typescript@5', '@types/node', '@types/react'];
  installTarball(app, tarball, 'next@latest', 'react@latest', 'react-dom@latest', 'zod', ...types);
  for (const [name, text] of [...Object.entries(OWN_FILES), ...filesOfGuide()]) write(app, name, text);
  run(app, 'npx', ['--no-install', 'next', 'build']);
  say(`next ${versionOf(app)} builds the app, and opens no troupe for that`);
  const browser = await openBrowser();
  try {
    for (const mode of ['start', 'dev']) {
      const server = await serve(app, mode);
      try {
        const url = `${server.url}/inspector`;
        await use(url, server.url);
        await look(browser, url);
        say(`next ${mode}: page, its files and long JSON in Chromium, POST, event stream and approval work`);
      } finally {
        await stop(server.child);
      }
    }
  } finally {
    await browser.close();
  }
}

async function openBrowser(): Promise<Browser> {
  const found = await installChromium();
  if ('missing' in found) throw new Error(`there is no browser: ${found.missing}`);
  return launchChromium(found.path);
}

/** What a person sees: words of the conversation, and nothing on the console. A browser alone notices bytes that it cannot decode. */
async function look(browser: Browser, url: string): Promise<void> {
  const page = await browser.newPage();
  const faults: string[] = [];
  page.on('pageerror', (error) => faults.push(error.message));
  page.on('requestfailed', (request) => {
    const text = request.failure()?.errorText ?? '';
    // Left by the next page.
    if (text !== 'net::ERR_ABORTED') faults.push(`${request.url()}: ${text}`);
  });
  page.on('console', (message) => {
    if (message.type() === 'error') faults.push(message.text());
  });
  page.setDefaultTimeout(PATIENCE_MS);
  await page.goto(url);
  await page.getByText('trial').first().waitFor();
  await page.goto(`${url}/c/trial`);
  await page
    .getByText(/answer \d/)
    .first()
    .waitFor();
  await send(url, 'once more');
  await page.getByText('once more').first().waitFor();
  const long = await page.evaluate(async (at) => {
    const answer = await fetch(at);
    const text = await answer.text();
    return { characters: text.length, openapi: (JSON.parse(text) as { openapi: string }).openapi };
  }, `${url}/api/openapi.json`);
  expectTo(
    'a browser reads the document of the API',
    long.characters > 10_000 && long.openapi.startsWith('3.'),
  );
  if (faults.length > 0) throw new Error(`the page has faults: ${faults.join('; ')}`);
  await page.close();
}

function filesOfGuide(): [string, string][] {
  const section = SECTION.exec(readFileSync(GUIDE, 'utf8'))?.[0] ?? '';
  const files = [...section.matchAll(FILE)].map(([, name = '', text = '']): [string, string] => [
    name,
    // The app of the trial is open to this machine, as `troupe dev` is.
    text.replace(', ...options', ''),
  ]);
  if (files.length < 2) throw new Error(`${GUIDE} has no files for Next.js`);
  return files;
}

async function use(url: string, other: string): Promise<void> {
  const page = await (await fetch(`${url}/c/trial`, { headers: { accept: 'text/html' } })).text();
  expectTo('the page has its base', page.includes('<base href="/inspector/"'));
  const script = /<script[^>]* src="([^"]+)"/.exec(page)?.[1] ?? '';
  const loaded = await fetch(new URL(script, `${url}/`));
  expectTo(
    'its script loads',
    loaded.ok && (loaded.headers.get('content-type') ?? '').includes('javascript'),
  );
  expectTo('its script is readable', (await loaded.text()).includes('import'));
  const document = await (await fetch(`${url}/api/openapi.json`)).json();
  expectTo('long JSON is readable', 'openapi' in (document as object));
  expectTo('the other pages stay', (await (await fetch(other)).text()).includes('of the other app'));

  const stop = new AbortController();
  await send(url, 'hello');
  const events = `${url}/api/events?conversation=trial&after=0`;
  const stream = reader(await fetch(events, { signal: stop.signal }));
  await stream.until(/answer \d/);
  // The second reply comes over the open stream: nothing in between waits for its end.
  await send(url, 'pay 120');
  const [, request = ''] = await stream.until(/"request":"([^"]+)"/);
  const decided = await post(`${url}/api/commands`, {
    command: 'decide',
    conversation: 'trial',
    request,
    approved: true,
    args: { euros: 80 },
    author: ANA,
  });
  expectTo('an approval is accepted', decided.ok);
  await stream.until(/paid 80/);
  stop.abort();
  const crossing = await post(`${url}/api/commands`, {}, { origin: 'https://elsewhere.example' });
  expectTo('a write of another page is refused', crossing.status === 403);
}

async function send(url: string, content: string): Promise<void> {
  const answer = await post(`${url}/api/conversations/trial/events`, { author: ANA, to: ['echo'], content });
  expectTo(`a message is taken: ${answer.status}`, answer.status === 201);
}

function post(url: string, body: object, headers: Record<string, string> = {}): Promise<Response> {
  const init = { method: 'POST', headers: { 'content-type': 'application/json', ...headers } };
  return fetch(url, { ...init, body: JSON.stringify(body) });
}

/** Reads a stream piece by piece. */
function reader({ body }: Response): { until(pattern: RegExp): Promise<RegExpExecArray> } {
  if (!body) throw new Error('the event stream is empty');
  const pieces = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  return {
    async until(pattern) {
      const late = setTimeout(() => void pieces.cancel(), PATIENCE_MS);
      try {
        for (;;) {
          const found = pattern.exec(text);
          if (found) return found;
          const { done, value } = await pieces.read();
          if (done) throw new Error(`the event stream has no ${pattern}: ${text.slice(-500)}`);
          text += value;
        }
      } finally {
        clearTimeout(late);
      }
    },
  };
}

async function serve(app: string, mode: string): Promise<{ child: ChildProcess; url: string }> {
  const args = ['--no-install', 'next', mode, '--port', '0', '--hostname', '127.0.0.1'];
  const child = spawn('npx', args, { cwd: app, env: ENV, detached: true });
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const late = setTimeout(() => reject(new Error(`next ${mode} did not start`)), START_MS);
  let printed = '';
  const read = (chunk: Buffer) => {
    printed += String(chunk);
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(printed)?.[0];
    if (url !== undefined) resolve(url);
  };
  child.stdout.on('data', read);
  child.stderr.on('data', read);
  child.once('exit', () => reject(new Error(`next ${mode} ended: ${printed}`)));
  try {
    return { child, url: await promise };
  } catch (error) {
    await stop(child);
    throw error;
  } finally {
    clearTimeout(late);
  }
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.pid === undefined) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  // Its own group: `npx` does not pass a signal on to what it has started.
  process.kill(-child.pid, 'SIGKILL');
  await ended;
}

function write(app: string, name: string, text: string): void {
  const file = path.join(app, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, text);
}

function versionOf(app: string): string {
  const text = readFileSync(path.join(app, 'node_modules/next/package.json'), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

function expectTo(what: string, isSo: boolean): void {
  if (!isSo) throw new Error(`not so: ${what}`);
}

function say(text: string): void {
  console.log(`try-next: ${text}`);
}
