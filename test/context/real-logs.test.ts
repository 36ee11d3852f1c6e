import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { beginTurn, createView, foldEvent, forkView } from '../../src/context/index.ts';
import type { AgentId, Event, EventDraft, EventId, TurnId } from '../../src/events/index.ts';
import { bytes, invalidities, misplaced, visibleSeqs } from '../support/check-prompt.ts';
import { logged, promptOf, SECRET, viewOf } from '../support/log-player.ts';
import { ASSISTANT, dealt, HAS_DATA, realLogs } from '../support/real-logs.ts';

const FILES = [
  'pi-large-session.jsonl',
  'tau/gpt-4o-airline-60.json',
  'tau/tau-airline-few_shot.jsonl',
  'tau/tau-retail-few_shot.jsonl',
  'claude-code/edge_cases.jsonl',
  'claude-code/representative_messages.jsonl',
  'claude-code/session_b.jsonl',
  'claude-code/todowrite_examples.jsonl',
  'locomo/26.json',
  'locomo/30.json',
  'locomo/41.json',
];
const TRIGGER: EventDraft = {
  id: 'trigger' as EventId,
  author: { kind: 'user', id: 'user', name: 'User' },
  to: [],
  kind: 'message',
  body: { content: 'Review what was done so far' },
};

if (!HAS_DATA) test.skip('skipped: no ../shared/data', () => undefined);

describe.runIf(HAS_DATA)('over real logs', () => {
  test.each(FILES)(
    '%s: at every index every visible event is in the prompt once, and the prompt is valid',
    async (file) => {
      for (const log of await realLogs(file)) {
        for (const agent of [ASSISTANT, 'reviewer']) expect(problemsAtEveryIndex(log, agent)).toEqual([]);
      }
    },
  );

  test('also with the words of the assistant divided among three agents', async () => {
    const agents = ['ada', 'bob', 'cyd'];
    const files = await Promise.all(FILES.filter((file) => !file.startsWith('pi')).map(realLogs));
    const logs = files.flat();
    fc.assert(
      fc.property(fc.constantFrom(...logs), fc.infiniteStream(fc.nat(2)), (log, stream) => {
        const split = dealt(log, agents, () => stream.next().value as number);
        for (const agent of [...agents, 'reviewer']) expect(problemsAtEveryIndex(split, agent)).toEqual([]);
      }),
      { numRuns: 30 },
    );
  });

  test('the pi session, divided among three agents, gives each all of it once', async () => {
    const [log = []] = await realLogs('pi-large-session.jsonl');
    const split = dealt(log, ['ada', 'bob', 'cyd'], (n) => n * 7 + (n % 5));
    for (const agent of ['ada', 'bob', 'cyd']) expect(problemsAt(viewOf(agent, split), split)).toEqual([]);
  });

  test('an agent with a turn at every tenth event sends only requests that extend the previous one', async () => {
    const [log = []] = await realLogs('pi-large-session.jsonl');
    const told: Event[] = [];
    const view = createView('reviewer' as AgentId, SECRET);
    let before: string[] = [];
    for (const event of log) {
      push(event);
      if (event.seq % 10 > 0) continue;
      const trigger = push({ ...TRIGGER, id: `ask${event.seq}` as EventId, to: ['reviewer' as AgentId] });
      const id = `t${event.seq}` as TurnId;
      const body = {
        upTo: told.length,
        inputs: [trigger.seq],
        live: {},
        join: 'full' as const,
        baseline: 'b',
      };
      const own = { author: { kind: 'agent' as const, id: 'reviewer', name: 'r' }, to: [], turn: id };
      push({ ...own, id: `${id}:s` as EventId, kind: 'turn.started', body });
      const { messages } = promptOf(view);
      expect(invalidities(messages)).toEqual([]);
      expect(misplaced(messages, visibleSeqs(told, 'reviewer'))).toEqual([]);
      const now = bytes(messages);
      expect(now.slice(0, before.length)).toEqual(before);
      before = now;
      push({ ...own, id: `${id}:r` as EventId, kind: 'message', body: { content: `noted ${event.seq}` } });
      push({
        ...own,
        id: `${id}:e` as EventId,
        kind: 'turn.aborted',
        body: { covers: [], by: 'u', partial: '' },
      });
    }

    function push({ id, author, to, kind, body, turn }: EventDraft): Event {
      const draft = { id, author, to, kind, body, ...(turn !== undefined && { turn }) } as EventDraft;
      const event = logged(draft, told.length + 1);
      told.push(event);
      foldEvent(view, event);
      return event;
    }
  });
});

function problemsAtEveryIndex(log: readonly Event[], agent: string): string[] {
  const view = createView(agent as AgentId, SECRET);
  return log.flatMap((event, index) => {
    foldEvent(view, event);
    return problemsAt(forkView(view), log.slice(0, index + 1)).map(
      (problem) => `${event.conversation}@${index}: ${problem}`,
    );
  });
}

/** Problems in the next prompt of the agent. */
function problemsAt(view: ReturnType<typeof viewOf>, log: readonly Event[]): string[] {
  const seq = log.length + 1;
  const trigger = logged({ ...TRIGGER, to: [view.agent] }, seq);
  foldEvent(view, trigger);
  beginTurn(view, {
    id: 't' as TurnId,
    upTo: seq,
    inputs: [seq],
    live: { time: 'now' },
    join: 'full',
    baseline: 'b',
  });
  const { messages } = promptOf(view);
  return [...invalidities(messages), ...misplaced(messages, [...visibleSeqs(log, view.agent), seq])];
}
