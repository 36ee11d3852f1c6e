import { toStandardJsonSchema } from '@valibot/to-json-schema';
import * as v from 'valibot';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { z as z3 } from 'zod3';
import { createTroupe, defineTool, parseTroupe } from '../../src/index.ts';

/** What a person wrote by mistake, and what the answer must name: the place, what was expected, and the mend. */
type Mistake = [what: string, input: unknown, words: RegExp];

const agent = { id: 'bo', provider: 'scripted', script: { rules: [{ reply: 'hi' }] } };
const ANA = { kind: 'user', id: 'ana', name: 'Ana' };

test.each<Mistake>([
  [
    'no provider',
    { agents: [{ id: 'bo', model: 'x' }] },
    /agents\[0\]\.provider: is missing: one of .*openai-compatible/,
  ],
  [
    'a mistyped provider',
    { agents: [{ id: 'bo', provider: 'opanai', model: 'x' }] },
    /agents\[0\]\.provider: there is no provider "opanai"; did you mean "openai"\? It is one of /,
  ],
  [
    'a mistyped field of an agent',
    { agents: [{ ...agent, instruction: 'typo' }] },
    /agents\[0\]\.instruction: is not a field; did you mean "instructions"\?/,
  ],
  [
    'a mistyped field whose right one is then missing',
    { agents: [{ id: 'bo', provider: 'scripted', scirpt: {} }] },
    /agents\[0\]\.script: is missing\n.*agents\[0\]\.scirpt: is not a field; did you mean "script"\?/,
  ],
  [
    'a mistyped field of a template',
    { agents: [agent], templates: [{ ...agent, id: 't', tolls: [] }] },
    /templates\[0\]\.tolls: is not a field; did you mean "tools"\?/,
  ],
  [
    'a mistyped field of the definition',
    { agents: [agent], tols: [] },
    /tols: is not a field; did you mean "tools"\?/,
  ],
  ['no agents', {}, /agents: is missing/],
  [
    'an unknown tool',
    { agents: [{ ...agent, tools: ['lok'] }] },
    /agents\[0\]\.tools\[0\]: there is no tool "lok"; known: /,
  ],
])('a definition with %s says what is wrong and how to mend it', (_, input, words) => {
  expect(() => parseTroupe(input)).toThrow(words);
});

test('an unknown option of createTroupe is refused with the nearest one', async () => {
  const opened = createTroupe({ agents: [agent as never] }, { dat: 'x' } as never);
  await expect(opened).rejects.toMatchObject({
    code: 'config_invalid',
    message: 'the options of createTroupe: dat: is not a field; did you mean "data"?',
  });
});

test.each<Mistake>([
  ['of zod 3', z3.object({}), /zod gives no JSON schema for models: use zod 4; or .* add "parameters"/],
  [
    'of valibot alone',
    v.object({}),
    /valibot gives no JSON schema for models: wrap it in toStandardJsonSchema/,
  ],
  [
    'that valibot cannot express',
    toStandardJsonSchema(v.object({ a: v.date() })),
    /valibot cannot express it as a JSON schema: /,
  ],
  ['of fields alone', { a: z.string() }, /its field "a" is a schema .* write z\.object\(\{ … \}\) around it/],
  ['that is nothing', undefined, /give a schema of zod, valibot, arktype/],
  ['for a list', { type: 'array' }, /arguments are an object: give .* or a JSON schema of the type "object"/],
  ['with an unknown type', { type: 'object', properties: { a: { type: 'txt' } } }, /Unsupported type: txt/],
  [
    'with a condition',
    { type: 'object', if: {} },
    /cannot be checked: .*: leave that out; "parameters" of a tool can/,
  ],
])('a schema %s is refused where the tool is defined', (_, schema, words) => {
  const define = () => defineTool({ name: 'look', description: '', schema: schema as never, run: () => '' });
  expect(define).toThrow(words);
  expect(define).toThrow(/^the schema of tool "look": /);
});

test.each<Mistake>([
  ['nothing', null, /^message: give a text, or an object such as/],
  ['a number', 3, /^message: give a text/],
  ['no author', { content: 'hi' }, /^author: is missing: say who speaks, such as/],
  ['no content', { author: ANA }, /^content: is missing/],
  [
    'an unknown agent',
    { author: ANA, content: 'hi', to: ['b'] },
    /there is no agent "b"\. Did you mean "bo"\?/,
  ],
])(
  'a message with %s is refused in words, and not by an error of the language',
  async (_, message, words) => {
    await using troupe = await createTroupe({ agents: [agent as never] });
    await expect(troupe.send('c', message as never)).rejects.toMatchObject({
      name: 'TroupeError',
      message: expect.stringMatching(words),
    });
  },
);

test.each<Mistake>([
  ['nothing', null, /^command: give an object such as/],
  [
    'a mistyped name',
    { command: 'forc', conversation: 'c' },
    /^command: is "forc": give one of "abort", .*; did you mean "fork"\?/,
  ],
  ['a field too few', { command: 'pause', conversation: 'c' }, /^agent: /],
  [
    'an invalid id',
    { command: 'pause', conversation: 'not an id', agent: 'bo' },
    /^conversation: a conversation id is 1 to 128 of/,
  ],
])('a command with %s is refused in words', async (_, command, words) => {
  await using troupe = await createTroupe({ agents: [agent as never] });
  await troupe.ask('c', 'hi');
  await expect(troupe.command(command as never, ANA as never)).rejects.toMatchObject({
    code: 'event_invalid',
    message: expect.stringMatching(words),
  });
});

test('ids are strings at the door, and a text alone is a message', async () => {
  await using troupe = await createTroupe({ agents: [agent as never] });
  await troupe.send('c', 'hello');
  await troupe.send('c', {
    author: { kind: 'user', id: 'ana', name: 'Ana' },
    to: ['bo'],
    content: 'hi',
    id: 'm1',
  });
  await troupe.idle();
  const by = { kind: 'user', id: 'ana', name: 'Ana' } as const;
  const event = await troupe.command({ command: 'pause', conversation: 'c', agent: '@bo' }, by);
  expect(event).toMatchObject({ kind: 'command', body: { command: 'pause', agent: 'bo' } });
  expect((await troupe.events('c')).events[0]).toMatchObject({ author: { id: 'user', name: 'User' } });
});
