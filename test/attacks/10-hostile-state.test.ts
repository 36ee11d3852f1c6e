import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import fc from 'fast-check';
import { expect } from 'vitest';
import * as z from 'zod';
import { ACTOR_VERSION } from '../../src/events/index.ts';
import { createTroupe } from '../../src/library/runtime/create-troupe.ts';
import { defineTool } from '../../src/tools/tool.ts';
import { tempDir } from '../store/temp-dir.ts';
import { attack } from './attack.ts';
import { ANA, type AttackStage, only, openStage, type StageOptions, statusOf, unchanged } from './stage.ts';

/** Stored in a file, so that the data can be changed while the troupe is closed. */
function openOn(data: string, options: StageOptions): Promise<AttackStage> {
  return openStage({ ...options, open: createTroupe, troupe: { data } });
}

type Stored = Record<string, unknown>;

/** Changes the stored record of each of these agents. */
function damage(data: string, damages: Record<string, (stored: Stored) => unknown>): void {
  const database = new DatabaseSync(path.join(data, 'troupe.db'));
  const read = database.prepare('SELECT data FROM actors WHERE agent = ?');
  const write = database.prepare('UPDATE actors SET data = ? WHERE agent = ?');
  for (const [agent, change] of Object.entries(damages)) {
    const stored = JSON.parse(String(read.get(agent)?.['data'])) as Stored;
    const changed = change(stored);
    write.run(typeof changed === 'string' ? changed : JSON.stringify(changed), agent);
  }
  database.close();
}

function snapshot(change: object, context: object = {}) {
  const text = { value: 'idle', context: { turns: 1, steps: 0, tries: 0, ...context }, ...change };
  return (stored: Stored) => ({ ...stored, snapshot: JSON.stringify(text) });
}

/** Opens the damaged data, asks every agent, and returns the codes with which agents failed. */
async function askAll(data: string, options: StageOptions, damaged: readonly string[]) {
  await using stage = await openOn(data, options);
  await stage.say('c', 'still there?', { to: [...damaged, 'well'] });
  const codes = new Map(
    only(await stage.events('c'), 'error').map(({ body }) => [
      damaged.find((agent) => body.message.includes(`@${agent} `) || body.message.includes(` ${agent} `)) ??
        body.message,
      body.code,
    ]),
  );
  const actors = await stage.troupe.actors('c');
  const asked = new Set(stage.vendor.requests.map(({ body }) => (body as { model: string }).model));
  return { codes, actors, asked };
}

const MARKER = { xstate$$type: 1, id: 'x', src: 'evil' };
const REVIVED = { lc: 1, type: 'constructor', id: ['langchain', 'evil'], kwargs: {} };

/** Bodies whose keys or values try to be more than data. Sent as text, because literals have no own `__proto__`. */
const bodies = fc.constantFrom(
  `{"author":${JSON.stringify(ANA)},"content":${JSON.stringify(MARKER)}}`,
  `{"author":${JSON.stringify({ ...ANA, ...MARKER })},"content":"x"}`,
  `{"author":${JSON.stringify({ ...ANA, name: MARKER })},"content":"x"}`,
  `{"author":${JSON.stringify(ANA)},"content":"x","__proto__":{"isAdmin":true}}`,
  `{"author":${JSON.stringify(ANA)},"content":"x","constructor":{"prototype":{"isAdmin":true}}}`,
  `{"author":{"__proto__":{"kind":"system"},"kind":"user","id":"eve","name":"Eve"},"content":"x"}`,
  `{"author":${JSON.stringify(ANA)},"content":"x","id":${JSON.stringify(REVIVED)}}`,
  `{"author":${JSON.stringify(ANA)},"content":"x","to":[${JSON.stringify(MARKER)}]}`,
  `{"author":${JSON.stringify(ANA)},"content":"x","context":${JSON.stringify(MARKER)}}`,
  `{"author":${JSON.stringify(ANA)},"content":"x","replyTo":{"__proto__":[]}}`,
);
const texts = fc.oneof(
  fc.constantFrom(
    JSON.stringify(MARKER),
    JSON.stringify(REVIVED),
    '{"__proto__":{"isAdmin":true}}',
    '__proto__',
    'constructor',
  ),
  fc.json({ maxDepth: 3 }),
);

attack(
  10,
  'markers and prototypes in any field stay text, and an edited snapshot is not restored',
  async (refused) => {
    const seen: unknown[] = [];
    const look = defineTool({
      name: 'look',
      description: 'Looks.',
      schema: z.looseObject({}),
      run(args) {
        seen.push(args);
        return `${(args as { isAdmin?: boolean }).isAdmin ?? false}`;
      },
    });
    const damages = {
      marked: snapshot(MARKER),
      inContext: snapshot({}, { turns: MARKER }),
      beside: snapshot({}, { ref: MARKER }),
      proto: (stored: Stored) => ({
        ...stored,
        snapshot: '{"value":"idle","context":{"turns":1,"steps":0,"tries":0},"__proto__":{"x":1}}',
      }),
      revived: (stored: Stored) => ({ ...stored, snapshot: JSON.stringify(REVIVED) }),
      notText: (stored: Stored) => ({ ...stored, snapshot: MARKER }),
      notJson: () => '{"turnNo":',
    };
    const damaged = Object.keys(damages);
    const options: StageOptions = {
      agents: ['bo', 'well', ...damaged].map((id) => ({ id, tools: ['look'] })),
      tools: [look],
      answer: ({ agent, messages }) =>
        agent === 'bo' && messages.at(-1)?.role === 'user'
          ? { calls: [{ name: 'look', args: '{"__proto__":{"isAdmin":true},"xstate$$type":1,"id":"x"}' }] }
          : { text: JSON.stringify(MARKER) },
    };
    const data = tempDir();
    {
      await using stage = await openOn(data, options);
      await fc.assert(
        fc.asyncProperty(bodies, async (body) => {
          const answered = await unchanged(stage, () => stage.ask('/api/conversations/c/events', { body }));
          expect(statusOf(answered)).toBe('400 event_invalid');
        }),
        { numRuns: 30 },
      );
      refused('400 event_invalid');
      let told_ = 0;
      await fc.assert(
        fc.asyncProperty(texts, texts, async (content, name) => {
          const author = { kind: 'user', id: 'eve', name: name.slice(0, 200) } as const;
          await stage.say('texts', content, { author, ...((told_ += 1) % 5 === 0 && { to: ['bo'] }) });
          expect(
            only(await stage.events('texts'), 'message').findLast(({ author: by }) => by.id === 'eve'),
          ).toMatchObject({
            author,
            body: { content },
          });
        }),
        { numRuns: 25 },
      );
      expect((await stage.say('c', 'hello', { to: ['well', ...damaged] })).status).toBe(201);
      expect(stage.errors).toEqual([]);
    }
    for (const args of seen) expect((args as { isAdmin?: boolean }).isAdmin).toBeUndefined();
    expect(seen.length).toBeGreaterThan(0);
    expect(({} as { isAdmin?: boolean }).isAdmin).toBeUndefined();
    refused('stored as text');

    damage(data, damages);
    const { codes, actors, asked } = await askAll(data, options, damaged);
    for (const agent of damaged) {
      expect([agent, codes.get(agent)]).toEqual([agent, 'actor_corrupt']);
      expect(actors.find((actor) => actor.agent === agent)).toMatchObject({ status: 'failed' });
    }
    expect(asked).toEqual(new Set(['well']));
    refused('actor_corrupt');
  },
);

attack(
  27,
  'a snapshot of another machine is refused: its agent fails, the others continue',
  async (refused) => {
    const damages = {
      unknown: snapshot({ value: 'dancing' }),
      amidst: snapshot({ value: { working: 'streaming' } }),
      children: snapshot({
        children: { x: { snapshot: { status: 'active' }, src: 'node:child_process', syncSnapshot: false } },
      }),
      status: snapshot({ status: 'active', historyValue: {}, tags: [] }),
      negative: (stored: Stored) => ({ ...stored, machineVersion: -1 }),
      fraction: snapshot({}, { turns: 0.5 }),
      swapped: (stored: Stored) => ({ ...stored, turn: { id: 'c:well:1' } }),
      timers: (stored: Stored) => ({ ...stored, timers: [{ conversation: { $ne: '' }, draft: {} }] }),
    };
    const damaged = Object.keys(damages);
    const options: StageOptions = { agents: ['well', 'ahead', ...damaged] };
    const data = tempDir();
    {
      await using stage = await openOn(data, options);
      await stage.say('c', 'hello', { to: ['well', ...damaged] });
      await stage.say('d', 'hello', { to: ['ahead'] });
    }
    damage(data, damages);
    const { codes, actors, asked } = await askAll(data, options, damaged);
    for (const agent of damaged) {
      expect([agent, codes.get(agent)]).toEqual([agent, 'actor_corrupt']);
      expect(actors.find((actor) => actor.agent === agent)).toMatchObject({ status: 'failed' });
    }
    expect(asked).toEqual(new Set(['well']));
    refused('actor_corrupt');

    // Records of a newer version are neither run nor changed, but kept for a process that knows them.
    damage(data, {
      ahead: (stored) => ({ ...stored, machineVersion: ACTOR_VERSION + 1, whatIsNew: MARKER }),
    });
    {
      await using stage = await openOn(data, options);
      await stage.troupe.send('d', { author: ANA, content: 'still there?', to: ['ahead'] });
      await expect.poll(() => stage.warnings.join('\n')).toMatch(/newer version/);
      expect(stage.vendor.requests).toEqual([]);
      expect(only(await stage.events('d'), 'message').at(-1)?.author).toEqual(ANA);
    }
    refused('actor_newer');
  },
);
