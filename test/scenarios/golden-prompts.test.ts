import * as z from 'zod';
import { test } from 'vitest';
import { renderCompaction, renderTurnPrefix } from '../../src/context/compaction/apply.ts';
import {
  handoffRequestSteps,
  summaryRequest,
  turnPrefixRequest,
} from '../../src/context/summary/requests.ts';
import { atOnce } from '../../src/context/text/steps.ts';
import type { AgentId, CompactionBody, ConversationId, EventDraft, TurnId } from '../../src/events/index.ts';
import { defineTool } from '../../src/tools/tool.ts';
import type { FakeRequest } from '../../packages/testing/src/fake-vendors.ts';
import type { WireMessage } from '../support/compact.ts';
import { company, type CompanyOptions, ROOM, UMA } from '../support/company.ts';
import { logged } from '../support/log-player.ts';
import { expectGolden, oneMinute, stable } from '../support/golden-prompt.ts';

/** Whole requests, one for each moment at which Troupe itself says something. Read what changes here as the model would. */
const refund = defineTool({
  name: 'refund',
  description: 'Pays an order back.',
  schema: z.object({ order: z.number() }),
  needsApproval: { by: ['u1'] },
  run: ({ order }) => `order ${order} is paid back`,
});

async function expectRequest(request: FakeRequest | undefined, name: string): Promise<void> {
  if (!request) throw new Error('no model was asked');
  const { messages, tools = [] } = request.body as {
    messages: WireMessage[];
    tools?: { function: { name: string } }[];
  };
  const offered = tools.map((tool) => tool.function.name).join(', ') || 'none';
  const parts = messages.map(({ role, content, tool_calls: made = [] }) =>
    [
      `=== ${role}`,
      content ?? '',
      ...made.map(({ function: { name: tool, arguments: args } }) => `(calls ${tool} ${args})`),
    ]
      .filter(Boolean)
      .join('\n'),
  );
  await expectGolden(`${stable([`=== tools\n${offered}`, ...parts].join('\n'))}\n`, name);
}

const open = (ids: readonly string[], options: CompanyOptions = {}) =>
  company(ids, { clock: oneMinute(), ...options });

const call = (name: string, args: object) => ({ calls: [{ name, args: JSON.stringify(args) }] });

test('an agent alone, a tool that waits for approval, and the decision', async () => {
  await using room = await open(['desk'], {
    tools: [refund],
    agents: { desk: { tools: ['refund'], instructions: 'Serve people.' } },
    answers: { desk: [call('refund', { order: 7 }), 'Paid.'] },
  });
  await room.say(UMA, 'desk', 'order 7 came broken');
  const { tasks } = await room.troupe.tasks(ROOM, { open: true });
  const decide = { command: 'decide', conversation: ROOM as ConversationId, request: tasks[0]?.id ?? '' };
  await room.troupe.command({ ...decide, approved: true } as never, UMA);
  await room.troupe.idle();
  await expectRequest(room.requests('desk').at(-1), 'prompt-alone-decided');
});

test('an agent alone in the plain framing', async () => {
  await using room = await open(['desk'], { agents: { desk: { framing: 'plain' } } });
  await room.say(UMA, 'desk', 'hello');
  await expectRequest(room.requests('desk').at(-1), 'prompt-alone-plain');
});

test('a worker in its thread, told more by a person, and the manager that is woken with the result', async () => {
  await using room = await open(['boss', 'hand'], {
    agents: {
      boss: { role: 'manager', tools: ['delegate'], instructions: 'Ship on Fridays.' },
      hand: { role: 'worker', tools: ['ask'] },
    },
    answers: {
      boss: [call('delegate', { to: 'hand', task: 'Count the lamps.' }), 'There are nine.'],
      hand: [call('ask', { question: 'In which hall?' }), 'I wait for the hall.', 'Nine.'],
    },
  });
  await room.say(UMA, 'boss', 'how many lamps are there?');
  const { events } = await room.troupe.events(ROOM);
  const opened = events.find(({ kind }) => kind === 'delegation.opened');
  const thread = opened?.kind === 'delegation.opened' ? opened.body.thread : '';
  await room.troupe.send(thread, { author: UMA, to: ['hand'], content: 'without those outside' });
  await room.troupe.idle();
  await expectRequest(room.requests('hand').at(-1), 'prompt-worker');
  const { tasks } = await room.troupe.tasks(thread, { open: true });
  const answer = {
    command: 'answer',
    conversation: thread,
    question: tasks[0]?.id ?? '',
    content: 'the large one',
  };
  await room.troupe.command(answer as never, UMA);
  await room.troupe.idle();
  await expectRequest(room.requests('boss').at(-1), 'prompt-manager');
});

test('modes, a run, and the agent to which messages without an addressee come', async () => {
  await using room = await open(['boss', 'hand'], {
    agents: { boss: { role: 'manager', sees: 'results', tools: ['todo'] } },
    definition: { routing: { by: 'agent', agent: 'boss' as AgentId } },
  });
  const conversation = ROOM as ConversationId;
  await room.say(UMA, null, 'hello');
  for (const mode of ['chat', 'agent', 'run'] as const) {
    await room.troupe.command(
      { command: 'mode', conversation, mode, ...(mode === 'run' && { run: 'r1' }) },
      UMA,
    );
    if (mode === 'run') {
      const step = { run: 'r1', directive: 'Ship it.', brief: 'Write the notes.', status: 'active' as const };
      await room.troupe.command({ command: 'directive', conversation, ...step }, UMA);
    }
    await room.say(UMA, null, `and in ${mode}?`);
  }
  await expectRequest(room.requests('boss').at(-1), 'prompt-modes');
});

test('what an agent is told where its turn cannot end', async () => {
  const items = [{ text: 'count the lamps', status: 'pending' }];
  await using room = await open(['desk'], {
    agents: { desk: { tools: ['todo', 'no_response'] } },
    answers: {
      desk: [
        call('todo', { items }),
        'I am done.',
        call('todo', { items: [{ ...items[0], status: 'done' }] }),
        '',
        'Nine.',
      ],
    },
  });
  await room.say(UMA, 'desk', 'how many lamps are there?');
  await expectRequest(room.requests('desk')[2], 'prompt-list-open');
  await expectRequest(room.requests('desk')[4], 'prompt-no-words');
});

test.each([
  ['call-in-text', { text: '<tool_call>{"name": "todo", "arguments": {"items": []}}</tool_call>' }],
  ['call-cut', { calls: [{ name: 'todo', args: '{"items": [{"te' }], stop: 'length' as const }],
  ['call-unread', { stop: 'calls' as const }],
])('a call that was not made: %s', async (name, broken) => {
  await using room = await open(['desk'], {
    agents: { desk: { tools: ['todo'] } },
    answers: { desk: [broken, 'Nine.'] },
  });
  await room.say(UMA, 'desk', 'how many lamps are there?');
  await expectRequest(room.requests('desk').at(-1), `prompt-${name}`);
});

test('a reply that does not fit its schema', async () => {
  const schema = { type: 'object', properties: { lamps: { type: 'integer' } }, required: ['lamps'] };
  await using room = await open(['desk'], {
    agents: { desk: { reply: schema } as never },
    answers: { desk: ['nine', '{"lamps": 9}'] },
  });
  await room.say(UMA, 'desk', 'how many lamps are there?');
  await expectRequest(room.requests('desk').at(-1), 'prompt-reply-unfit');
});

test('a turn that failed is done again', async () => {
  await using room = await open(['desk'], {
    answers: { desk: [{ error: { code: 'provider_invalid_request' } }, 'Nine.'] },
  });
  await room.say(UMA, 'desk', 'how many lamps are there?');
  await room.troupe.command({ command: 'retry', turn: `${ROOM}:desk:1` } as never, UMA);
  await room.troupe.idle();
  await expectRequest(room.requests('desk').at(-1), 'prompt-again');
});

test('a call without a result, and one with an empty result', async () => {
  await using room = await open(['desk'], { agents: { desk: { tools: ['todo'] } } });
  const made = (id: string) => ({ id, type: 'function', function: { name: 'count', arguments: '{}' } });
  await room.transcript('desk', [
    { role: 'user', content: 'count the lamps' },
    { role: 'assistant', content: null, tool_calls: [made('c1'), made('c2')] },
    { role: 'tool', tool_call_id: 'c1', content: '' },
    { role: 'assistant', content: 'I could not.' },
  ]);
  await room.say(UMA, 'desk', 'and now?');
  await expectRequest(room.requests('desk').at(-1), 'prompt-interrupted');
});

const SAID = (['ana', 'ben'] as const).map((id, n) =>
  logged(
    {
      id: `e${n + 1}`,
      author: { kind: 'user', id, name: id },
      to: ['desk'],
      kind: 'message',
      body: { content: n === 0 ? 'How many lamps are there?' : 'Count those outside, too.' },
    } as unknown as EventDraft,
    n + 1,
  ),
);
const ROOMY = { budgetTokens: 1_000, secret: 's' };

function requestText({ system, user }: { system: string; user: string }): string {
  return `${stable(`=== system\n${system}\n=== user\n${user}`)}\n`;
}

test('requests for summaries', async () => {
  const request = summaryRequest({ ...ROOMY, previous: null, events: SAID, level: 0 });
  await expectGolden(requestText(request), 'request-summary');
  const steps = { turn: 'c:desk:1' as TurnId, trigger: 'Count the lamps.', previous: null, outputs: SAID };
  await expectGolden(requestText(turnPrefixRequest({ ...ROOMY, ...steps, level: 0 })), 'request-turn');
  const over = { from: 'desk' as AgentId, to: 'sales' as AgentId, events: SAID, before: '', secret: 's' };
  const fit = { maxTokens: 10_000, count: (text: string) => text.length / 4 };
  const handoff = atOnce(handoffRequestSteps({ ...over, ...fit }));
  if (!handoff) throw new Error('it fits');
  await expectGolden(requestText(handoff), 'request-handoff');
});

test('summaries as they stand in a prompt', async () => {
  const body = {
    number: 1,
    upTo: 10,
    strategy: 'summary',
    reason: 'over_budget',
    by: 'desk',
    summary: '## Goal\nAna wants the lamps to be counted.',
    quotes: [{ seq: 4, speaker: 'Ana>@desk', text: 'Count those outside, too.' }],
    demands: '',
    listing: '',
  } as unknown as CompactionBody;
  const prefix = renderTurnPrefix('It has counted two halls.', 's', { turn: 'c:desk:1' });
  await expectGolden(`${stable(`${renderCompaction(body, 's')}\n\n${prefix}`)}\n`, 'prompt-summaries');
});
