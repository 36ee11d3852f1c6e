import type { Message } from '@ag-ui/client';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Answer } from '../../../src/library/troupe.ts';
import { type ChatChange, chatChanges } from '../../../src/library/asking/chat.ts';
import { compareWith, type ClientMessage } from '../src/ag-ui/run-input.ts';
import { endOf } from '../src/ag-ui/ending.ts';
import type { AgUiEvent } from '../src/ag-ui/protocol.ts';
import { replay, RoomView } from '../src/ag-ui/room-view.ts';
import { RoomState } from '../src/ag-ui/room-state.ts';
import type { Event } from '../../../src/events/index.ts';
import type { Note } from '../../../src/library/troupe.ts';
import { type Plan, plan, scene } from '../../../test/asking/turn-scene.ts';
import { clientOf } from './ag-ui-client.ts';

const ASKED = {
  kind: 'message',
  id: 'u1',
  conversation: 'c',
  seq: 1,
  to: ['bo'],
  author: { kind: 'user', id: 'uma', name: 'Uma' },
  body: { content: 'Look.' },
} as unknown as Event;

/** The run of a client that has these messages and then receives these parts. */
function runOf(client: readonly Message[], parts: readonly Note[]): object[] {
  const nameOf = () => 'Bo';
  const view = new RoomView({ conversation: 'c', nameOf });
  replay(view, [ASKED]);
  const has = client as unknown as readonly ClientMessage[];
  const { base, snapshots, had } = compareWith(has, view.messages, { target: 'u1', isWhole: true });
  const state = new RoomState([{ id: 'bo', name: 'Bo', role: 'peer', status: 'idle' }]);
  view.begin({ base, had, state });
  const changesOf = chatChanges();
  // Events are read at once, because a snapshot shows the messages of that moment.
  const read = (event: AgUiEvent) => JSON.parse(JSON.stringify(event)) as object;
  return [
    { type: 'RUN_STARTED', threadId: 'c', runId: 'r' },
    ...snapshots.map((messages) => read({ type: 'MESSAGES_SNAPSHOT', messages })),
    ...parts.flatMap((part) => changesOf(part).flatMap((change) => view.take(change).map(read))),
    ...view.finish().map(read),
    { type: 'RUN_FINISHED', threadId: 'c', runId: 'r' },
  ];
}

/** The notes of a reader who loses some of the live parts, and gets others twice. */
function thinned({ lost, again }: Plan, live: readonly Note[]): Note[] {
  return live.flatMap((part, index) => [
    ...(lost.includes(index) ? [] : [part]),
    ...(again.includes(index) ? live.slice(Math.max(0, index - 3), index + 1) : []),
  ]);
}

function expected({ steps, reply }: Plan): unknown[] {
  return [
    { role: 'user', content: 'Look.' },
    ...steps.flatMap(({ rounds }) => [
      { role: 'assistant', content: rounds.at(-1)?.text ?? '', args: ['{"n":1}'] },
      { role: 'tool', content: 'seen' },
    ]),
    { role: 'assistant', content: reply },
  ];
}

function plain(messages: readonly Message[]): unknown[] {
  return messages.map((message) => ({
    role: message.role,
    content: message.content,
    ...(message.role === 'assistant' &&
      message.toolCalls?.length && { args: message.toolCalls.map((call) => call.function.arguments) }),
  }));
}

test('wherever a client is cut off, after the next run it has the log, each word once', async () => {
  await fc.assert(
    fc.asyncProperty(plan, plan, fc.nat(100), async (first, second, cut) => {
      const { live, stored } = scene(first);
      const runs: object[][] = [];
      const client = clientOf('http://127.0.0.1:1', {
        fetch: () => {
          const frames = (runs.shift() ?? []).map((event) => `data: ${JSON.stringify(event)}\n\n`);
          const headers = { 'content-type': 'text/event-stream' };
          return Promise.resolve(new Response(frames.join(''), { headers }));
        },
      });
      client.agent.addMessage({ id: 'u1', role: 'user', content: 'Look.' });
      const whole = runOf(client.agent.messages, [...thinned(first, live), ...stored]);
      runs.push(whole.slice(0, 1 + Math.floor((cut / 100) * whole.length)));
      await client.agent.runAgent();
      const late = thinned({ ...first, lost: second.lost, again: second.again }, live);
      runs.push(runOf(client.agent.messages, cut % 2 === 0 ? stored : [...late, ...stored]));
      await client.agent.runAgent();
      expect(plain(client.agent.messages)).toEqual(expected(first));
    }),
    { numRuns: 200 },
  );
});

test('arguments that were changed before the call are told with a snapshot', () => {
  const view = new RoomView({ conversation: 'c', nameOf: () => 'Bo' });
  const call = { id: 'c:bo:1/1/a', name: 'look', conversation: 'c', agent: 'bo', turn: 'c:bo:1', step: 1 };
  const changes = [
    { type: 'call.start', call },
    { type: 'call.delta', id: call.id, text: '{"n":1}' },
    { type: 'call.ready', id: call.id, args: '{"n":2}' },
  ] as ChatChange[];
  const told = changes.flatMap((change) => view.take(change));
  expect(told.map(({ type }) => type)).toEqual([
    'STEP_STARTED',
    'TEXT_MESSAGE_START',
    'TEXT_MESSAGE_END',
    'TOOL_CALL_START',
    'TOOL_CALL_ARGS',
    'TOOL_CALL_END',
    'MESSAGES_SNAPSHOT',
  ]);
  expect(told.at(-1)).toMatchObject({ messages: [{ toolCalls: [{ function: { arguments: '{"n":2}' } }] }] });
});

test('a task of an agent that takes no turns is no interrupt, and is told', () => {
  const task = { id: 'd-1', kind: 'delegation', owner: 'bo', assignee: 'cy' };
  const answer = { failures: [], replies: [], waits: [{ conversation: 'c', task }], text: '' };
  const run = { threadId: 't', runId: 'r' };
  expect(endOf(run, answer as unknown as Answer, { interrupts: [], isNew: false })).toEqual([
    { type: 'CUSTOM', name: 'troupe.waiting', value: { task: 'd-1', assignee: 'cy' } },
    { type: 'RUN_FINISHED', ...run, result: '', outcome: { type: 'success' } },
  ]);
});
