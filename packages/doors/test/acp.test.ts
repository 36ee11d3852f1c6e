import {
  client,
  methods,
  ndJsonStream,
  PROTOCOL_VERSION,
  type SessionUpdate,
} from '@agentclientprotocol/sdk';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { serveAcp } from '../src/acp/serve-acp.ts';
import { systemClock } from '../../../src/base/clock.ts';
import { defineTool } from '../../../src/tools/tool.ts';
import type { Troupe } from '../../../src/library/troupe.ts';
import { company, type CompanyOptions, UMA, VIK } from '../../../test/support/company.ts';

const pay = defineTool({
  name: 'pay',
  description: '',
  schema: z.object({ amount: z.number() }),
  needsApproval: true,
  run: ({ amount }) => `paid ${amount}`,
});
const PAY = { text: 'A moment.', calls: [{ name: 'pay', args: '{"amount":5}' }] };

type Permission = (request: { toolCall: { rawInput?: unknown } }) => Promise<string | null> | string | null;

/** An editor that talks to the troupe over a pipe, and what it was shown. */
async function openEditor(troupe: Troupe, permission: Permission = () => null) {
  const [toAgent, toEditor] = [new TransformStream<Uint8Array>(), new TransformStream<Uint8Array>()];
  const over = new AbortController();
  const served = serveAcp(
    { troupe, clock: systemClock, author: UMA, version: '1', signal: over.signal },
    ndJsonStream(toEditor.writable, toAgent.readable),
  );
  const updates: SessionUpdate[] = [];
  const connection = client({ name: 'editor' })
    .onNotification(methods.client.session.update, ({ params }) => void updates.push(params.update))
    .onRequest(methods.client.session.requestPermission, async ({ params }) => {
      const optionId = await permission(params);
      return { outcome: optionId === null ? { outcome: 'cancelled' } : { outcome: 'selected', optionId } };
    })
    .connect(ndJsonStream(toAgent.writable, toEditor.readable));
  const editor = connection.agent;
  await editor.request(methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    clientCapabilities: {},
  });
  const { sessionId, modes } = await editor.request(methods.agent.session.new, { cwd: '/', mcpServers: [] });
  return {
    editor,
    sessionId,
    modes,
    updates,
    say: (text: string) =>
      editor.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text }] }),
    said: () =>
      updates
        .flatMap((update) =>
          update.sessionUpdate === 'agent_message_chunk' && update.content.type === 'text'
            ? [update.content.text]
            : [],
        )
        .join(''),
    async [Symbol.asyncDispose]() {
      over.abort();
      await served;
    },
  };
}

async function scene(options: CompanyOptions & { ids?: string[]; permission?: Permission }) {
  const { ids = ['bo'], permission, ...rest } = options;
  const room = await company(ids, rest);
  const editor = await openEditor(room.troupe, permission);
  return {
    ...room,
    ...editor,
    async [Symbol.asyncDispose]() {
      await editor[Symbol.asyncDispose]();
      await room[Symbol.asyncDispose]();
    },
  };
}

test('an editor begins a session, says something and sees the words of each agent as they come', async () => {
  await using stage = await scene({
    ids: ['desk', 'billing'],
    agents: { desk: { tools: ['handoff'] }, billing: { name: 'Billing' } },
    answers: {
      desk: [{ text: 'One moment.', calls: [{ name: 'handoff', args: '{"to":"billing","goal":"refund"}' }] }],
      billing: ['It is refunded.'],
    },
  });
  expect(stage.modes?.availableModes.map(({ id }) => id)).toEqual(['troupe', 'desk', 'billing']);
  await stage.editor.request(methods.agent.session.setMode, { sessionId: stage.sessionId, modeId: 'desk' });
  expect(await stage.say('Refund it.')).toEqual({ stopReason: 'end_turn' });
  expect(stage.said()).toBe('One moment.\n\n**Billing:** It is refunded.');
  const calls = stage.updates.filter(({ sessionUpdate }) => sessionUpdate.startsWith('tool_call'));
  expect(calls).toMatchObject([
    { sessionUpdate: 'tool_call', title: 'desk: handoff', status: 'pending' },
    { sessionUpdate: 'tool_call_update', status: 'in_progress', rawInput: { to: 'billing', goal: 'refund' } },
    { sessionUpdate: 'tool_call_update', status: 'completed' },
  ]);
  const [event] = (await stage.troupe.events(stage.sessionId)).events;
  expect(event).toMatchObject({ author: UMA, to: ['desk'], context: { channel: 'acp' } });
});

test.each([
  ['allow', 'It is done.', ['completed']],
  ['reject', 'As you wish.', []],
])('an approval is a permission of the editor: %s', async (option, answer, statuses) => {
  const asked: unknown[] = [];
  await using stage = await scene({
    tools: [pay],
    agents: { bo: { tools: ['pay'] } },
    answers: { bo: [PAY, answer] },
    permission({ toolCall }) {
      asked.push(toolCall.rawInput);
      return option;
    },
  });
  expect(await stage.say('Pay.')).toEqual({ stopReason: 'end_turn' });
  expect(asked).toEqual([{ amount: 5 }]);
  expect(stage.said()).toContain(answer);
  const ended = stage.updates.flatMap((update) =>
    update.sessionUpdate === 'tool_call_update' && update.status === 'completed' ? [update.status] : [],
  );
  expect(ended).toEqual(statuses);
});

test('an approval that somebody else gives is gone in the editor, and the prompt goes on', async () => {
  const asked = Promise.withResolvers<void>();
  await using stage = await scene({
    tools: [pay],
    agents: { bo: { tools: ['pay'] } },
    answers: { bo: [PAY, 'It is paid.'] },
    permission() {
      asked.resolve();
      return new Promise(() => {});
    },
  });
  const said = stage.say('Pay.');
  await asked.promise;
  const conversation = stage.sessionId;
  const [task] = (await stage.troupe.tasks(conversation, { open: true })).tasks;
  await stage.troupe.command(
    { command: 'decide', conversation, request: task?.id ?? '', approved: true },
    VIK,
  );
  expect(await said).toEqual({ stopReason: 'end_turn' });
  expect(stage.said()).toMatch(/It is paid\.$/);
});

test('an approval in the thread of a task is asked for, and the answer of who gave the task follows', async () => {
  await using stage = await scene({
    ids: ['boss', 'hand'],
    tools: [pay],
    agents: { boss: { tools: ['delegate'] }, hand: { tools: ['pay'] } },
    answers: {
      boss: [
        { text: '', calls: [{ name: 'delegate', args: '{"to":"hand","task":"pay it"}' }] },
        'All is paid.',
      ],
      hand: [PAY, 'paid 5'],
    },
    permission: () => 'allow',
  });
  await stage.editor.request(methods.agent.session.setMode, { sessionId: stage.sessionId, modeId: 'boss' });
  expect(await stage.say('Have it paid.')).toEqual({ stopReason: 'end_turn' });
  expect(stage.said()).toMatch(/All is paid\.$/);
  expect(stage.said().match(/All is paid/g)).toHaveLength(1);
});

test('a question ends the turn in words, and the next prompt is its answer', async () => {
  await using stage = await scene({
    agents: { bo: { tools: ['ask'] } },
    answers: {
      bo: [{ text: '', calls: [{ name: 'ask', args: '{"question":"Which one?"}' }] }, 'The red one.'],
    },
  });
  await stage.say('Buy one.');
  expect(stage.said()).toContain('Which one?');
  await stage.say('Red.');
  expect(stage.said()).toContain('The red one.');
  const { events } = await stage.troupe.events(stage.sessionId);
  expect(events.find(({ kind }) => kind === 'question.answered')?.body).toMatchObject({ content: 'Red.' });
});

test('a cancelled prompt stops its turn', async () => {
  const asked = Promise.withResolvers<void>();
  const never = new Promise<never>(() => {});
  await using stage = await scene({
    answers: {
      bo() {
        asked.resolve();
        return never;
      },
    },
  });
  const said = stage.say('Go.');
  await asked.promise;
  await stage.editor.notify(methods.agent.session.cancel, { sessionId: stage.sessionId });
  expect(await said).toEqual({ stopReason: 'cancelled' });
  const kinds = (await stage.troupe.events(stage.sessionId)).events.map(({ kind }) => kind);
  expect(kinds).toContain('turn.aborted');
});

test('the words of a prompt that is cancelled come once', async () => {
  await using stage = await scene({
    answers: { bo: () => ({ text: 'Once upon a time, never', chunk: 4, breaks: { after: 4, how: 'hang' } }) },
  });
  const { editor, sessionId, troupe } = stage;
  let told = '';
  troupe.watch((note) => {
    if (note.type !== 'text') return;
    told += note.text;
    if (told === 'Once upon a time') void editor.notify(methods.agent.session.cancel, { sessionId });
  });
  expect(await stage.say('Go.')).toEqual({ stopReason: 'cancelled' });
  expect(stage.said()).toBe('Once upon a time');
});

test('a session is listed, and loaded with its messages', async () => {
  await using stage = await scene({ answers: { bo: ['Blue.'] } });
  await stage.say('Which colour?');
  const { editor, sessionId } = stage;
  const { sessions } = await editor.request(methods.agent.session.list, {});
  expect(sessions.map((each) => each.sessionId)).toEqual([sessionId]);
  stage.updates.length = 0;
  await editor.request(methods.agent.session.load, { sessionId, cwd: '/', mcpServers: [] });
  expect(stage.updates).toEqual([
    { sessionUpdate: 'user_message_chunk', content: { type: 'text', text: 'Which colour?' } },
    { sessionUpdate: 'agent_message_chunk', content: { type: 'text', text: '**bo:** Blue.' } },
  ]);
  await expect(
    editor.request(methods.agent.session.load, { sessionId: 'nowhere', cwd: '/', mcpServers: [] }),
  ).rejects.toThrow(/nowhere/);
});

test('files of the editor are attachments', async () => {
  await using stage = await scene({});
  const { editor, sessionId } = stage;
  await editor.request(methods.agent.session.prompt, {
    sessionId,
    prompt: [
      { type: 'text', text: 'Read this:' },
      {
        type: 'resource',
        resource: { uri: 'file:///notes/todo.md', mimeType: 'text/markdown', text: '# Todo' },
      },
      { type: 'resource_link', uri: 'file:///main.ts', name: 'main.ts' },
    ],
  });
  const [event] = (await stage.troupe.events(sessionId)).events;
  expect(event?.body).toMatchObject({
    content: 'Read this:\n[main.ts](file:///main.ts)',
    attachments: [{ name: 'todo.md', mediaType: 'text/markdown' }],
  });
});

test('an agent that fails is an error of the prompt', async () => {
  await using stage = await scene({
    answers: { bo: () => ({ text: '', error: { code: 'provider_invalid_request' } }) },
  });
  await expect(stage.say('Go.')).rejects.toThrow(/^@bo: /);
});

test('an unknown mode is refused in words', async () => {
  await using stage = await scene({});
  const { editor, sessionId } = stage;
  await expect(
    editor.request(methods.agent.session.setMode, { sessionId, modeId: 'nobody' }),
  ).rejects.toThrow('there is no agent "nobody"');
});
