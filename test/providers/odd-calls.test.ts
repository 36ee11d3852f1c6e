import { describe, expect, test } from 'vitest';
import { NO_USAGE } from '../../src/events/index.ts';
import { defineProvider, defineTool, type ModelEvent, type Provider } from '../../src/index.ts';
import { STATELESS } from '../../src/providers/provider.ts';
import {
  askAiSdk,
  askOver,
  blocks,
  chatCalls,
  chunk,
  ended,
  type Frames,
  items,
  type Wire,
} from '../support/odd-vendor.ts';
import { openTroupe } from '../support/mode.ts';

const call = (args: unknown, more: object = {}) => ({
  index: 0,
  id: 'a1',
  type: 'function',
  function: { name: 'clean', ...(args !== undefined && { arguments: args }) },
  ...more,
});
const use = (input: unknown = {}, id = 'toolu_1', name = 'clean') => ({ type: 'tool_use', id, name, input });
const fn = (args: unknown, more: object = {}) => ({
  type: 'function_call',
  id: 'fc_1',
  call_id: 'a1',
  name: 'clean',
  arguments: args,
  ...more,
});
const added = (item: object) => ({ type: 'response.output_item.added', output_index: 0, item });
const done = (item: object) => ({ type: 'response.output_item.done', output_index: 0, item });
const AT_LIMIT = { status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } };
const ONLY = { only: '/tmp/x' };
const TEXT = JSON.stringify(ONLY);

describe('an answer that is cut at the limit of output tokens', () => {
  const CUT: Record<string, [Wire, Frames]> = {
    'before the arguments, which are empty': ['chat', chatCalls([call('')], 'length')],
    'before the arguments, which are left out': ['chat', chatCalls([call(undefined)], 'length')],
    'before the arguments, which are null': ['chat', chatCalls([call(null)], 'length')],
    'behind the first sign of the arguments': ['chat', chatCalls([call('{')], 'length')],
    'within the arguments': ['chat', chatCalls([call('{"only":"/tm')], 'length')],
    'with an empty object': ['chat', chatCalls([call('{}')], 'length')],
    'with blanks': ['chat', chatCalls([call(' \n')], 'length')],
    'in the words of Mistral': ['chat', chatCalls([call('')], 'model_length')],
    'in the words of Gemini': ['chat', chatCalls([call('{}')], 'MAX_TOKENS')],
    'though the server says that it ends with calls': [
      'chat',
      [
        ...chatCalls([call('')]).slice(0, -1),
        { choices: [], usage: { prompt_tokens: 300, completion_tokens: 4_096 } },
      ],
    ],
    'before any piece of input': ['messages', blocks([{ block: use() }], 'max_tokens')],
    'after an empty piece of input': ['messages', blocks([{ block: use(), pieces: [''] }], 'max_tokens')],
    'within the input': ['messages', blocks([{ block: use(), pieces: ['{"on'] }], 'max_tokens')],
    'at the end of the window': ['messages', blocks([{ block: use() }], 'model_context_window_exceeded')],
    'with an item that is incomplete': [
      'responses',
      items([added(fn('')), done(fn('', { status: 'incomplete' }))], AT_LIMIT),
    ],
    'with an item that has an empty object': ['responses', items([done(fn('{}'))], AT_LIMIT)],
    'with an incomplete item in a response that claims to be complete': [
      'responses',
      items([done(fn('', { status: 'incomplete' }))]),
    ],
    'before the item is done': ['responses', items([added(fn(''))], AT_LIMIT)],
  };

  test.each(Object.entries(CUT))('%s, runs no tool, and the model is told', async (_, [wire, frames]) => {
    const { answer, ran, requests, lastRequest } = await askOver(wire, [frames]);
    expect(ran).toEqual([]);
    expect(answer).toMatchObject({ outcome: 'answered', text: 'Done.' });
    expect(requests).toHaveLength(2);
    expect(lastRequest).toContain('cut off at its limit of 4096 tokens, within your call of `clean`');
    expect(answer.events.map(({ kind }) => kind)).toContain('injection');
    expect(answer.events.find(({ kind }) => kind === 'error')?.body).toMatchObject({
      message: expect.stringContaining('maxOutputTokens (4096) within a call of `clean`') as string,
    });
  });

  test.each<[string, object[]]>([
    ['empty', [{ type: 'tool-call', toolCallId: 'a1', toolName: 'clean', input: '' }]],
    ['an empty object', [{ type: 'tool-call', toolCallId: 'a1', toolName: 'clean', input: '{}' }]],
    ['missing', [{ type: 'tool-call', toolCallId: 'a1', toolName: 'clean' }]],
    ['never whole', [{ type: 'tool-input-start', id: 'a1', toolName: 'clean' }]],
  ])('with a call of the AI SDK whose input is %s, runs no tool', async (_, parts) => {
    const { ran, lastRequest } = await askAiSdk([[...parts, ended('length')]]);
    expect(ran).toEqual([]);
    expect(lastRequest).toContain('That call was not made');
  });

  test('runs a call whose arguments are whole', async () => {
    const { answer, ran } = await askOver('chat', [chatCalls([call(TEXT)], 'length')]);
    expect([ran, answer.text]).toEqual([[ONLY], 'Done.']);
  });

  test('runs the calls before the one that was cut, and says beside their results which was not made', async () => {
    const second = call('', { index: 1, id: 'a2', function: { name: 'list', arguments: '' } });
    const { ran, lastRequest } = await askOver('chat', [chatCalls([call(''), second], 'length')]);
    expect(ran).toEqual([{}]);
    expect(lastRequest).toContain('within your call of `list`. That call was not made');
  });

  test('again and again, fails the turn with the name of the limit', async () => {
    const frames = [chunk({ content: 'I clean up.' }), ...chatCalls([call('')], 'length')];
    const { answer, ran, requests } = await askOver(
      'chat',
      Array.from({ length: 9 }, () => frames),
    );
    expect(ran).toEqual([]);
    expect(requests).toHaveLength(4);
    expect(answer.outcome).toBe('failed');
    expect(answer.failures[0]).toMatchObject({
      code: 'provider_reply_too_long',
      message: expect.stringContaining('maxOutputTokens (4096)') as string,
    });
  });

  test("runs no call without arguments, of a program's own provider of either kind", async () => {
    const given: ModelEvent[] = [
      { type: 'call', call: { id: 'a1', name: 'clean', args: '' } },
      { type: 'done', stop: 'length', usage: NO_USAGE },
    ];
    const events = (step: number): ModelEvent[] =>
      step === 1
        ? given
        : [
            { type: 'text', delta: 'Done.' },
            { type: 'done', stop: 'end', usage: NO_USAGE },
          ];
    const defined = defineProvider({
      name: 'defined',
      async *read({ trace }) {
        yield* events(trace.step);
      },
    });
    const plain: Provider = {
      name: 'plain',
      capabilities: STATELESS,
      async *stream({ trace }) {
        yield { type: 'start' };
        yield* events(trace.step);
      },
    };
    const ran: unknown[] = [];
    const clean = defineTool({
      name: 'clean',
      description: '',
      schema: { type: 'object' },
      run(args) {
        ran.push(args);
        return 'deleted';
      },
    });
    for (const adapter of ['defined', 'plain']) {
      const bo = { id: 'bo', provider: 'custom', adapter, model: 'm', tools: ['clean'] } as const;
      await using troupe = await openTroupe(
        { agents: [bo], tools: [clean], providers: { defined, plain } },
        { onWarning: () => undefined },
      );
      expect((await troupe.ask('c', 'Clean up.')).text).toBe('Done.');
    }
    expect(ran).toEqual([]);
  });
});

describe('arguments in another place or of another type are read', () => {
  const WRITTEN: Record<string, [Wire, Frames]> = {
    'an object': ['chat', chatCalls([call(ONLY)])],
    'an object that comes twice': ['chat', chatCalls([call(ONLY), call(ONLY)])],
    'text encoded twice': ['chat', chatCalls([call(JSON.stringify(TEXT))])],
    'text encoded twice, in pieces': [
      'chat',
      chatCalls([
        call(JSON.stringify(TEXT).slice(0, 9)),
        { index: 0, function: { arguments: JSON.stringify(TEXT).slice(9) } },
      ]),
    ],
    'text encoded three times': ['chat', chatCalls([call(JSON.stringify(JSON.stringify(TEXT)))])],
    'an empty object before the real one': [
      'chat',
      chatCalls([call('{}'), { index: 0, function: { arguments: TEXT } }]),
    ],
    'null before the text': ['chat', chatCalls([call(null), { index: 0, function: { arguments: TEXT } }])],
    'the whole call once more at the end': [
      'chat',
      chatCalls([call('{"only":'), { index: 0, function: { arguments: '"/tmp/x"}' } }, call(TEXT)]),
    ],
    'the whole arguments once more at the end': [
      'chat',
      chatCalls([call(TEXT), { index: 0, function: { arguments: TEXT } }]),
    ],
    'beside the function': [
      'chat',
      chatCalls([{ index: 0, id: 'a1', function: { name: 'clean' }, arguments: TEXT }]),
    ],
    'without a function around them': ['chat', chatCalls([{ id: 'a1', name: 'clean', arguments: ONLY }])],
    'named parameters': ['chat', chatCalls([{ id: 'a1', function: { name: 'clean', parameters: ONLY } }])],
    'in a call that is no list': ['chat', [chunk({ tool_calls: call(TEXT) }), chunk({}, 'tool_calls')]],
    'in the older function_call': [
      'chat',
      [
        chunk({ function_call: { name: 'clean', arguments: '{"only":' } }),
        chunk({ function_call: { arguments: '"/tmp/x"}' } }),
        chunk({}, 'function_call'),
      ],
    ],
    "the whole input with the block's start": ['messages', blocks([{ block: use(ONLY) }])],
    "the whole input with the block's start, and in pieces": [
      'messages',
      blocks([{ block: use(ONLY), pieces: ['{"only":', '"/tmp/x"}'] }]),
    ],
    'input as text at the start': ['messages', blocks([{ block: use(TEXT) }])],
    'input that is null, and pieces': ['messages', blocks([{ block: use(null), pieces: [TEXT] }])],
    'a piece of input that is an object': ['messages', blocks([{ block: use(), pieces: [ONLY] }])],
    'input encoded twice': ['messages', blocks([{ block: use(), pieces: [JSON.stringify(TEXT)] }])],
    'an object in the item': ['responses', items([done(fn(ONLY))])],
    'encoded twice in the item': ['responses', items([done(fn(JSON.stringify(TEXT)))])],
    'only in the pieces': [
      'responses',
      items([
        added(fn('')),
        { type: 'response.function_call_arguments.delta', item_id: 'fc_1', delta: '{"only":' },
        { type: 'response.function_call_arguments.delta', item_id: 'fc_1', delta: '"/tmp/x"}' },
        done(fn('')),
      ]),
    ],
    'only at the end of the pieces': [
      'responses',
      items([
        added(fn(null)),
        { type: 'response.function_call_arguments.done', item_id: 'fc_1', arguments: TEXT },
        done(fn(undefined)),
      ]),
    ],
    'only when the item is added': ['responses', items([added(fn(ONLY)), done(fn(''))])],
  };

  test.each(Object.entries(WRITTEN))('%s', async (_, [wire, frames]) => {
    const { answer, ran, requests } = await askOver(wire, [frames]);
    expect(ran).toEqual([ONLY]);
    expect(answer.text).toBe('Done.');
    expect(requests).toHaveLength(2);
    expect(JSON.stringify(requests)).not.toContain('[object Object]');
  });

  test.each<[string, object[]]>([
    ['an object', [{ type: 'tool-call', toolCallId: 'a1', toolName: 'clean', input: ONLY }]],
    [
      'text encoded twice',
      [{ type: 'tool-call', toolCallId: 'a1', toolName: 'clean', input: JSON.stringify(TEXT) }],
    ],
    [
      'only in pieces',
      [
        { type: 'tool-input-start', id: 'a1', toolName: 'clean' },
        { type: 'tool-input-delta', id: 'a1', delta: TEXT },
        { type: 'tool-input-end', id: 'a1' },
        { type: 'tool-call', toolCallId: 'a1', toolName: 'clean', input: '' },
      ],
    ],
  ])('%s, of the AI SDK', async (_, parts) => {
    expect((await askAiSdk([[...parts, ended('tool-calls')]])).ran).toEqual([ONLY]);
  });

  test('as a tool without arguments gets them: empty, null or left out', async () => {
    for (const args of ['', '{}', null, undefined, 'null', {}])
      expect((await askOver('chat', [chatCalls([call(args)])])).ran).toEqual([{}]);
  });

  test.each<[string, unknown]>([
    ['half of an object', '{"only":'],
    ['a list', ['/tmp/x']],
    ['a number', 7],
    ['two different objects in a row', `${TEXT}{"only":"/"}`],
    ['a text', '"clean up"'],
  ])('%s is no arguments: the model reads why, and nothing runs', async (_, args) => {
    const { ran, lastRequest } = await askOver('chat', [chatCalls([call(args)])]);
    expect(ran).toEqual([]);
    expect(lastRequest).toMatch(/arguments of clean (?:are not valid JSON|must be a JSON object)/);
  });
});

describe('parallel calls are told apart', () => {
  const part = (name: string, args: unknown, more: object = {}) => ({
    ...more,
    function: { ...(name && { name }), arguments: args },
  });
  const A = '{"only":"a"}';
  const B = '{"only":"b"}';
  const BOTH = [{ only: 'a' }, { only: 'b' }];
  const APART: Record<string, [Wire, Frames]> = {
    'with ids and one index': [
      'chat',
      chatCalls([part('clean', A, { index: 0, id: '1' }), part('clean', B, { index: 0, id: '2' })]),
    ],
    'with one index and no ids': [
      'chat',
      chatCalls([part('clean', A, { index: 0 }), part('clean', B, { index: 0 })]),
    ],
    'with one index and empty ids': [
      'chat',
      chatCalls([part('clean', A, { index: 0, id: '' }), part('list', B, { index: 0, id: '' })]),
    ],
    'with neither ids nor an index, whole': ['chat', chatCalls([part('clean', A), part('clean', B)])],
    'with neither, in one chunk': ['chat', chatCalls([[part('clean', A), part('clean', B)]])],
    'with neither, of other tools, in pieces': [
      'chat',
      chatCalls([
        part('clean', ''),
        part('', '{"only":'),
        part('', '"a"}'),
        part('list', ''),
        part('', '{"only":'),
        part('', '"b"}'),
      ]),
    ],
    'with neither, of one tool, in pieces': [
      'chat',
      chatCalls([part('clean', ''), part('', A), part('clean', ''), part('', '{"only":'), part('', '"b"}')]),
    ],
    'with the name on every piece': [
      'chat',
      chatCalls([part('clean', '{"only":'), part('clean', '"a"}'), part('clean', B)]),
    ],
    'with objects and no ids': [
      'chat',
      chatCalls([part('clean', { only: 'a' }), part('clean', { only: 'b' })]),
    ],
    'with an id that changes from piece to piece': [
      'chat',
      chatCalls([
        part('clean', '{"only":', { index: 0, id: 'x1' }),
        part('', '"a"}', { index: 0, id: 'x2' }),
        part('clean', B, { index: 1, id: 'x3' }),
      ]),
    ],
    'with pieces of both in turn, by their ids': [
      'chat',
      chatCalls([
        part('clean', '{"only":', { index: 0, id: '1' }),
        part('clean', '{"only":', { index: 0, id: '2' }),
        part('', '"a"}', { index: 0, id: '1' }),
        part('', '"b"}', { index: 0, id: '2' }),
      ]),
    ],
    'with one id and two indexes': [
      'chat',
      chatCalls([part('clean', A, { index: 0, id: 'x' }), part('clean', B, { index: 1, id: 'x' })]),
    ],
    'with an index as text, from 1': [
      'chat',
      chatCalls([part('clean', A, { index: '1' }), part('clean', B, { index: '2' })]),
    ],
    'with null among them': ['chat', chatCalls([[part('clean', A), null, part('list', B)]])],
    'in blocks of one index': [
      'messages',
      blocks([
        { index: 0, block: use({}, 't1'), pieces: [A] },
        { index: 0, block: use({}, 't2', 'list'), pieces: [B] },
      ]),
    ],
    'in blocks without ids': [
      'messages',
      blocks([
        { block: use({}, ''), pieces: [A] },
        { block: use({}, ''), pieces: [B] },
      ]),
    ],
    'in items without ids': [
      'responses',
      items([done(fn(A, { id: '', call_id: '' })), done(fn(B, { id: '', call_id: '' }))]),
    ],
    'in items with one id': ['responses', items([done(fn(A)), done(fn(B))])],
  };

  test.each(Object.entries(APART))('%s', async (_, [wire, frames]) => {
    const { answer, ran, requests } = await askOver(wire, [frames]);
    expect(ran).toEqual(BOTH);
    expect(requests).toHaveLength(2);
    const results = answer.events.flatMap((event) => (event.kind === 'tool.result' ? [event.body.call] : []));
    expect(new Set(results).size).toBe(2);
  });

  test('of the AI SDK without ids', async () => {
    const each = (input: string) => ({ type: 'tool-call', toolCallId: '', toolName: 'clean', input });
    expect((await askAiSdk([[each(A), each(B), ended('tool-calls')]])).ran).toEqual(BOTH);
  });
});
