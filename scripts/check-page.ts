import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

/** A document and the files it loads, as a browser would request them. */
interface Loaded {
  url: string;
  type: string;
  text: string;
}

const TYPES: Record<string, string> = {
  css: 'text/css',
  js: 'text/javascript',
  svg: 'image/svg+xml',
};
/** Names of XML vocabularies, which are never fetched, and this machine. */
const HARMLESS = /^https?:\/\/(?:www\.w3\.org\/|127\.0\.0\.1\b|localhost\b)/;
const START_MS = 60_000;

/**
 * Starts an installed `troupe dev`, loads its page as a browser would, without running it, and checks that every
 * referenced file exists and none is on another host. Throws with the problem; returns what was found.
 */
export async function checkPage(cwd: string, env: NodeJS.ProcessEnv): Promise<string> {
  const args = ['--no-install', 'troupe', 'dev', '--port', '0', '--data', ':memory:', '--json'];
  // A separate process group: `npx` starts the command as a child, which a signal to `npx` alone might not reach.
  const child = spawn('npx', args, { cwd, env, detached: true, stdio: ['ignore', 'pipe', 'inherit'] });
  try {
    const { url } = JSON.parse(await firstLine(child)) as { url: string };
    return await checkDocument(`${url}/`);
  } finally {
    await stop(child);
  }
}

async function checkDocument(url: string): Promise<string> {
  const page = await load(url, 'text/html');
  if (!page.text.includes('name="troupe-mode" content="write"')) {
    throw new Error(`${url} is not the built page: ${page.text.slice(0, 200)}`);
  }
  const base = /<base href="([^"]*)"/.exec(page.text)?.[1];
  if (base !== '/') throw new Error(`the base of the page is ${base}, not /`);
  const files = [page];
  const named = [...page.text.matchAll(/<(?:script|link)\b[^>]*?\b(?:src|href)="([^"]+)"/g)];
  for (const [, name = ''] of named) files.push(await load(new URL(name, url).href));
  // Follows the imports of scripts and the references of styles, one level deep.
  for (const { url: from, text } of files.slice(1)) {
    for (const name of importsIn(text)) {
      const target = new URL(name, from).href;
      if (!files.some((file) => file.url === target)) files.push(await load(target));
    }
  }
  if (files.length < 3)
    throw new Error(`the page names ${files.length - 1} files: a script or a style is missing`);
  for (const { url: from, text } of files) {
    const away = [...text.matchAll(/https?:\/\/[^\s"'`<>)\\]+/g)].map(([found]) => found);
    const outside = away.filter((found) => !HARMLESS.test(found));
    if (outside.length > 0) throw new Error(`${from} names ${outside.join(', ')}`);
  }
  const bytes = files.reduce((sum, { text }) => sum + text.length, 0);
  return `the page and its ${files.length - 1} files are there, ${bytes.toLocaleString('en-US')} characters`;
}

function importsIn(text: string): string[] {
  const scripts = [...text.matchAll(/(?:\bfrom|\bimport)\s*\(?\s*["'](\.[^"']+)["']/g)];
  const styles = [...text.matchAll(/\burl\(["']?([^"')]+)["']?\)/g)].filter(
    ([, name]) => !name?.startsWith('#'),
  );
  return [...scripts, ...styles].flatMap(([, name]) => name ?? []);
}

async function load(url: string, type = TYPES[url.split('.').at(-1) ?? ''] ?? ''): Promise<Loaded> {
  const response = await fetch(url, { headers: { accept: type === 'text/html' ? type : '*/*' } });
  const text = await response.text();
  const given = response.headers.get('content-type') ?? '';
  if (response.status !== 200)
    throw new Error(`${url} is answered with ${response.status}: ${text.slice(0, 200)}`);
  if (!given.startsWith(type) || given === '') throw new Error(`${url} has the type ${given}, not ${type}`);
  return { url, type: given, text };
}

async function firstLine(child: ChildProcess): Promise<string> {
  const { stdout } = child;
  if (!stdout) throw new Error('troupe dev has no output');
  return await new Promise((resolve, reject) => {
    createInterface({ input: stdout }).once('line', resolve);
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`troupe dev ended with ${code} before it was ready`)));
    AbortSignal.timeout(START_MS).addEventListener('abort', () =>
      reject(new Error('troupe dev did not start')),
    );
  });
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null) return;
  const ended = new Promise((resolve) => child.once('exit', resolve));
  process.kill(-child.pid, 'SIGTERM');
  await ended;
}
