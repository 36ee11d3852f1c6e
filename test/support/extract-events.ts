import fc from 'fast-check';
import type { AgentId, ConversationId, Event, EventDraft, EventId, EventOf } from '../../src/events/index.ts';
import { logged } from './log-player.ts';

/** Short event literals for extraction; `at` assigns their positions. */
const CODER = { kind: 'agent', id: 'coder', name: 'Coder' } as const;
const ANA = { kind: 'user', id: 'ana', name: 'Ana' } as const;

type Body = Pick<EventDraft, 'author' | 'kind' | 'body'>;

function event(body: Body, to: readonly string[] = []): Event {
  return logged({ id: 'x' as EventId, to: to as AgentId[], ...body } as EventDraft, 1);
}

/** The events as a log returns them, numbered from `first`. */
export function at(events: readonly Event[], first = 1): Event[] {
  return events.map((one, index) => ({ ...one, id: `e${first + index}` as EventId, seq: first + index }));
}

export function personSays(content: string, to: readonly string[] = []): Event {
  return event({ author: ANA, kind: 'message', body: { content } }, to);
}

export function agentSays(content: string, to: readonly string[] = []): Event {
  return event({ author: CODER, kind: 'message', body: { content } }, to);
}

export function call(name: string, args: object, content = ''): Event {
  const calls = [{ id: 'call_0', name, args: JSON.stringify(args) }];
  return event({ author: CODER, kind: 'step', body: { index: 0, content, calls } });
}

export function result(content: string, outcome: 'done' | 'failed' = 'done', artifact?: string): Event {
  const body = {
    call: 'call_0',
    name: 'tool',
    outcome,
    content,
    ...(artifact !== undefined && { artifact }),
  };
  return event({ author: CODER, kind: 'tool.result', body });
}

function opening(id: string, task: string): EventOf<'delegation.opened'>['body'] {
  const [home, thread] = ['c', `c.${id}`] as ConversationId[];
  const [delegator, assignee] = ['planner', 'coder'] as AgentId[];
  if (!home || !thread || !delegator || !assignee) throw new Error('never');
  const where = { home, thread, root: home, group: id, join: 'all' as const, chain: [delegator] };
  return { delegation: id, how: 'delegate', delegator, assignee, task, ...where };
}

export function delegation(end: 'opened' | 'completed', id: string, text: string): Event {
  return end === 'opened'
    ? event({
        author: CODER,
        kind: 'delegation.opened',
        body: opening(id, text),
      })
    : event({
        author: CODER,
        kind: 'delegation.ended',
        body: { delegation: id, outcome: 'done', result: text },
      });
}

const PHRASES = [
  'You must never delete src/store/main.ts.',
  'Is that right?',
  'Next I will fix `runTurn()`.',
  'We still need tests.',
  'No, only W1234567.',
  'TypeError: x is not a function',
  'It works.',
  '- [ ] write docs',
  'word '.repeat(300),
];
const text = fc
  .array(fc.constantFrom(...PHRASES), { minLength: 1, maxLength: 4 })
  .map((parts) => parts.join('\n'));

/** A conversation of a person and an agent that calls tools. Results may be missing or long. */
export const someEvents: fc.Arbitrary<Event[]> = fc
  .array(
    fc.oneof(
      text.map((content) => [personSays(content)]),
      text.map((content) => [agentSays(content)]),
      fc
        .tuple(text, fc.constantFrom('read', 'edit'), fc.boolean())
        .map(([content, name, failed]) => [
          call(name, { path: `src/${name}.ts` }, content),
          result(content, failed ? 'failed' : 'done'),
        ]),
      fc.constantFrom('d1', 'd2').map((id) => [delegation('opened', id, 'task')]),
      fc.constantFrom('d1', 'd2').map((id) => [delegation('completed', id, 'result')]),
    ),
    { maxLength: 14 },
  )
  .map((groups) => at(groups.flat()));
