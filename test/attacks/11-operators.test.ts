import fc from 'fast-check';
import { expect } from 'vitest';
import { attack } from './attack.ts';
import { ANA, openStage, statusOf, unchanged } from './stage.ts';

/** Values with a special meaning in a database's query language. */
const operator = fc.constantFrom<unknown>(
  { $gt: '' },
  { $ne: null },
  { $where: 'sleep(1000)' },
  { $regex: '.*' },
  { $function: { body: 'function(){}', args: [], lang: 'js' } },
  { 'a.b': 1 },
  [],
  ['c'],
  [{ $gt: '' }],
  null,
  7,
  true,
);
const MESSAGE = { id: 'e-new', author: ANA, to: ['bo'], content: 'x', replyTo: 'e1' };
/** Places of a message that allow only a text. */
const place = fc.constantFrom(
  'id',
  'author',
  'author.kind',
  'author.id',
  'author.name',
  'to.0',
  'content',
  'replyTo',
);
const COMMANDS: readonly Record<string, unknown>[] = [
  { command: 'abort', turn: 'c:bo:1' },
  { command: 'retry', turn: 'c:bo:1' },
  { command: 'pause', conversation: 'c', agent: 'bo' },
  { command: 'fork', conversation: 'c', seq: 1, as: 'd' },
  { command: 'decide', conversation: 'c', request: 'x', approved: true, argsHash: 'h' },
  { command: 'cancelTask', conversation: 'c', task: 'x' },
];
const commandPlace = fc
  .nat(COMMANDS.length - 1)
  .chain((at) =>
    fc.tuple(fc.constant(COMMANDS[at] ?? {}), fc.constantFrom(...Object.keys(COMMANDS[at] ?? {}))),
  );

/** Invalid ids, in a path or in a query. */
const noId = fc.constantFrom(
  '$where',
  '{"$gt":""}',
  '[$gt]',
  'a/b',
  '../c',
  "c'; DROP TABLE events;--",
  'c\u0000',
  '*',
  '%',
  'x'.repeat(129),
  '__proto__',
  '{"$ne":1}',
);
const paths = fc.constantFrom<(id: string) => string>(
  (id) => `/api/conversations/${id}`,
  (id) => `/api/conversations/${id}/events`,
  (id) => `/api/conversations/${id}/tasks`,
  (id) => `/api/conversations/${id}/actors`,
  (id) => `/api/conversations/${id}/snapshot`,
  (id) => `/api/conversations/${id}/rows`,
  (id) => `/api/events?conversation=${id}`,
  (id) => `/api/turns/${id}`,
  (id) => `/api/turns/${id}/prompt`,
  (id) => `/api/conversations/c/events?after=${id}`,
  (id) => `/api/conversations/c/events?limit=${id}`,
);

function put(target: object, where: string, value: unknown): unknown {
  const copy = structuredClone(target) as Record<string, unknown>;
  const steps = where.split('.');
  const last = steps.pop() ?? '';
  const holder = steps.reduce<Record<string, unknown>>(
    (at, step) => at[step] as Record<string, unknown>,
    copy,
  );
  holder[last] = value;
  return copy;
}

attack(11, 'an operator or a list instead of a text is refused', async (refused) => {
  await using stage = await openStage();
  await stage.say('c', 'hello', { id: 'e1' as never, to: ['bo'] });
  const runs = { numRuns: 60 };
  await unchanged(stage, () =>
    fc.assert(
      fc.asyncProperty(place, operator, async (where, value) => {
        const answered = await stage.ask('/api/conversations/c/events', { body: put(MESSAGE, where, value) });
        expect(statusOf(answered)).toBe('400 event_invalid');
      }),
      runs,
    ),
  );
  await unchanged(stage, () =>
    fc.assert(
      fc.asyncProperty(commandPlace, operator, async ([command, key], value) => {
        // Values of the right type are refused for other reasons.
        fc.pre(!(key === 'approved' && value === true) && !(key === 'seq' && value === 7));
        const answered = await stage.command(put(command, key, value) as object);
        expect(statusOf(answered)).toBe('400 event_invalid');
      }),
      runs,
    ),
  );
  await unchanged(stage, () =>
    fc.assert(
      fc.asyncProperty(paths, noId, async (path, id) => {
        const answered = await stage.ask(path(encodeURIComponent(id)));
        expect(['400 event_invalid', '404 turn_unknown', '404 conversation_unknown']).toContain(
          statusOf(answered),
        );
      }),
      runs,
    ),
  );
  // Query strings whose keys some parsers turn into an object.
  for (const query of ['conversation[$gt]=', 'conversation[]=c', 'after[$gt]=0']) {
    const answered = await unchanged(stage, () => stage.ask(`/api/conversations/c/events?${query}`));
    expect([answered.status, answered.body['head']]).toEqual([200, (await stage.troupe.events('c')).head]);
  }
  expect(stage.errors).toEqual([]);
  refused('400 event_invalid');
});
