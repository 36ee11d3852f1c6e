import { expect, vi } from 'vitest';
import { cpuMsOf } from '../support/cpu-ms.ts';
import { attack } from './attack.ts';
import { ACME, ANA, type Answer, only, openStage, statusOf, unchanged, withKey } from './stage.ts';

const KIB = 1_024;
const MIB = 1_024 * KIB;
const WORDS = { messageId: 'm1', role: 'ROLE_USER', parts: [{ text: 'HERE' }] };
const RUN = { threadId: 'c', runId: 'r1', messages: [{ id: 'm1', role: 'user', content: 'HERE' }] };

/** Every route that takes a body. `HERE`, with its quotes, is where the values of an attacker stand. */
const DOORS: readonly (readonly [path: string, body: object])[] = [
  ['/api/conversations/c/events', { author: ANA, content: 'HERE' }],
  ['/api/commands', { command: 'pause', conversation: 'c', agent: 'HERE' }],
  ['/api/a2a/bo', { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message: WORDS } }],
  ['/api/a2a/bo/message:send', { message: WORDS }],
  ['/api/ag-ui', RUN],
  ['/api/conversations/c/chat', { id: 'c', messages: [{ id: 'm1', role: 'user', parts: 'HERE' }] }],
  ['/api/v1/chat/completions', { model: 'bo', messages: [{ role: 'user', content: 'HERE' }] }],
  ['/api/v1/responses', { model: 'bo', input: 'HERE' }],
  ['/api/mcp', { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'bo', arguments: 'HERE' } }],
  ['/api/keys', { name: 'HERE' }],
  ['/api/webhooks', { url: 'HERE' }],
];

/** Values that are many for their bytes, or slow for their number. */
const SHAPES: Readonly<Record<string, (bytes: number) => string>> = {
  lists: (bytes) => `[${'[],'.repeat(bytes / 3)}[]]`,
  objects: (bytes) => `[${'{},'.repeat(bytes / 3)}{}]`,
  numbers: (bytes) => `[${'1,'.repeat(bytes / 2)}1]`,
  nulls: (bytes) => `[${'null,'.repeat(bytes / 5)}null]`,
  'empty texts': (bytes) => `[${'"",'.repeat(bytes / 3)}""]`,
  keys: (bytes) => `{${Array.from({ length: bytes / 12 }, (_, n) => `"k${n}":1,`).join('')}"k":1}`,
  'one key again and again': (bytes) => `{${'"__proto__":{},'.repeat(bytes / 15)}"k":1}`,
  messages: (bytes) => `[${'{"id":"a","role":"user","content":[]},'.repeat(bytes / 38)}1]`,
  'white space': (bytes) => `[${' '.repeat(bytes)}]`,
  'one number': (bytes) => '1'.repeat(bytes),
};

const REFUSED = /^4(?:00|13) |JSON-RPC/;

/** For example `413 event_too_large`. JSON-RPC tells errors in answers of status 200. */
function refusalOf(answer: Answer): string {
  const { status, text } = answer;
  return status === 200 && text.includes('"error":{') ? `JSON-RPC ${text.slice(0, 120)}` : statusOf(answer);
}

/** Values that may be built of one body, and bytes outside of texts that may be parsed. */
const MOST_VALUES = 200_000;
const MOST_BARE = MIB;

attack(
  44,
  'a body of millions of tiny values is refused at every door before they are built',
  async (refused) => {
    await using stage = await openStage({ guarded: true });
    const eve = await withKey(stage, ACME);
    const parse = JSON.parse;
    let [values, bare] = [0, 0];
    vi.spyOn(JSON, 'parse').mockImplementation((text: string, ...more) => {
      const outside = text.replaceAll(/"(?:[^"\\]|\\.)*"/g, '');
      bare = Math.max(bare, outside.length);
      values = Math.max(values, outside.replaceAll(/[^,:[{]/g, '').length);
      return parse(text, ...more) as unknown;
    });
    let [cpuMs, sent, slowest] = [0, 0, ''];
    await unchanged(stage, async () => {
      for (const [path, body] of DOORS) {
        for (const [shape, fill] of Object.entries(SHAPES)) {
          const large = JSON.stringify(body).replace('"HERE"', fill(980 * KIB));
          let answer = '';
          const took = await cpuMsOf(async () => (answer = refusalOf(await eve(path, { body: large }))));
          expect([path, shape, answer]).toEqual([path, shape, expect.stringMatching(REFUSED)]);
          sent += large.length;
          cpuMs += took;
          if (took > Number.parseFloat(slowest || '0'))
            slowest = `${took.toFixed(1)} ms: ${shape} at ${path}`;
        }
      }
      for (const [path, body] of DOORS) {
        const large = JSON.stringify(body).replace('"HERE"', SHAPES['lists']!(27 * MIB));
        expect([path, refusalOf(await eve(path, { body: large }))]).toEqual([
          path,
          expect.stringMatching(REFUSED),
        ]);
      }
    });
    vi.restoreAllMocks();
    expect(values).toBeLessThanOrEqual(MOST_VALUES);
    expect(bare).toBeLessThanOrEqual(MOST_BARE);
    const perByte = Math.round((cpuMs * 1e6) / sent);
    console.log(
      `at most ${values} values built of a body; ${perByte} ns of CPU per byte, at most ${slowest}`,
    );
    refused('413 event_too_large');
  },
);

attack(44, 'a message has at most a mebibyte of text, by whatever door', async (refused) => {
  await using stage = await openStage({ guarded: true });
  const eve = await withKey(stage, ACME);
  const text = JSON.stringify('word '.repeat(2 * MIB));
  for (const [path, body] of DOORS.slice(0, 9)) {
    const large = JSON.stringify(body).replace('"HERE"', text);
    const answer = refusalOf(await eve(path, { body: large }));
    expect([path, answer]).toEqual([path, expect.stringMatching(REFUSED)]);
    if (answer.startsWith('413')) refused(answer);
  }
  for (const tenant of ['default', ACME]) {
    const troupe = stage.troupe.forTenant(tenant);
    for (const { id } of await troupe.conversations()) {
      const { events } = await troupe.events(id, { after: 0, limit: 100 });
      for (const { body } of only(events, 'message')) expect(body.content.length).toBeLessThan(MIB);
    }
  }
});
