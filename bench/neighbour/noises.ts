import { get } from 'node:http';
import { Readable } from 'node:stream';
import { request } from 'node:http';
import { postJson } from './post-json.ts';
import type { Serving } from './process.ts';

/** The other tenant's activities, each with a separate key and default limits. */
export const NOISES = {
  flood: 'one author sends 90 messages of 0.95 MB to one agent, over and over',
  bomb: 'agents that give 20 tasks in every turn, and these again',
  reads: 'a conversation of 200,000 events is read by 40 callers at once, with all that is dear',
  stream: 'eight agents whose model sends one line without end',
  appends: '64 connections that append short messages',
  turns: '64 connections that each ask an agent again and again',
  imports: '64 connections that import short transcripts',
  document: '64 connections that read the description of the API',
  refused: '64 connections that ignore that they are over their rate',
} as const;
export type Noise = keyof typeof NOISES;

export function isNoise(name: string): name is Noise {
  return Object.hasOwn(NOISES, name);
}

const FLOOD_BYTES = 950_000;
const FLOOD_MESSAGES = 90;
const ROOTS = 4;
const LONG_EVENTS = 200_000;
const READERS = 40;
const STREAMS = 8;

/** Runs until the process ends. Calls `onLoud` once the noise is at full strength. */
export async function makeNoise(noise: Noise, to: Serving, onLoud: () => void): Promise<void> {
  const make = { flood, bomb, reads, stream, appends, turns, imports, document, refused };
  await make[noise](to, onLoud);
}

async function flood(to: Serving, onLoud: () => void): Promise<void> {
  for (let round = 0; ; round++) {
    for (let index = 0; index < FLOOD_MESSAGES; index++) {
      await say(to, {
        conversation: `flood-${round}`,
        agent: 'flooded',
        content: longText(round * 1_000 + index),
      });
      if (index === 0) onLoud();
    }
  }
}

/** Varied sentences, with everything that facts are extracted from. */
function longText(seed: number): string {
  let text = '';
  for (let line = 0; text.length < FLOOD_BYTES; line++)
    text += `You must always keep src/part-${seed}/file-${line}.ts; Error: E${line}${seed} in part_${line % 97}. `;
  return text.slice(0, FLOOD_BYTES);
}

async function bomb(to: Serving, onLoud: () => void): Promise<void> {
  for (let index = 0; index < ROOTS; index++)
    await say(to, { conversation: `bomb-${index}`, agent: 'left', content: 'Begin.' });
  onLoud();
}

async function reads(to: Serving, onLoud: () => void): Promise<void> {
  await importLong(to);
  await say(to, { conversation: 'long', agent: 'calm', content: 'What happened?' });
  onLoud();
  const dear = [
    '/api/conversations/long/tasks',
    '/api/conversations/long/agents/calm/prompt',
    '/api/conversations/long/agents/calm/cost',
    '/api/conversations?limit=5000',
    '/api/conversations/long/events?limit=5000',
  ];
  const reader = async (index: number) => {
    for (let turn = index; ; turn++) await read(to, dear[turn % dear.length] ?? '');
  };
  await Promise.all(Array.from({ length: READERS }, (_, index) => reader(index)));
}

/** Ignores the answers. A refused request is repeated after the time that the refusal names, as clients do. */
function read({ url, keys }: Serving, path: string): Promise<void> {
  const headers = { authorization: `Bearer ${keys.noisy}` };
  return new Promise((resolve) => {
    get(`${url}${path}`, { headers }, (response) => {
      const pauseMs = Number(response.headers['retry-after'] ?? 0) * 1_000;
      response.resume();
      response.on('close', () => setTimeout(resolve, pauseMs));
    }).on('error', () => setTimeout(resolve, 100));
  });
}

function importLong({ url, keys }: Serving): Promise<void> {
  const headers = { authorization: `Bearer ${keys.noisy}`, 'content-type': 'application/x-ndjson' };
  const path = `${url}/api/import?format=openai&conversation=long&file=long.jsonl`;
  return new Promise((resolve, reject) => {
    const sent = request(path, { method: 'POST', headers }, (response) => {
      response.resume();
      response.on('end', () =>
        response.statusCode === 201
          ? resolve()
          : reject(new Error(`the import was answered with ${response.statusCode}`)),
      );
    });
    sent.on('error', reject);
    Readable.from(longLog()).pipe(sent);
  });
}

function* longLog(): Generator<string> {
  for (let from = 0; from < LONG_EVENTS; from += 1_000) {
    let text = '';
    for (let index = from; index < from + 1_000; index++) {
      const role = index % 2 === 0 ? 'user' : 'assistant';
      text += `${JSON.stringify({ role, content: `Event ${index} of a conversation that goes on and on.` })}\n`;
    }
    yield text;
  }
}

async function stream(to: Serving, onLoud: () => void): Promise<void> {
  for (let index = 0; index < STREAMS; index++)
    await say(to, { conversation: `stream-${index}`, agent: 'streamed', content: 'Tell me all.' });
  onLoud();
}

const CONNECTIONS = 64;

/** Each connection repeats its request as soon as it is answered, with one of the keys of the tenant. */
async function everywhere(
  to: Serving,
  onLoud: () => void,
  ask: (key: string, index: number, turn: number) => Promise<unknown>,
) {
  onLoud();
  const connection = async (index: number) => {
    for (let turn = 0; ; turn++)
      await ask(to.noisyKeys[index % to.noisyKeys.length] ?? '', index, turn).catch(() => {});
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, (_, index) => connection(index)));
}

function append(
  { url }: Serving,
  key: string,
  { index, turn, agent }: { index: number; turn: number; agent?: string },
) {
  const author = { kind: 'user', id: `eve-${index}-${turn % 50}`, name: 'Eve' };
  const body = { author, content: 'A short message.', ...(agent && { to: [agent] }) };
  return postJson(url, `/api/conversations/cheap-${index}/events`, { key, body });
}

function appends(to: Serving, onLoud: () => void): Promise<void> {
  return everywhere(to, onLoud, (key, index, turn) => append(to, key, { index, turn }));
}

function turns(to: Serving, onLoud: () => void): Promise<void> {
  return everywhere(to, onLoud, (key, index, turn) => append(to, key, { index, turn, agent: 'calm' }));
}

function refused(to: Serving, onLoud: () => void): Promise<void> {
  return everywhere(to, onLoud, (_, index, turn) => append(to, to.keys.noisy, { index, turn }));
}

function imports({ url, ...to }: Serving, onLoud: () => void): Promise<void> {
  const body = Array.from({ length: 20 }, (_, n) => ({
    role: n % 2 === 0 ? 'user' : 'assistant',
    content: `Line ${n}.`,
  }));
  return everywhere({ url, ...to }, onLoud, (key, index, turn) =>
    postJson(url, `/api/import?format=openai&conversation=cheap-${index}-${turn}`, { key, body }),
  );
}

function document({ url, ...to }: Serving, onLoud: () => void): Promise<void> {
  return everywhere({ url, ...to }, onLoud, (key) =>
    read({ url, ...to, keys: { ...to.keys, noisy: key } }, '/api/openapi.json'),
  );
}

async function say(
  { url, keys }: Serving,
  { conversation, agent, content }: { conversation: string; agent: string; content: string },
): Promise<void> {
  const body = { author: { kind: 'user', id: 'eve', name: 'Eve' }, to: [agent], content };
  const answered = await postJson(url, `/api/conversations/${conversation}/events`, {
    key: keys.noisy,
    body,
  });
  // Refused by a limit, as intended.
  if (answered.status === 429 || answered.status === 503)
    await new Promise((resolve) => setTimeout(resolve, 1_000));
}
